"""What requests to the studio look like."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_Number = Annotated[int, Field(ge=0, lt=2**31)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class EntityRequest(_Strict):
    type: Annotated[str, Field(max_length=60)]
    start: Annotated[_Number, Field(description="First word.")]
    end: Annotated[_Number, Field(description="The word behind the last.")]


class LabelsRequest(_Strict):
    entities: Annotated[list[EntityRequest], Field(max_length=2000)]
    decides: Annotated[bool, Field(description="Whether this settles a difference between people.")] = False


class FineRequest(_Strict):
    start: _Number
    end: _Number


class ExportRequest(_Strict):
    as_: Annotated[Literal["folder", "onnx", "spacy"], Field(alias="as")]


class TypesRequest(_Strict):
    op: Literal["add", "rename", "merge", "delete", "key"]
    name: str
    to: Annotated[str | None, Field(description="The new name, to rename.")] = None
    into: Annotated[str | None, Field(description="The type that stays, to merge.")] = None
    key: Annotated[str | None, Field(description="The new key.")] = None
    dry_run: Annotated[bool, Field(description="Only tell what it changes.")] = False


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Entity(_Answer):
    type: str
    start: Annotated[int, Field(description="First word.")]
    end: Annotated[int, Field(description="The word behind the last.")]


class Suggestion(Entity):
    confidence: float


class SentenceAnswer(_Answer):
    """A sentence. Of one that is not there the id is null, and `why` says why."""

    id: int | None
    why: Annotated[str, Field(description="Why it was chosen.")]
    text: str = ""
    words: list[str] = []
    offsets: Annotated[list[tuple[int, int]], Field(description="Where each word is in the text, in code points.")] = []
    suggestions: list[Suggestion] = []
    judging: Annotated[bool, Field(description="Whether it is for judging: not learnt, and without suggestions.")] = False
    second: Annotated[bool, Field(description="Whether another person has labelled it, to measure agreement.")] = False
    labels: Annotated[list[Entity] | None, Field(description="What it is labelled with.")] = None
    who: str | None = None
    at: Annotated[float | None, Field(description="Seconds since 1970.")] = None
    skipped: bool = False


class SavedAnswer(_Answer):
    saved: Literal[True]
    labeled: Annotated[int | None, Field(description="How many sentences are labelled.")] = None


class UndoneAnswer(_Answer):
    undone: Literal["labels", "skip"] | None
    sentence: SentenceAnswer | None


class TypeAnswer(_Answer):
    name: str
    key: str
    color: Annotated[int, Field(description="An index into the colours of the page.")]
    entities: int
    sentences: int
    earlier: Annotated[int, Field(description="Labelled sentences that nobody has looked at since the type was added.")]


class F1Answer(_Answer):
    """Of the judging sentences, from 0 to 100, with its interval."""

    value: float
    low: float
    high: float
    level: float
    sentences: int
    entities: int


class TrainedAnswer(_Answer):
    id: int
    at: float
    kind: str
    method: str
    labels: Annotated[int, Field(description="Labelled sentences, those for judging among them.")]
    judged: int
    f1: F1Answer | None
    seconds: float
    current: bool
    folder: str


class TrainingAnswer(_Answer):
    job: int
    kind: Literal["first", "quick", "default", "thorough", "suspects", "export"]
    phase: str
    done: int
    total: int
    seconds: float
    left: Annotated[float | None, Field(description="Seconds that it may still take.")]
    waiting: bool


class PointAnswer(_Answer):
    model: int
    labels: int
    judged: int
    f1: float
    low: float
    high: float


class SettingsAnswer(_Answer):
    judging_share: float
    agreement_share: float
    learn_judging: bool
    train: bool
    encoder: str


class StateAnswer(_Answer):
    id: str
    project: str
    version: str
    demo: bool
    sentences: Annotated[int, Field(description="All that there are.")]
    labeled: Annotated[int, Field(description="Those that were accepted, for judging or not.")]
    judging: Annotated[int, Field(description="Those of them that judge the model.")]
    skipped: int
    raw: Annotated[int, Field(description="Those that are left.")]
    types: list[TypeAnswer]
    model: TrainedAnswer | None
    training: TrainingAnswer | None
    problem: Annotated[str | None, Field(description="Why the last training failed, and what to do.")]
    next_training: Annotated[dict[str, int] | None, Field(description="`at` so many labels, `left` until then.")]
    forecast: Annotated[dict[str, float] | None, Field(description="Seconds that a training of each effort takes.")]
    f1: F1Answer | None
    curve: list[PointAnswer]
    outlook: Annotated[dict[str, float | str], Field(description="What the next labels bring, or `too_few`.")]
    few: Annotated[list[dict[str, int | str]], Field(description="Types that lack examples.")]
    people: list[dict[str, int | str | bool]]
    agreement: Annotated[dict[str, Any] | None, Field(description="Cohen's kappa, of all types and of each.")]
    differences: int
    suspects: dict[str, float] | None
    uncertain: int
    settings: SettingsAnswer


class SentencesAnswer(_Answer):
    total: int
    sentences: list[dict[str, Any]]


class JobAnswer(_Answer):
    job: int


class TypesAnswer(_Answer):
    types: list[TypeAnswer]
    entities: Annotated[int | None, Field(description="Entities that the change concerns.")] = None
    sentences: int | None = None
    told: Annotated[str | None, Field(description="What the change does.")] = None


class AddedAnswer(_Answer):
    added: int
    known: Annotated[int, Field(description="Sentences that were there already.")]
    types: list[str]
    notes: Annotated[list[str], Field(description="How the file was read.")]
