from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sequst.tagger.batches import IGNORED, collate
from sequst.tagger.planning import plan
from sequst.tagger.windows import Window

LENGTHS = st.lists(st.integers(1, 64), min_size=1, max_size=80)


@given(LENGTHS, st.integers(1, 9), st.integers(10, 300), st.none() | st.integers(0, 5))
def test_every_row_once_and_within_the_budget(lengths: list[int], rows: int, tokens: int, seed: int | None) -> None:
    batches = plan(lengths, max_rows=rows, max_tokens=tokens, seed=seed)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= rows
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens


@given(LENGTHS, st.integers(10, 300), st.integers(1, 5))
def test_tokens_and_padding_have_budgets_of_their_own(lengths: list[int], tokens: int, times: int) -> None:
    batches = plan(lengths, max_rows=99, max_tokens=tokens, max_padded=times * tokens)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        own = [lengths[i] for i in batch]
        assert len(batch) == 1 or (sum(own) <= tokens and len(own) * max(own) <= times * tokens)
    assert len(batches) <= len(plan(lengths, max_rows=99, max_tokens=tokens))


def test_the_seed_decides_the_order() -> None:
    lengths = [1 + i % 7 for i in range(50)]
    orders = [plan(lengths, max_rows=4, max_tokens=999, seed=seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def test_sorting_leaves_little_padding() -> None:
    lengths = [1 + (i * 37) % 60 for i in range(600)]
    for seed in (None, 3):
        batches = plan(lengths, max_rows=8, max_tokens=9999, seed=seed)
        padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
        assert padded <= 1.15 * sum(lengths)


def test_weights_stand_where_their_window_owns_the_word_and_travel_with_the_batch() -> None:
    windows = [
        Window(sentence=0, first=0, ids=[2, 7, 8, 3], heads=[1, 2], owned=(0, 1)),
        Window(sentence=0, first=1, ids=[2, 8, 9, 9, 3], heads=[1, 2], owned=(0, 2)),
    ]
    weights = np.array([0.5, 1.5, 2.0], dtype=np.float32)
    batch = collate(windows, [1, 0], pad=0, labels=[[5, 6, 7]], selected=[[True, False, True]], weights=[weights])
    assert batch.weights is not None
    assert batch.weights.tolist() == [[1.5, 2.0], [0.5, 0.0]]
    assert batch.selected.tolist() == [[False, True], [True, False]]
    grown = batch.padded(3, 6, 0)
    assert grown.weights is not None
    assert grown.weights[:2, :2].tolist() == batch.weights.tolist()
    assert grown.weights.sum() == batch.weights.sum()
    other = collate(windows, [1, 0], pad=0, labels=[[5, 6, 7]], weights=[2 * weights]).padded(3, 6, 0)
    grown.fill(other)
    assert torch.equal(grown.weights, other.weights)  # type: ignore[arg-type]
    assert torch.equal(batch.to(torch.device("cpu")).weights, batch.weights)  # type: ignore[arg-type]
    assert collate(windows, [0], pad=0).weights is None


def test_collate_by_hand() -> None:
    windows = [
        Window(sentence=0, first=0, ids=[2, 7, 8, 3], heads=[1, 2], owned=(0, 1)),
        Window(sentence=0, first=1, ids=[2, 8, 9, 9, 3], heads=[1, 2], owned=(0, 2)),
    ]
    batch = collate(windows, [1, 0], pad=0, labels=[[5, 6, 7]])
    assert batch.input_ids.tolist() == [[2, 8, 9, 9, 3], [2, 7, 8, 3, 0]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    assert batch.labels is not None
    assert batch.labels.tolist() == [[6, 7], [5, IGNORED]]
    assert batch.owned.tolist() == [[True, True], [True, False]]
    assert batch.word_mask.tolist() == [[True, True], [True, True]]
    assert torch.equal(batch.selected, batch.owned)
    some = collate(windows, [1, 0], pad=0, labels=[[5, 6, 7]], selected=[[True, False, True]])
    assert some.selected.tolist() == [[False, True], [True, False]]
