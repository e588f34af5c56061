from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError
from sequst.tagger.batches import Rows
from sequst.tagger.capitals import WAYS, capital_scores, checked, count_capitals, sees_capitals, ways_of
from sequst.tagger.heads import CrfHead, Head, SoftmaxHead
from sequst.tagger.predict import label_words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAMES = ["O", "B-X", "I-X", "B-Y", "I-Y"]
TAUGHT = [
    (("Is", "Anna", "Bell", "in", "Rome", "?"), ("O", "B-X", "I-X", "O", "B-Y", "O")),
    (("Rome", "sees", "Anna"), ("B-Y", "O", "B-X")),
]
TEXT = [words for words, _ in TAUGHT]


@pytest.mark.parametrize(
    ("words", "ways"),
    [
        ("Turkey ate the turkey", ["first Capital", "small", "small", "small"]),
        ("the USA and iPhones", ["first small", "CAPITALS", "small", "inCapital"]),
        ('" 7 In U.S. McDonald I x', [None, None, "first Capital", "CAPITALS", "Capital", "Capital", "small"]),
        ("NATO is", ["first CAPITALS", "small"]),
        ("SOCCER - JAPAN WIN 2-1", [None] * 5),  # a headline: nothing is small, so no capital tells anything
        ("show me flights to boston", [None] * 5),  # nor does a small letter where there are no others
        ("Ünal liebt 東京 straße", ["first Capital", "small", None, "small"]),
        ("東京 Tower is", [None, "Capital", "small"]),  # a word of no such letters begins a sentence too
        ("ǅungla je", ["first Capital", "small"]),
        ("He left . The dog", ["first Capital", "small", None, "first Capital", "small"]),
        ('Why ? " It is', ["first Capital", None, None, "first Capital", "small"]),
        ("", []),
    ],
)
def test_the_ways_in_which_words_are_written(words: str, ways: list[str | None]) -> None:
    assert ways_of(words.split()) == [0 if way is None else 1 + WAYS.index(way) for way in ways]


@given(st.lists(st.text(max_size=6), max_size=6))
def test_every_word_has_a_way_or_none(words: list[str]) -> None:
    ways = ways_of(words)
    assert len(ways) == len(words)
    assert all(0 <= way <= len(WAYS) for way in ways)
    assert sum(way > len(WAYS) // 2 for way in ways) <= 1 + sum(word in (".", "!", "?") for word in words)


def test_they_are_counted_by_hand() -> None:
    found = count_capitals(TAUGHT, NAMES)
    assert list(found) == NAMES
    later = dict(zip(WAYS[:4], zip(*(found[name][:4] for name in NAMES), strict=True), strict=True))
    # not first: O has "in", "sees" (small); B-X "Anna", "Anna"; I-X "Bell"; B-Y "Rome": 4 with a capital, 2 small, ? is nothing
    usual = {"Capital": 4.5 / 8, "small": 2.5 / 8}
    for form, share in usual.items():
        capital = form == "Capital"
        other = ((1 if capital else 0) + 2 * share) / 3  # of B-, the one that is not B-X
        assert later[form][1] == pytest.approx(math.log(((2 if capital else 0) + 2 * other) / 4 / share)), form
        assert later[form][0] == pytest.approx(math.log(((0 if capital else 2) + 2 * share) / 4 / share)), form  # no other O
    assert later["CAPITALS"] == later["inCapital"] == (0.0,) * 5  # no word is written so
    # first: O has "Is", B-Y "Rome"; I-Y has no words at all, and neither has I-
    assert found["I-Y"][4:] == pytest.approx([0.0] * 4)
    assert found["I-Y"][1] == pytest.approx(math.log((1 + 2 * 4.5 / 8) / 3 / (4.5 / 8)))  # as I-, which has "Bell"


def test_shares_are_shares() -> None:
    """Where words are written in all ways, those of every tag are a distribution."""
    everything = [
        (("USA", "iPad", "Rome", "is"), ("B-X", "B-Y", "I-Y", "O")),
        (("He", "USA", "iPad", "Rome", "is"), ("O",) * 5),
    ]
    found = np.array(list(count_capitals(everything, NAMES).values()))[:, :4]
    counts = np.bincount([way for words, _ in everything for way in ways_of(words)], minlength=9)[1:5]
    assert (counts > 0).all()
    usual = (counts + 0.5) / (counts + 0.5).sum()
    assert (np.exp(found) * usual).sum(-1) == pytest.approx(np.ones(len(NAMES)))


def test_where_nothing_is_told_nothing_is_counted() -> None:
    small = [([word.lower() for word in words], tags) for words, tags in TAUGHT]
    assert count_capitals(small, NAMES) == count_capitals([], NAMES) == {}


def head_of(kind: str) -> Head:
    head = SoftmaxHead(8, len(NAMES), 0.0, seed=3, names=NAMES) if kind == "softmax" else CrfHead(8, NAMES, 0.0, seed=3)
    head.capitals = torch.from_numpy(capital_scores(count_capitals(TAUGHT, NAMES), NAMES)).float()
    return head


@pytest.mark.parametrize("kind", ["softmax", "crf"])
def test_probabilities_are_those_of_bayes(kind: str) -> None:
    """Over all paths, by brute force: p(path | text) times p(way | tag) of every word, normed."""
    head = head_of(kind)
    scores = torch.randn(1, 3, len(NAMES), generator=torch.Generator().manual_seed(1))
    words, opens = torch.ones(1, 3, dtype=torch.bool), torch.tensor([True])
    ways = ways_of(["Anna", "saw", "Rome"])
    with torch.no_grad():
        found = head.decode(scores, Rows(words, opens, torch.tensor([ways])))
        plain = head.log_probs(scores, Rows(words, opens))
        chain = head.chain(scores, Rows(words, opens))
    capitals = count_capitals(TAUGHT, NAMES)
    weights: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(len(NAMES)), repeat=3):
        of_text = sum(float(scores[0, i, tag]) for i, tag in enumerate(path))
        if kind == "crf":
            start = chain.start if chain.start.ndim == 1 else chain.start[0]
            of_text += float(start[path[0]])
            of_text += sum(float(chain.transitions[a, b]) for a, b in itertools.pairwise(path))
        weights[path] = math.exp(of_text + sum(capitals[NAMES[tag]][ways[i] - 1] for i, tag in enumerate(path)))
    total = sum(weights.values())
    for i, tag in itertools.product(range(3), range(len(NAMES))):
        share = sum(weight for path, weight in weights.items() if path[i] == tag) / total
        assert float(found.log_probs[0, i, tag].exp()) == pytest.approx(share, rel=1e-4, abs=1e-6)
    assert not torch.allclose(plain, found.log_probs)


@pytest.mark.parametrize("kind", ["softmax", "crf"])
def test_a_temperature_changes_no_tag(kind: str) -> None:
    head = head_of(kind)
    hidden = 60 * torch.randn(20, 9, 8, generator=torch.Generator().manual_seed(1))
    ways = torch.randint(0, 1 + len(WAYS), (20, 9), generator=torch.Generator().manual_seed(2))
    rows = Rows(torch.ones(20, 9, dtype=torch.bool), torch.ones(20, dtype=torch.bool), ways)
    before = head.decode(head.scores(hidden), rows)
    assert not torch.equal(head.decode(head.scores(hidden), rows._replace(written=None)).labels, before.labels)
    head.temper(2.5)
    after = head.decode(head.scores(hidden), rows)
    assert torch.equal(before.labels, after.labels)
    assert not torch.allclose(before.log_probs, after.log_probs)


@pytest.mark.parametrize("kind", ["softmax", "crf"])
def test_nothing_is_learnt_with_them(kind: str) -> None:
    head = head_of(kind)
    labels = torch.tensor([[1, 0, 3]])
    hidden = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(1))
    scores, blind = head.scores(hidden), Rows(torch.ones(1, 3, dtype=torch.bool), torch.tensor([True]))
    rows = blind._replace(written=torch.tensor([ways_of(["Anna", "saw", "Rome"])]))
    assert torch.equal(head.loss(scores, labels, rows), head.loss(scores, labels, blind))
    assert torch.equal(head(hidden, rows), head(hidden, blind))


@pytest.mark.parametrize("kind", ["softmax", "crf"])
def test_a_tagger_looks_at_them(kind: str, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways of going through a tagger say the same, windows and passes of MC dropout included."""
    capitals = {name: [3.0 * score for score in scores] for name, scores in count_capitals(TAUGHT, NAMES).items()}
    make = {"head": kind, "valid": True, "seed": 4, "max_length": 16, "overlap": 4}
    blind, seeing = (Tagger.from_encoder(tiny_encoder, NAMES, capitals=more, **make) for more in (None, capitals))
    written = np.random.default_rng(5).integers(0, 3, 30)  # in no order: a word of another place is written otherwise
    large = Sentence(tuple(("saw", "Rome", "NATO")[way] for way in written))
    small = Sentence(tuple(word.lower() for word in large.words))
    assert len(seeing.splitter.windows([large.words])) > 1
    of_small, of_large = label_words(seeing, [small]), label_words(seeing, [large])
    assert np.array_equal(of_small.confidences, label_words(blind, [small]).confidences)
    assert np.array_equal(label_words(blind, [large]).confidences, label_words(blind, [small]).confidences)
    assert not np.array_equal(of_small.confidences, of_large.confidences)
    plain, text = (form_beliefs(t, [large], passes=0, seed=1, probabilities=True).probabilities for t in (seeing, blind))
    assert plain is not None
    assert text is not None
    if kind == "softmax":  # each word by itself: the text's word for it times what its way says, whichever window owns it
        raised = text * np.exp(capital_scores(capitals, NAMES)[ways_of(large.words)])
        assert plain == pytest.approx(raised / raised.sum(-1, keepdims=True), abs=1e-5)
    for module in seeing.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert _mean(seeing, large) == pytest.approx(plain, abs=1e-4)
    monkeypatch.setattr("sequst.tagger.accel.layers.Layers.of", lambda encoder: None)  # as of any other encoder
    assert _mean(seeing, large) == pytest.approx(plain, abs=1e-4)


def _mean(tagger: Tagger, sentence: Sentence) -> NDArray[np.float32]:
    """The mean probabilities of some passes of MC dropout."""
    found = form_beliefs(tagger, [sentence], passes=3, seed=1, probabilities=True).probabilities
    assert found is not None
    return found


def test_encoders_that_see_capitals_need_no_help(tiny_encoder: str, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_encoder, tmp_path / "cased")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        text = (folder / name).read_text()
        assert '"lowercase": true' in text or '"do_lower_case": true' in text
        (folder / name).write_text(text.replace('case": true', 'case": false'))
    capitals = count_capitals(TAUGHT, NAMES)
    uncased = Tagger.from_encoder(tiny_encoder, NAMES, capitals=capitals, text=TEXT)
    assert not sees_capitals(uncased.splitter, TEXT)
    assert uncased.capitals == {name: pytest.approx(scores) for name, scores in capitals.items()}
    cased = Tagger.from_encoder(str(folder), NAMES, capitals=capitals, text=TEXT)
    assert sees_capitals(cased.splitter, TEXT)
    assert cased.capitals == {}
    for text in (TEXT, [("Анна", "в", "Москве")]):
        assert Tagger.from_encoder("bilstm", NAMES, capitals=capitals, text=text).capitals == {}


def test_they_are_saved_and_found_again(tiny_encoder: str, tmp_path: Path) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, NAMES, valid=True, capitals=count_capitals(TAUGHT, NAMES))
    expected = tagger.predict([words for words, _ in TAUGHT])
    tagger.save(tmp_path / "m")
    found = Tagger.load(tmp_path / "m", device="cpu")
    assert found.capitals == tagger.capitals
    assert found.predict([words for words, _ in TAUGHT]) == expected
    assert Tagger.load(tmp_path / "m", raw_tags=True).capitals == {}
    path = tmp_path / "m" / "sequst.json"
    facts = json.loads(path.read_text())
    for bad in ({"O": [1.0]}, {"O": "often"}, {"O": [float("inf")] * len(WAYS)}, {"O": ["a"] * len(WAYS)}):
        path.write_text(json.dumps({**facts, "capitals": bad}))
        with pytest.raises(SequstError, match="damaged or not written by sequst; found capitals"):
            Tagger.load(tmp_path / "m")
    del facts["capitals"]  # a model that was saved before there were any
    path.write_text(json.dumps(facts))
    assert Tagger.load(tmp_path / "m").capitals == {}
    assert checked({"O": [1] * len(WAYS)}) == {"O": [1.0] * len(WAYS)}
    for odd in ([1.0], "x", None):
        with pytest.raises(ValueError, match="damaged or not written by sequst"):
            checked(odd)  # type: ignore[arg-type]


def test_training_counts_them_in_the_labelled_sentences(
    tiny_encoder: str, tmp_path: Path, write: Callable[[str, str], Path]
) -> None:
    from sequst.api import train

    path = write("l.conll", "Anna B-PER\nBell I-PER\nsings O\n\nin O\nRome B-LOC\n")
    quick = {"min_steps": 2, "epochs": 1}
    half = train(path, tmp_path / "half", encoder=tiny_encoder, teacher=quick, capitals=0.5).tagger
    none = train(path, tmp_path / "none", encoder=tiny_encoder, teacher=quick, capitals=0).tagger
    labels = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    sentences = [(("Anna", "Bell", "sings"), ("B-PER", "I-PER", "O")), (("in", "Rome"), ("O", "B-LOC"))]
    for name, scores in count_capitals(sentences, labels).items():
        assert half.capitals[name] == pytest.approx([0.5 * score for score in scores])
    assert none.capitals == {}
