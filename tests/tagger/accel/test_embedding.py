from __future__ import annotations

import contextlib
import copy

import pytest
import torch
from torch import nn

from sequst.tagger.accel.embedding import SAFE, SafeEmbedding, make_safe, trained_rows
from sequst.tagger.tagger import Tagger


@pytest.mark.parametrize("shape", [(33, 64), (2017,), (4096,), (64, 64), (48, 48)])
def test_in_parts_it_is_the_same(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    plain = nn.Embedding(50, 6, padding_idx=3)
    ours = copy.deepcopy(plain)
    make_safe(ours)
    assert isinstance(ours, SafeEmbedding)
    seen: list[int] = []
    look = nn.Embedding.forward
    monkeypatch.setattr(nn.Embedding, "forward", lambda table, ids: seen.append(ids.numel()) or look(table, ids))
    ids, weights = torch.randint(50, shape), torch.randn(*shape, 6)
    found, expected = ours.in_parts(ids), plain(ids)
    assert torch.equal(found, expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert ours.weight.grad is not None
    torch.testing.assert_close(ours.weight.grad, plain.weight.grad)
    assert seen.pop() == ids.numel()  # the plain one
    assert len(seen) > 1
    assert max(seen) <= SAFE


def test_all_tables_of_an_encoder(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O"])
    tables = [module for module in tagger.modules() if isinstance(module, nn.Embedding)]
    assert len(tables) == 3
    assert all(isinstance(table, SafeEmbedding) for table in tables)


def test_a_part_is_learnt_as_in_the_whole() -> None:
    torch.manual_seed(1)
    plain = nn.Embedding(50, 6, padding_idx=3)
    ours = copy.deepcopy(plain)
    make_safe(ours)
    assert isinstance(ours, SafeEmbedding)
    rows, ids, weights = torch.tensor([3, 7, 8, 40]), torch.tensor([[8, 40, 3], [8, 7, 8]]), torch.randn(2, 3, 6)
    whole = ours.weight
    (plain(ids) * weights).sum().backward()
    assert plain.weight.grad is not None
    with ours.narrowed(rows):
        assert ours.weight.shape == (4, 6)
        assert torch.equal(ours(ids), plain(ids))
        (ours(ids) * weights).sum().backward()
        assert torch.equal(ours.weight.grad, plain.weight.grad[rows])  # type: ignore[arg-type]
        assert not ours.weight.grad[0].any()  # type: ignore[index]  # padding learns nothing
        with torch.no_grad():
            ours.weight += 1.0
            others = torch.tensor([0, 8, 49])
            assert torch.equal(ours(others), plain(others) + torch.tensor([[0.0], [1.0], [0.0]]))
        saved = {name: value.clone() for name, value in ours.state_dict().items()}
        nn.init.zeros_(ours.weight)
        ours.load_state_dict(saved)
        with pytest.raises(IndexError, match="reads more than the batch"):
            ours(others)
    assert ours.weight is whole
    assert ours.padding_idx == 3
    learnt = plain.weight.detach().clone()
    learnt[rows] += 1.0
    assert torch.equal(whole, learnt)
    assert torch.equal(ours(others), learnt[others])


def test_what_was_learnt_stays_when_something_breaks() -> None:
    table = SafeEmbedding(9, 2)
    before = table.weight.detach().clone()
    with contextlib.suppress(KeyError), table.narrowed(torch.tensor([4])):
        nn.init.zeros_(table.weight)
        raise KeyError
    before[4] = 0.0
    assert torch.equal(table.weight, before)


def test_a_part_without_the_padding() -> None:
    table = SafeEmbedding(9, 2, padding_idx=0)
    with table.narrowed(torch.tensor([4, 5])):
        table(torch.tensor([4, 5])).sum().backward()
        assert table.weight.grad is not None
        assert table.weight.grad.all()


def narrows(tagger: Tagger, ids: list[int]) -> bool:
    table = tagger.encoder.model.get_input_embeddings()  # type: ignore[operator, union-attr]
    rows = len(table.weight)
    with trained_rows(tagger.encoder, torch.tensor(ids)):
        return len(table.weight) < rows


def test_when_a_part_is_learnt(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O"])
    table = tagger.encoder.model.get_input_embeddings()  # type: ignore[operator, union-attr]
    assert narrows(tagger, [7, 9, 9])
    with trained_rows(tagger.encoder, torch.tensor([7, 9, 9])):  # with padding and the mask
        assert len(table.weight) == 4
    assert not narrows(tagger, list(range(len(table.weight) * 2 // 3)))
    tagger.encoder.mask_id = len(table.weight) + 3  # of a tokenizer that knows more words than its encoder
    assert narrows(tagger, [7])
    table.weight.requires_grad_(False)
    assert not narrows(tagger, [7])
    table.weight.requires_grad_(True)
    tagger.encoder.model.tied = nn.Linear(1, 1)  # type: ignore[union-attr]
    tagger.encoder.model.tied.weight = table.weight  # type: ignore[union-attr]
    assert not narrows(tagger, [7])


@pytest.mark.gpu
@pytest.mark.parametrize("count", [SAFE, 2112, 3072, 4096])
def test_gradients_are_the_same_every_time(count: int) -> None:
    """As torch's own, of 2,112 and 3,072, may not be."""
    table = SafeEmbedding(30000, 768, device="cuda")
    ids, weights = torch.randint(40, (count,), device="cuda"), torch.randn(count, 768, device="cuda")
    first, differs = None, torch.zeros((), device="cuda", dtype=torch.int64)
    for _ in range(3000):
        table.weight.grad = None
        table(ids).backward(weights)
        assert table.weight.grad is not None
        first = table.weight.grad[:40].clone() if first is None else first
        differs += (table.weight.grad[:40] != first).any()
    assert differs == 0
