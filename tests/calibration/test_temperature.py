from __future__ import annotations

import pytest
import torch

from sequst.calibration.temperature import best_temperature, fit_temperature
from sequst.corpus.sampling import Split
from sequst.errors import SequstError
from sequst.tagger.tagger import Tagger


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_scores_that_are_off_by_a_factor_are_put_right(temperature: float) -> None:
    generator = torch.Generator().manual_seed(1)
    scores = 2.0 * torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(scores, -1), 1, generator=generator)[:, 0]
    found = best_temperature(torch.log_softmax(scores * temperature, -1), labels)
    assert found == pytest.approx(temperature, rel=0.05)


def test_without_known_tags_there_is_nothing_to_fit(tiny_encoder: str, split: Split) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["B-X", "I-X"], seed=1)
    with pytest.raises(SequstError, match="no word of the dev set"):
        fit_temperature(tagger, split.dev)
    real = Tagger.from_encoder(tiny_encoder, ["O", "B-X"], seed=1)
    assert 0.1 < fit_temperature(real, split.dev) < 20.0  # types that it does not know are left out
