from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sequst.errors import SequstError
from sequst.tagger.batches import Rows
from sequst.tagger.crf import FORBIDDEN, iob2_constraints
from sequst.tagger.heads import SoftmaxHead
from sequst.tagger.tagger import Tagger
from sequst.tagger.transitions import KINDS, checked, count_transitions, kind_of, transition_scores

NAMES = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def test_the_kinds_of_all_pairs() -> None:
    kinds = {(before, after): kind_of(before, after) for before, after in itertools.product(NAMES, repeat=2)}
    forbidden = iob2_constraints(NAMES)[0]
    for (i, before), (j, after) in itertools.product(enumerate(NAMES), repeat=2):
        assert (kinds[before, after] is None) == (forbidden[i, j] == FORBIDDEN), (before, after)
    assert {kind for kind in kinds.values() if kind} == set(KINDS)
    assert kinds["B-X", "B-X"] == "B same"
    assert kinds["I-X", "B-Y"] == "I other"
    assert kinds["B-X", "I-X"] == "B I"


def test_they_are_counted_by_hand() -> None:
    found = count_transitions([("O", "B-X", "I-X"), ("O", "O"), ("B-Y",)], NAMES)
    # the tags, with a half more of each: O 3.5, B-X 1.5, I-X 1.5, B-Y 1.5, I-Y 0.5, of 8.5; first of two are O twice, B-X once
    assert found["O O"] == pytest.approx(math.log((1 + 1) / (1 + 2 * 3.5 / 8.5)))
    assert found["O B"] == pytest.approx(math.log((1 + 1) / (1 + 2 * 3.0 / 8.5)))
    assert found["B I"] == pytest.approx(math.log((1 + 1) / (1 + 1.5 / 8.5)))
    assert found["B other"] == pytest.approx(-math.log(1 + 1.5 / 8.5))
    assert found["I O"] == 0.0  # nothing is known of what follows an I
    assert set(found) == set(KINDS)
    assert set(count_transitions([], NAMES).values()) == {0.0}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10_000), st.floats(0.0, 3.0))
def test_decoding_takes_the_best_of_all_paths(words: int, seed: int, strength: float) -> None:
    counted = count_transitions([("O", "B-X", "I-X", "B-Y"), ("B-Y", "O", "O")], NAMES)
    transitions = {kind: strength * score for kind, score in counted.items()}
    head = SoftmaxHead(4, len(NAMES), 0.0, names=NAMES, transitions=transitions)
    scores = torch.randn(1, words, len(NAMES), generator=torch.Generator().manual_seed(seed))
    found = head.decode(scores, Rows(torch.ones(1, words, dtype=torch.bool), torch.tensor([True])))
    log_probs = torch.log_softmax(scores, -1)[0].double()
    assert torch.equal(found.log_probs, torch.log_softmax(scores, -1))

    def worth(path: tuple[int, ...]) -> float:
        kinds = [kind_of(NAMES[a], NAMES[b]) for a, b in itertools.pairwise(path)]
        if NAMES[path[0]][0] == "I" or None in kinds:
            return -math.inf
        return float(log_probs[range(words), path].sum()) + sum(transitions[kind] for kind in kinds if kind)

    best = max(itertools.product(range(len(NAMES)), repeat=words), key=worth)
    assert worth(tuple(found.labels[0].tolist())) == pytest.approx(worth(best), abs=1e-5)


def test_a_temperature_changes_no_tag() -> None:
    transitions = count_transitions([("O", "B-X", "I-X", "B-Y"), ("B-Y", "O", "O")], NAMES)
    head = SoftmaxHead(8, len(NAMES), 0.0, seed=3, names=NAMES, transitions=transitions)
    hidden = 60 * torch.randn(20, 9, 8, generator=torch.Generator().manual_seed(1))
    rows = Rows(torch.ones(20, 9, dtype=torch.bool), torch.ones(20, dtype=torch.bool))
    before = head.decode(head.scores(hidden), rows)
    head.temper(2.5)
    after = head.decode(head.scores(hidden), rows)
    assert torch.equal(before.labels, after.labels)
    assert not torch.allclose(before.log_probs, after.log_probs)
    plain = SoftmaxHead(8, len(NAMES), 0.0, seed=3, names=NAMES)
    assert not torch.equal(plain.decode(plain.scores(hidden), rows).labels, before.labels)  # they do count


def test_they_are_nothing_to_raw_tags() -> None:
    head = SoftmaxHead(4, len(NAMES), 0.0, names=None, transitions={"O O": 9.0})
    assert (head.valid, head.transitions) == (False, {})
    assert not transition_scores({}, NAMES).any()


def test_they_are_saved_and_found_again(tiny_encoder: str, tmp_path: Path) -> None:
    transitions = count_transitions([("O", "B-X", "I-X", "B-Y")], NAMES)
    tagger = Tagger.from_encoder(tiny_encoder, NAMES, valid=True, transitions=transitions)
    tagger.save(tmp_path / "m")
    head = Tagger.load(tmp_path / "m").head
    assert isinstance(head, SoftmaxHead)
    assert head.transitions == transitions
    raw = Tagger.load(tmp_path / "m", raw_tags=True)
    assert isinstance(raw.head, SoftmaxHead)
    assert (raw.head.valid, raw.head.transitions) == (False, {})
    path = tmp_path / "m" / "sequst.json"
    facts = json.loads(path.read_text())
    for bad in ({"O I": 1.0}, {"O O": "often"}, {"O O": float("inf")}):
        path.write_text(json.dumps({**facts, "transitions": bad}))
        with pytest.raises(SequstError, match="damaged or not written by sequst; found transitions"):
            Tagger.load(tmp_path / "m")
    del facts["transitions"]  # a model that was saved before there were any
    path.write_text(json.dumps(facts))
    assert isinstance(head := Tagger.load(tmp_path / "m").head, SoftmaxHead)
    assert head.transitions == {}
    with pytest.raises(ValueError, match="damaged or not written by sequst"):
        checked({"B I": float("nan")})


def test_training_counts_them_in_the_labelled_sentences(
    tiny_encoder: str, tmp_path: Path, write: Callable[[str, str], Path]
) -> None:
    from sequst.api import train

    path = write("l.conll", "Anna B-PER\nBell I-PER\nsings O\n\nin O\nRome B-LOC\n")
    quick = {"min_steps": 2, "epochs": 1}
    half = train(path, tmp_path / "half", encoder=tiny_encoder, teacher=quick, transitions=0.5).tagger.head
    none = train(path, tmp_path / "none", encoder=tiny_encoder, teacher=quick, transitions=0).tagger.head
    counted = count_transitions([("B-PER", "I-PER", "O"), ("O", "B-LOC")], ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"])
    assert isinstance(half, SoftmaxHead)
    assert isinstance(none, SoftmaxHead)
    assert half.transitions == pytest.approx({kind: 0.5 * score for kind, score in counted.items()})
    assert none.transitions == {}
    assert none.valid
