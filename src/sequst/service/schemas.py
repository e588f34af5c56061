"""What requests and answers look like."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

MOST_TEXTS, MOST_CHARACTERS, MOST_WORDS, MOST_UNCERTAIN = 10_000, 1_000_000, 100_000, 2_000
"""Of one request: texts, characters, words, and words with uncertainty, which takes 20 passes."""
MOST_IN_TEXT = 20_000
"""Words of one text or sentence, which no batch can share with others."""

_EXAMPLE: dict[str, JsonValue] = {"texts": ["Can Sydney conduct The Planets in Verona on Friday?"]}
_ERRORS = {
    401: "No token, or a wrong one.",
    403: "Not without a token.",
    404: "There is no such thing.",
    408: "The body took too long.",
    409: "The model could not be loaded; the old one stays.",
    413: "The body is too large.",
    415: "The body is no JSON, or compressed.",
    421: "The header Host names another server.",
    422: "The request cannot be answered as it is.",
    503: "Too many requests wait, or the server stops; Retry-After says when to try again.",
    504: "The answer took too long.",
    507: "Labels could not be written.",
}
_OF_ALL = (401, 408, 413, 415, 421)


class PredictRequest(BaseModel):
    """Either texts or sentences."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [_EXAMPLE]})
    texts: Annotated[list[str] | None, Field(max_length=MOST_TEXTS, description="Texts, to be cut into words.")] = None
    sentences: Annotated[
        list[list[Annotated[str, Field(min_length=1)]]] | None, Field(max_length=MOST_TEXTS, description="Words of sentences.")
    ] = None
    uncertainty: Annotated[bool, Field(description="Also the confidence and information gain of MC dropout.")] = False
    min_confidence: Annotated[
        float | None, Field(ge=0, le=1, description="Entities below it are left out. Without it, the cut found in training.")
    ] = None
    probabilities: Annotated[bool, Field(description="Also the probability of each word's tag.")] = False

    @model_validator(mode="after")
    def _one_of_both(self) -> PredictRequest:
        if (self.texts is None) == (self.sentences is None):
            raise ValueError("give either texts or sentences")
        return self


class EntityAnswer(BaseModel):
    type: str
    start: Annotated[int, Field(description="First word.")]
    end: Annotated[int, Field(description="The word behind the last.")]
    start_char: int | None
    end_char: int | None
    text: str
    confidence: float
    mc_confidence: float | None = None
    information_gain: float | None = None


class Record(BaseModel):
    """What `sequst predict` writes for a sentence."""

    id: str | int
    words: list[str]
    tags: list[str]
    entities: list[EntityAnswer]
    left_out: Annotated[list[EntityAnswer], Field(description="Entities below the confidence cut.")] = []
    confidence: Annotated[list[float], Field(description="With uncertainty: of every word.")] = []
    information_gain: Annotated[list[float], Field(description="With uncertainty: of every word.")] = []
    probabilities: Annotated[list[float], Field(description="Of every word's tag, where asked for.")] = []


class PredictAnswer(BaseModel):
    predictions: Annotated[list[Record], Field(description="In the order of the request.")]
    entity_calibration: Annotated[dict[str, Any], Field(description="Where probabilities are asked for.")] = {}


class ModelAnswer(BaseModel):
    model_config = ConfigDict(extra="allow")
    types: list[str]
    version: Annotated[str, Field(description="Of sequst.")]
    model_version: Annotated[str, Field(description="Of the files of the model.")]
    uncertainty: Annotated[bool, Field(description="Whether requests may ask for it.")]
    entity_calibration: dict[str, Any]


class StatusAnswer(BaseModel):
    status: str


class ErrorAnswer(BaseModel):
    error: str


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for its documentation."""
    return {status: {"model": ErrorAnswer, "description": _ERRORS[status]} for status in sorted({*_OF_ALL, *statuses})}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(ref_template="#/components/schemas/{model}")
