"""Every method, on every pair of encoder and head: it learns, and what it saves is what it learnt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sequst.api import train
from sequst.corpus.generated import generate
from sequst.corpus.sampling import Split
from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.evaluation.evaluate import evaluate
from sequst.evaluation.spans import score_spans
from sequst.methods.registry import METHODS
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs
from tests.methods.test_self_training import QUICK, metrics

COMPARED = ("finetune", "vat", "seqvat", "cvt", "sst", "metast", "sequst")
MARGIN = 2.0
"""In points of F1. Phases are a fifth as long as they should be."""
BRIEF: dict[str, dict[str, Any]] = {"metast": {"metast": {"warmup": 0.6}}}
"""What a method needs to learn in so few steps."""


def lookup(split: Split) -> float:
    """The F1 of a tagger that knows the words of the labelled sentences by heart, and takes every other one for O."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in split.labeled:
        for word, tag in zip(sentence.words, sentence.tags or (), strict=True):
            seen[word][tag] += 1
    test = generate().test
    tags = [tuple(seen[word].most_common(1)[0][0] if word in seen else "O" for word in s.words) for s in test]
    return score_spans([s.tags or () for s in test], tags).total.f1


def phases(**lengths: int) -> dict[str, Any]:
    return {name: {"min_steps": steps, "epochs": 0.1} for name, steps in lengths.items()}


@pytest.mark.parametrize("method", COMPARED)
def test_it_learns_more_than_words_by_heart(method: str, split: Split, tmp_path: Path) -> None:
    """Without a dev set, so that what comes last is what is kept: after a round, a student of it."""
    unlabeled = split.unlabeled if METHODS[method].unlabeled else None
    result = train(
        split.labeled, tmp_path / "run", unlabeled=unlabeled, method=method, encoder="bilstm", head="crf",
        max_rounds=1, uncertainty={"passes": 3}, **phases(teacher=150, student=100, retune=30), **BRIEF.get(method, {}),
    )  # fmt: skip
    assert evaluate(result.tagger, generate().test).total.f1 > lookup(split) + MARGIN


@pytest.mark.parametrize("head", ["softmax", "crf"])
@pytest.mark.parametrize("encoder", ["transformer", "bilstm"])
@pytest.mark.parametrize("method", COMPARED)
def test_every_pair_trains_saves_loads_and_knows_its_doubts(
    method: str, encoder: str, head: str, split: Split, tiny_encoder: str, tmp_path: Path
) -> None:
    unlabeled = split.unlabeled[:20] if METHODS[method].unlabeled else None
    name = tiny_encoder if encoder == "transformer" else encoder
    quick = {**QUICK, "min_steps": 12} if encoder == "transformer" else {"min_steps": 12, "epochs": 0.1}
    result = train(
        split.labeled, tmp_path / "run", dev=split.dev[:8], unlabeled=unlabeled, method=method, encoder=name, head=head,
        max_rounds=1, uncertainty={"passes": 2}, teacher=quick, student=quick, retune=quick,
    )  # fmt: skip
    assert (result.summary["encoder"], result.summary["head"]) == (name, head)
    losses = [line.get("labelled", line["loss"]) for line in metrics(result.path) if line["phase"] == "teacher"]
    assert losses[-1] < losses[0]
    tagger = result.tagger
    tagger.save(tmp_path / "copy")
    sentences = [s.words for s in split.dev[:5]]
    assert Tagger.load(tmp_path / "copy").predict(list(map(list, sentences))) == tagger.predict(list(map(list, sentences)))
    beliefs = form_beliefs(tagger, split.dev[:5], passes=4, seed=1)
    assert (beliefs.information_gain > 0).any()
    assert ((beliefs.confidence > 0) & (beliefs.confidence < 1)).all()


def test_the_list_of_methods_names_all_seven_and_the_ablations(sequst: Callable[..., Any]) -> None:
    import json

    rows = json.loads(sequst("methods", "--json").stdout)
    names = [row["name"] for row in rows]
    assert set(COMPARED) < set(names)
    assert len(names) == len(COMPARED) + 5
    shown = sequst("methods").stdout
    for row in rows:
        assert row["summary"] in " ".join(shown.split())
        assert any(character.isdigit() for character in row["source"])  # the year of a paper, or an equation


@pytest.mark.parametrize("off", [{"method": name, "vat": {"weight": 0.0}} for name in ("vat", "seqvat")])
def test_what_is_switched_off_leaves_a_bilstm_as_fine_tuning_does(off: dict[str, Any], split: Split, tmp_path: Path) -> None:
    """Neither the words of the unlabelled text nor its batches change what labelled sentences teach."""
    options = {"encoder": "bilstm", **phases(teacher=20)}
    alone = train(split.labeled, tmp_path / "alone", **options).tagger.state_dict()
    found = train(split.labeled, tmp_path / "off", unlabeled=split.unlabeled[:30], **off, **options).tagger.state_dict()
    learnt = [name for name in alone if name not in ("encoder.learnt.weight", "encoder.characters.weight")]
    assert len(learnt) > 10
    # the norm of the gradients is summed over tables of other sizes: the last digits may differ
    assert all(torch.allclose(alone[name], found[name], atol=1e-5) for name in learnt)


def test_unlabelled_text_without_a_word_is_none(split: Split, tmp_path: Path) -> None:
    for method in ("cvt", "metast"):
        with pytest.raises(UsageError, match="needs unlabelled text"):
            train(split.labeled, tmp_path / "run", unlabeled=[Sentence((), None, 1)], method=method, encoder="bilstm")


def test_every_setting_that_a_method_uses_is_in_its_hash() -> None:
    """Change each in turn: those of a group that a method says it does not use are the only ones that make no difference."""
    from sequst.training.configure import flatten, from_dict
    from sequst.training.settings import Selection, Settings

    drawn = {"selector": "sampled"}
    usual = Settings(adapt=True, selection=Selection(**drawn))  # that how it is done makes a difference
    for name, value in flatten(usual).items():
        if "." not in name or isinstance(value, str) or name in ("adaptation.swap", "student.swap"):  # which cannot be set
            continue
        group, leaf = name.split(".")
        changed = {bool: not value, int: value + 1, float: value / 2 or (2.0 if leaf == "tau" else 0.25)}[type(value)]
        other = from_dict(
            {"adapt": True, "selection": drawn} | {group: {**(drawn if group == "selection" else {}), leaf: changed}}
        )
        for method in METHODS.values():
            same = usual.hash(method.unused) == other.hash(method.unused)
            assert same == (group in method.unused or group in ("crf", "bilstm")), (method.name, name)
