from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from sequst.tagger.lookups import SAFE, Lookup, make_safe
from sequst.tagger.tagger import Tagger


@pytest.mark.parametrize("shape", [(33, 64), (2017,), (4096,), (64, 64), (48, 48)])
def test_in_parts_it_is_the_same(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    plain = nn.Embedding(50, 6, padding_idx=3)
    ours = copy.deepcopy(plain)
    make_safe(ours)
    assert isinstance(ours, Lookup)
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
    assert all(isinstance(table, Lookup) for table in tables)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [SAFE, 2112, 3072, 4096])
def test_gradients_are_the_same_every_time(count: int) -> None:
    """As torch's own, of 2,112 and 3,072, may not be."""
    table = Lookup(30000, 768, device="cuda")
    ids, weights = torch.randint(40, (count,), device="cuda"), torch.randn(count, 768, device="cuda")
    first, differs = None, torch.zeros((), device="cuda", dtype=torch.int64)
    for _ in range(3000):
        table.weight.grad = None
        table(ids).backward(weights)
        assert table.weight.grad is not None
        first = table.weight.grad[:40].clone() if first is None else first
        differs += (table.weight.grad[:40] != first).any()
    assert differs == 0
