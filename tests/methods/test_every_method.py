"""Every method, on every pair of encoder and head: it learns, and what it saves is what it learnt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.generated import generate
from sequst.corpus.sampling import Split
from sequst.evaluation.evaluating import evaluate
from sequst.evaluation.spans import score_spans
from sequst.methods.registry import METHODS
from sequst.methods.running import train
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs
from tests.methods.test_self_training import QUICK, metrics

COMPARED = ("finetune", "vat", "seqvat", "cvt", "sst", "metast", "sequst")
MARGIN = 5.0


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
    return {name: {"min_steps": steps, "epochs": 0.1, "evaluations": 2} for name, steps in lengths.items()}


@pytest.mark.parametrize("method", COMPARED)
def test_it_learns_more_than_words_by_heart(method: str, split: Split, tmp_path: Path) -> None:
    unlabeled = split.unlabeled if METHODS[method].unlabeled else None
    result = train(
        split.labeled, tmp_path / "run", dev=split.dev, unlabeled=unlabeled, method=method, encoder="bilstm", head="crf",
        max_rounds=1, uncertainty={"passes": 5}, **phases(teacher=200, student=100, retune=50),
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
    quick = {**QUICK, "min_steps": 12} if encoder == "transformer" else {"min_steps": 12, "epochs": 0.1, "evaluations": 2}
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
