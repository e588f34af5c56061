"""The entity types of a project, and what becomes of entities when types change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sequst.corpus.tags import Span
from sequst.errors import UsageError, nearest, shorten

RESERVED = "aux?"
"""Keys that do something else."""
KEYS = "1234567890qwertyiopsdfghjklzcvbnm"
COLORS = 12
_LONGEST = 60


class Type(NamedTuple):
    name: str
    key: str
    color: int


def changed(types: Sequence[Type], op: dict[str, Any]) -> list[Type]:
    """The types after an operation: add, rename, merge, delete or key. An error if it cannot be."""
    kind, name = op.get("op"), op.get("name")
    if not isinstance(name, str):
        raise UsageError(f"name {shorten(name)}: give the name of a type")
    if kind == "add":
        return [*types, _new(types, name)]
    own = _find(types, name)
    others = [each for each in types if each is not own]
    if kind == "delete":
        return others
    if kind == "merge":
        into = _find(types, op.get("into"))
        if into is own:
            raise UsageError(f"into {name}: a type cannot be merged into itself")
        return others
    if kind == "rename":
        to = _checked(others, op.get("to"))
        return [own._replace(name=to) if each is own else each for each in types]
    if kind == "key":
        key = op.get("key")
        if not isinstance(key, str) or len(key) != 1 or not key.strip() or key.lower() in RESERVED:
            raise UsageError(f"key {shorten(key)}: one character, and none of {' '.join(RESERVED)}, which do something else")
        taken = next((each for each in others if each.key == key.lower()), None)
        swapped = None if taken is None else taken._replace(key=own.key)
        given = {own.name: own._replace(key=key.lower())} | ({taken.name: swapped} if taken and swapped else {})
        return [given.get(each.name, each) for each in types]
    raise UsageError(f"op {shorten(kind)}: one of add, rename, merge, delete, key")


def after(entities: Iterable[Span], ops: Iterable[dict[str, Any]]) -> list[Span]:
    """What the entities are after these operations."""
    found = list(entities)
    for op in ops:
        to = {"rename": op.get("to"), "merge": op.get("into")}.get(op["op"])
        if to is not None:
            found = [span._replace(type=to) if span.type == op["name"] else span for span in found]
        elif op["op"] == "delete":
            found = [span for span in found if span.type != op["name"]]
    return found


def _new(types: Sequence[Type], name: str) -> Type:
    keys, colors = {each.key for each in types}, [each.color for each in types]
    rare = min(range(COLORS), key=lambda color: (colors.count(color), color))
    return Type(_checked(types, name), next((key for key in KEYS if key not in keys), ""), rare)


def _checked(types: Sequence[Type], name: Any) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"\S+", name) or len(name) > _LONGEST or not name.isprintable():
        raise UsageError(f"type {shorten(name)}: a name of 1 to {_LONGEST} characters without spaces, e.g. person")
    if any(each.name == name for each in types):
        raise UsageError(f"type {name}: there is one of this name; merge them if they are the same")
    return name


def _find(types: Sequence[Type], name: Any) -> Type:
    found = next((each for each in types if each.name == name), None)
    if found is None:
        raise UsageError(f"unknown type {shorten(name)}; {nearest(str(name), [each.name for each in types])}")
    return found
