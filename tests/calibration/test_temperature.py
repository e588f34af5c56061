from __future__ import annotations

import pytest
import torch

from sequst.calibration.temperature import fit_temperature


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_scores_that_are_off_by_a_factor_are_put_right(temperature: float) -> None:
    generator = torch.Generator().manual_seed(1)
    scores = 2.0 * torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(scores, -1), 1, generator=generator)[:, 0].tolist()
    names = ["O", "B-X", "I-X", "B-Y"]
    tags = [names[label] if place % 5 else "B-NEW" for place, label in enumerate(labels)]  # a type that it does not know
    found = fit_temperature(torch.softmax(scores * temperature, -1).float().numpy(), tags, names)
    assert found == pytest.approx(temperature, rel=0.05)
