"""What requests to the studio look like."""

from __future__ import annotations

from typing import Annotated, Literal

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
