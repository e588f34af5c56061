from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sequst.api import train
from sequst.corpus.sampling import Split
from sequst.tagger.tagger import Tagger
from sequst.training.averaging import Averaged


def test_by_hand(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X"], seed=1)
    weight = tagger.head.linear.bias.detach()
    averaged = Averaged(tagger, 0.75)
    seen = []
    for value in (2.0, 4.0, 9.0, 1.0, 1.0):
        weight.fill_(value)
        averaged.took_step()
        with averaged.in_place():
            seen.append(float(weight[0]))
        assert float(weight[0]) == value
    # a plain mean while that forgets less than the decay: 2, 3, 5, 4; then 0.75 of what was
    assert seen == pytest.approx([2.0, 3.0, 5.0, 4.0, 0.75 * 4.0 + 0.25 * 1.0])
    with pytest.raises(RuntimeError), averaged.in_place():
        raise RuntimeError
    assert float(weight[0]) == 1.0
    averaged.settle()
    assert float(weight[0]) == pytest.approx(3.25)


def learn(split: Split, encoder: str, output: Path, **phase: Any) -> Tagger:
    settings = {"min_steps": 30, "epochs": 1, "evaluations": 3, "learning_rate": 1e-3, **phase}
    return train(split.labeled, output, encoder=encoder, teacher=settings).tagger


def test_what_is_kept_is_the_average(tiny_encoder: str, split: Split, tmp_path: Path) -> None:
    plain, tiny, much = (learn(split, tiny_encoder, tmp_path / f"{d}", average=d) for d in (0.0, 1e-9, 0.9))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain.parameters(), tiny.parameters(), strict=True))
    apart = [float((a - b).detach().abs().max()) for a, b in zip(plain.parameters(), much.parameters(), strict=True)]
    assert max(apart) > 1e-4
