from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequst.errors import UsageError
from sequst.tagger.encoders.pretrained import load_tokenizer
from sequst.tagger.windows import SubwordSplitter


@pytest.fixture(scope="module")
def splitter(tiny_encoder: str) -> SubwordSplitter:
    return SubwordSplitter(load_tokenizer(tiny_encoder), max_length=16, overlap=4)


def test_the_tokenizers_own_truncation_is_off(splitter: SubwordSplitter) -> None:
    assert sum(map(len, splitter.subwords([["zzz"] * 40])[0])) == 120


def test_a_short_sentence_is_one_window(splitter: SubwordSplitter) -> None:
    [window] = splitter.windows([["we", "zz", "."]])
    tokens = splitter.tokenizer.convert_ids_to_tokens(window.ids)
    assert tokens == ["[CLS]", "we", "z", "##z", ".", "[SEP]"]
    assert window.heads == [1, 2, 4]
    assert window.owned == (0, 3)


def test_a_long_sentence_by_hand(splitter: SubwordSplitter) -> None:
    # room for 14 one-piece words; the second window repeats 4, of which the first keeps 2
    first, second = splitter.windows([["we"] * 20])
    assert (first.first, len(first.heads), first.owned) == (0, 14, (0, 12))
    assert (second.first, len(second.heads), second.owned) == (10, 10, (2, 10))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from(["we", "zz", "abcdefgh", "x" * 30, "\u200b", "é"]), max_size=30), max_size=4),
    st.integers(8, 40),
    st.integers(0, 3),
)
def test_every_word_is_owned_by_exactly_one_window(
    tiny_encoder: str, sentences: list[list[str]], limit: int, overlap: int
) -> None:
    splitter = SubwordSplitter(load_tokenizer(tiny_encoder), limit, overlap)
    owners = [[0] * len(words) for words in sentences]
    for window in splitter.windows(sentences):
        assert len(window.ids) <= limit
        assert all(0 < head < len(window.ids) - 1 for head in window.heads)
        assert sorted(set(window.heads)) == window.heads
        for word in range(*window.owned):
            owners[window.sentence][window.first + word] += 1
    assert all(count == 1 for counts in owners for count in counts)


def test_a_word_without_a_subword_becomes_the_unknown_token(splitter: SubwordSplitter) -> None:
    assert splitter.subwords([["we", "\u200b"]])[0][1] == []
    [window] = splitter.windows([["we", "\u200b"]])
    assert splitter.tokenizer.convert_ids_to_tokens(window.ids)[2] == "[UNK]"


def test_a_word_longer_than_a_window_keeps_its_first_subwords(splitter: SubwordSplitter) -> None:
    [window] = splitter.windows([["z" * 90, "we"]])
    assert len(window.ids) == 2 + 7 + 1
    assert window.owned == (0, 2)


def test_no_room_is_misuse(tiny_encoder: str) -> None:
    with pytest.raises(UsageError, match="leaves no room"):
        SubwordSplitter(load_tokenizer(tiny_encoder), 4, 0)
    with pytest.raises(UsageError, match="overlap of at most 7"):
        SubwordSplitter(load_tokenizer(tiny_encoder), 16, 10)
