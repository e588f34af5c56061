from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sequst.corpus.sampling import Split
from sequst.tagger.tagger import Tagger, labels_of
from sequst.training.device import make_accelerator
from sequst.training.loop import Examples
from sequst.training.run import Run
from sequst.training.settings import Settings


@pytest.mark.parametrize("encoder", ["tiny", "bilstm"])
@pytest.mark.parametrize("threads", [1, 2])
def test_centre_and_scale_are_those_of_all_words(encoder: str, threads: int, split: Split, tiny_encoder: str) -> None:
    """As one sentence after the other has them, by the encoder's own forward; in many small batches, on several cores."""
    sentences, before = split.unlabeled[:150], torch.get_num_threads()
    text = [s.words for s in sentences]
    name = tiny_encoder if encoder == "tiny" else encoder
    tagger = Tagger.from_encoder(name, labels_of(split.labeled), seed=1, text=text).train()
    windows = tagger.splitter.windows(text)
    settings = Settings(device="cpu", precision="fp32")
    run: Any = SimpleNamespace(settings=settings, accelerator=make_accelerator(settings))
    examples = Examples(windows, [[0] * len(words) for words in text])
    torch.set_num_threads(threads)
    try:
        Run.standardise(run, tagger, examples)
    finally:
        torch.set_num_threads(before)
    tagger.eval()
    with torch.no_grad():
        batches = [examples.batch([row], tagger) for row in range(len(windows))]
        states = torch.cat([batch.owned_of(tagger.hidden(batch)) for batch in batches]).double()
    assert len(states) == sum(map(len, text))
    torch.testing.assert_close(tagger.head.mean.double(), states.mean(0), atol=1e-5, rtol=1e-4)
    spread = (states - states.mean(0)).pow(2).mean().sqrt()
    assert float(tagger.head.scale[0] * spread) == pytest.approx(1.0, rel=1e-4)
    assert not tagger.head.mean.is_inference()
