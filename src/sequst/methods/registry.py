"""The methods by name. To add one: write its file, and a row here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from sequst.errors import UsageError, nearest, shorten

if TYPE_CHECKING:
    from sequst.tagger.tagger import Tagger
    from sequst.training.run import Run

    MethodFunction = Callable[[Run], Tagger]


class Method(NamedTuple):
    """A method: its description, source, and where its code is."""

    name: str
    summary: str
    source: str
    place: str
    """module:function in this package; the function takes a `Run` and returns the tagger to keep."""
    uses: tuple[str, ...] = ()
    """Groups of settings that it uses, of those that not all methods share."""
    unlabeled: bool = True
    """Whether it learns from unlabelled text (and so may `adapt` the encoder)."""
    perturbs: bool = False
    """Whether it perturbs word embeddings, which the encoder must then accept as input."""

    @property
    def unused(self) -> tuple[str, ...]:
        """Settings that it does not use."""
        special = (*_ROUNDS, *_RELIABLE_WORDS, "vat", "cvt", "metast")
        return (*(name for name in special if name not in self.uses), *(() if self.unlabeled else ("adapt", "adaptation")))

    def load(self) -> MethodFunction:
        module, _, function = self.place.partition(":")
        return cast("MethodFunction", getattr(importlib.import_module(f"sequst.methods.{module}"), function))


_ROUNDS = ("max_rounds", "patience", "keep", "choose", "student", "retune", "ensemble")
_RELIABLE_WORDS = ("uncertainty", "selection", "robust", "gcr")
_PAPER = "Wang et al. 2023"


def _ablation(name: str, summary: str, change: str) -> Method:
    return Method(name, summary, f"{_PAPER}, ablation: {change}", "sequst:ablation", (*_ROUNDS, *_RELIABLE_WORDS))


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "finetune", "fine-tune the encoder and a head on the labelled sentences", "Devlin et al. 2019",
            "finetune:finetune", unlabeled=False,
        ),
        Method(
            "vat", "virtual adversarial training on the word embeddings", "Miyato et al. 2017",
            "vat:vat", ("vat",), perturbs=True,
        ),
        Method(
            "seqvat", "virtual adversarial training between whole tag sequences", "Chen et al. 2020",
            "seqvat:seqvat", ("vat",), perturbs=True,
        ),
        Method(
            "cvt", "cross-view training: heads that see a part of the sentence learn from the one that sees all",
            "Clark et al. 2018", "cvt:cvt", ("cvt",),
        ),
        Method(
            "sst", "standard self-training: learn every pseudo-labelled word with cross-entropy", f"{_PAPER}, baseline",
            "sst:sst", _ROUNDS,
        ),
        Method(
            "metast", "self-training that weighs every word by what learning it does for labelled sentences",
            "Wang et al. 2021", "metast:metast", (*_ROUNDS, "metast"),
        ),
        Method(
            "sequst", "learn reliable words robustly: selection, PHCE and GCR", f"{_PAPER}, Algorithm 1",
            "sequst:sequst", (*_ROUNDS, *_RELIABLE_WORDS),
        ),
        _ablation("without-selection", "SeqUST that learns every word", "Eq. 7 and 8 left out"),
        _ablation("without-confidence", "SeqUST that selects words by certainty alone", "Eq. 5 left out"),
        _ablation("without-certainty", "SeqUST that selects words by confidence alone", "Eq. 6 left out"),
        _ablation("without-phce", "SeqUST with cross-entropy in place of PHCE", "Eq. 9 for Eq. 11"),
        _ablation("without-gcr", "SeqUST without the consistency regulariser", "Eq. 14 left out"),
    )
}  # fmt: skip


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise UsageError(f"unknown method {shorten(name)}; {nearest(name, ['auto', *METHODS])}")
    return METHODS[name]
