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
    unused: tuple[str, ...] = ()
    """Settings that it does not look at."""

    def load(self) -> MethodFunction:
        module, _, function = self.place.partition(":")
        return cast("MethodFunction", getattr(importlib.import_module(module), function))


_SELF_TRAINING = ("max_rounds", "patience", "keep", "pseudo_labels", "mix_labeled", "student", "retune")
_RELIABLE_WORDS = ("uncertainty", "selection", "robust", "gcr")
_ADVERSARIAL = ("vat",)
_PAPER = "Wang et al. 2023"


def _method(name: str, summary: str, source: str, place: str, unlabeled: bool = True, unused: tuple[str, ...] = ()) -> Method:
    return Method(name, summary, source, unlabeled, f"sequst.methods.{place}", unused)


def _ablation(name: str, summary: str) -> Method:
    return _method(name, summary, f"{_PAPER}, ablation", f"sequst:{name.replace('-', '_')}", unused=_ADVERSARIAL)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _method(
            "finetune", "fine-tune the encoder and a head on the labelled sentences", "Devlin et al. 2019",
            "finetune:finetune", unlabeled=False, unused=(*_SELF_TRAINING, *_RELIABLE_WORDS, *_ADVERSARIAL),
        ),
        _method(
            "sst", "standard self-training: learn every pseudo-labelled word with cross-entropy", f"{_PAPER}, baseline",
            "sst:sst", unused=(*_RELIABLE_WORDS, *_ADVERSARIAL),
        ),
        _method(
            "vat", "virtual adversarial training on the word embeddings", "Miyato et al. 2017",
            "vat:vat", unused=(*_SELF_TRAINING, *_RELIABLE_WORDS),
        ),
        _method(
            "seqvat", "virtual adversarial training between whole tag sequences", "Chen et al. 2020",
            "seqvat:seqvat", unused=(*_SELF_TRAINING, *_RELIABLE_WORDS),
        ),
        _method(
            "sequst", "learn reliable words robustly: selection, PHCE and GCR", f"{_PAPER}, Algorithm 1",
            "sequst:sequst", unused=_ADVERSARIAL,
        ),
        _ablation("without-selection", "SeqUST that learns every word"),
        _ablation("without-confidence", "SeqUST that selects words by certainty alone"),
        _ablation("without-certainty", "SeqUST that selects words by confidence alone"),
        _ablation("without-phce", "SeqUST with cross-entropy in place of PHCE"),
        _ablation("without-gcr", "SeqUST without the consistency regulariser"),
    )
}  # fmt: skip


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise UsageError(f"unknown method {name!r}; {nearest(name, METHODS)}")
    return METHODS[name]
