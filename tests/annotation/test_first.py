"""The first batch: typical, different, spread from the first on, and the same for the same seed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sequst.annotation import first
from sequst.annotation.first import choose_first, clusters, is_encoder
from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.tagger.tagger import Tagger

POOL = list({sentence.words: sentence for sentence in generate().pool}.values())


def words(sentences: list[Sentence]) -> list[tuple[str, ...]]:
    return [sentence.words for sentence in sentences]


def test_clusters_that_are_far_apart_are_found() -> None:
    rng = np.random.default_rng(0)
    middles = 10.0 * np.eye(5)
    sizes = [3, 20, 7, 40, 11]
    vectors = np.concatenate([middle + rng.normal(0, 0.1, (size, 5)) for middle, size in zip(middles, sizes, strict=True)])
    truth = np.repeat(np.arange(5), sizes)
    for seed in range(10):
        found = clusters(vectors, 5, seed)
        assert sorted(map(len, found)) == sorted(sizes)
        for group in found:
            assert len(set(truth[group])) == 1
            distances = np.linalg.norm(vectors[group] - vectors[group].mean(0), axis=1)
            assert list(distances) == sorted(distances)


@pytest.mark.parametrize("count", [1, 2, 9, 10, 11])
def test_every_row_is_in_one_cluster_and_none_is_empty(count: int) -> None:
    """Also of rows that are all the same, of which there are fewer than clusters."""
    for vectors in (np.random.default_rng(1).normal(size=(10, 3)), np.zeros((10, 3)), np.repeat(np.eye(2), 5, axis=0)):
        found = clusters(vectors, count, 3)
        assert len(found) == min(count, 10)
        assert all(found)
        assert sorted(row for group in found for row in group) == list(range(10))


def test_k_means_is_better_than_its_start() -> None:
    vectors = np.random.default_rng(2).normal(size=(300, 4))

    def spread(groups: list[list[int]]) -> float:
        return sum(float(((vectors[group] - vectors[group].mean(0)) ** 2).sum()) for group in groups)

    alone = [list(range(start, start + 30)) for start in range(0, 300, 30)]
    assert spread(clusters(vectors, 10, 1)) < 0.7 * spread(alone)
    assert clusters(vectors, 10, 1) == clusters(vectors, 10, 1) != clusters(vectors, 10, 2)


def test_kinds_of_sentences_come_one_after_the_other(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six kinds of different sizes: the first six sentences are of six kinds, the first of the largest."""
    sizes = [5, 60, 20, 8, 30, 12]
    kinds = np.repeat(np.arange(6), sizes)
    pool = [Sentence((f"kind{'abcdef'[kind]}", "x" * (1 + place))) for place, kind in enumerate(kinds)]
    middles = np.eye(6)

    def vectors(_: Tagger, sentences: list[Sentence]) -> object:
        rng = np.random.default_rng(0)
        return np.array([middles["abcdef".index(s.words[0][-1])] + rng.normal(0, 0.01, 6) for s in sentences])

    monkeypatch.setattr(first, "sentence_vectors", vectors)
    chosen = choose_first(tiny_encoder, pool, 6, judging=0.0)
    assert chosen[0].words[0] == "kindb"
    assert {sentence.words[0] for sentence in chosen} == {f"kind{letter}" for letter in "abcdef"}
    twelve = choose_first(tiny_encoder, pool, 12, judging=0.0)
    assert len({sentence.words[0] for sentence in twelve[:6]}) == 6


def test_neither_the_longest_nor_the_shortest_of_its_kind(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine alike, of one to nine words, all as near to their centre: of the nearer half the median one is taken."""
    pool = [Sentence(("word",) * length) for length in range(1, 10)]
    monkeypatch.setattr(first, "sentence_vectors", lambda _, sentences: np.ones((len(sentences), 3)))
    monkeypatch.setattr(first, "clusters", lambda *_: [list(range(9))])
    monkeypatch.setattr(first.Draw, "drawn", lambda self: pool)
    assert words(choose_first(tiny_encoder, pool, 1, judging=0.0)) == [("word",) * 3]


def test_a_share_is_random_and_marked_and_no_model_has_a_part_in_it(tiny_encoder: str) -> None:
    chosen = choose_first(tiny_encoder, iter(POOL), 20, seed=3)
    assert [place for place, sentence in enumerate(chosen) if sentence.judging] == [2, 7, 12, 17]
    assert len(set(words(chosen))) == 20
    assert all(sentence.tags is None for sentence in chosen)
    assert chosen == choose_first(tiny_encoder, POOL[::-1], 20, seed=3)  # whatever the order of the text
    assert words(chosen) != words(choose_first(tiny_encoder, POOL, 20, seed=4))
    drawn = {sentence.words for sentence in chosen if sentence.judging}
    more = choose_first(tiny_encoder, POOL, 60, seed=3)
    assert drawn < {sentence.words for sentence in more if sentence.judging}


def test_what_is_labelled_or_a_near_copy_is_not_chosen(tiny_encoder: str) -> None:
    done = POOL[:100]
    numbered = [Sentence(("Gate", str(number), "is", "closed")) for number in range(100)]
    chosen = choose_first(tiny_encoder, [*POOL[:140], *numbered], 30, judging=0.0, labeled=done)
    assert not {sentence.words for sentence in done} & set(words(chosen))
    assert sum(sentence.words[0] == "Gate" for sentence in chosen) == 1


def test_a_small_text_is_taken_whole(tiny_encoder: str) -> None:
    seen: list[int] = []
    chosen = choose_first(tiny_encoder, [*POOL[:5], Sentence(()), *POOL[:5]], 50, advance=seen.append)
    assert set(words(chosen)) == set(words(POOL[:5]))
    assert sum(sentence.judging for sentence in chosen) == 1
    assert sum(seen) == 10
    assert choose_first(tiny_encoder, [], 50) == []
    assert len(choose_first(tiny_encoder, POOL, 3, judging=1.0)) == 3


def test_misuse(tiny_encoder: str) -> None:
    with pytest.raises(UsageError, match="count 0"):
        choose_first(tiny_encoder, POOL, 0)
    with pytest.raises(UsageError, match="a share from 0 to 1"):
        choose_first(tiny_encoder, POOL, 5, judging=2.0)
    with pytest.raises(UsageError, match="bilstm is not pretrained"):
        choose_first("bilstm", POOL, 5)


def test_what_is_an_encoder_and_what_a_tagger(tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"]).save("tagger")
    assert is_encoder("minilm")
    assert is_encoder(tiny_encoder)
    assert is_encoder("sentence-transformers/all-mpnet-base-v2")
    for name in ("tagger", "run", "run/model", "rnu/model", "nowhere", "/no/where", "../x", "a/b/c", "bilstm"):
        assert not is_encoder(name), name
    (tmp_path / "tagger" / "sequst.json").unlink()  # as another tool would have saved it
    assert not is_encoder("tagger")
    config = json.loads((tmp_path / "tagger" / "config.json").read_text())
    for kinds, expected in ((["BertModel"], True), (None, True), ("x", False), (["BertForTokenClassification"], False)):
        (tmp_path / "tagger" / "config.json").write_text(json.dumps({**config, "architectures": kinds}))
        assert is_encoder("tagger") == expected
    (tmp_path / "tagger" / "config.json").write_text("[]")
    assert is_encoder("tagger")  # whose loader says what is wrong
