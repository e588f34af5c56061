"""The methods by name. To add one: write its file, and a row here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from sequst.errors import UsageError, nearest

if TYPE_CHECKING:
    from sequst.tagger.tagger import Tagger
    from sequst.training.run import Run

    MethodFunction = Callable[[Run], Tagger]


class Method(NamedTuple):
    """A method: what it is in a line, where it comes from, whether it learns from unlabelled text, and where it stands."""

    name: str
    summary: str
    source: str
    unlabeled: bool
    place: str
    """module:function; the function takes a `Run` and returns the tagger to keep."""

    def load(self) -> MethodFunction:
        module, _, function = self.place.partition(":")
        return cast("MethodFunction", getattr(importlib.import_module(module), function))


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="finetune",
            summary="fine-tune the encoder and a head on the labelled sentences",
            source="Devlin et al. 2019",
            unlabeled=False,
            place="sequst.methods.finetune:finetune",
        ),
    )
}


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise UsageError(f"unknown method {name!r}; {nearest(name, METHODS)}")
    return METHODS[name]
