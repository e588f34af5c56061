from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from sequst.corpus.counts import count_types
from sequst.corpus.formats.read import read
from sequst.corpus.generated import generate
from sequst.corpus.sampling import sample
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError


def tagged(*tags: str) -> Sentence:
    tagged.count += 1  # type: ignore[attr-defined]
    return Sentence(tuple(f"w{tagged.count}-{i}" for i in range(len(tags))), tags)  # type: ignore[attr-defined]


tagged.count = 0  # type: ignore[attr-defined]


def test_sentences_sampler_draws_k_for_every_type() -> None:
    split = sample(generate().pool, 5)
    assert len(split.labeled) == len(split.dev) == 5 * 5
    assert not split.short
    assert all(count >= 5 for count in count_types(split.labeled).sentences.values())


def test_parts_are_a_partition_and_dev_shares_no_sentence() -> None:
    pool = generate().pool
    split = sample(pool, 5)
    parts = [*split.labeled, *split.dev, *split.unlabeled]
    assert Counter(id(s) for s in parts) == Counter(id(s) for s in pool)
    assert not {s.words for s in split.labeled} & {s.words for s in split.dev}


def test_mentions_sampler_stops_at_k_mentions() -> None:
    split = sample(generate().pool, 5, sampler="mentions")
    mentions = count_types(split.labeled).mentions
    assert all(count >= 5 for count in mentions.values())
    assert len(split.labeled) < len(sample(generate().pool, 5).labeled)


def test_the_seed_decides() -> None:
    pool = generate().pool
    assert sample(pool, 3, seed=1).labeled == sample(pool, 3, seed=1).labeled
    assert sample(pool, 3, seed=1).labeled != sample(pool, 3, seed=2).labeled


def test_a_rare_type_gives_half_to_each_and_is_reported() -> None:
    pool = [tagged("B-RARE") for _ in range(5)] + [tagged("B-COMMON", "O") for _ in range(50)]
    split = sample(pool, 10)
    counts = count_types(split.labeled).sentences, count_types(split.dev).sentences
    assert (counts[0]["RARE"], counts[1]["RARE"]) == (3, 2)
    assert (counts[0]["COMMON"], counts[1]["COMMON"]) == (10, 10)
    assert list(split.short) == ["RARE"]


def test_rarest_first_keeps_shared_sentences_for_the_rare_type() -> None:
    # every RARE sentence also has COMMON; drawing COMMON first could use them up
    pool = [tagged("B-RARE", "B-COMMON") for _ in range(4)] + [tagged("B-COMMON") for _ in range(40)]
    for seed in range(20):
        split = sample(pool, 2, seed=seed)
        assert count_types(split.labeled).sentences["RARE"] == 2
        assert count_types(split.dev).sentences["RARE"] == 2


def test_saved_split_reads_back(tmp_path: Path) -> None:
    split = sample(generate().pool, 4)
    split.save(tmp_path / "s")
    for part in ("labeled", "dev", "unlabeled"):
        again = read(tmp_path / "s" / f"{part}.conll")
        assert [(s.words, s.tags) for s in again] == [(s.words, s.tags) for s in getattr(split, part)]
    summary = json.loads((tmp_path / "s" / "summary.json").read_text())
    assert summary["labeled"]["types"]["place"]["mentions"] == count_types(split.labeled).mentions["place"]


def test_misuse() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        sample(generate().pool, 0)
    with pytest.raises(UsageError, match="did you mean 'mentions'"):
        sample(generate().pool, 1, sampler="mention")
    with pytest.raises(SequstError, match="no entity"):
        sample([tagged("O")], 1)
