from __future__ import annotations

import pytest
import torch

from sequst.corpus.sampling import Split
from sequst.tagger.batches import collate
from sequst.tagger.tagger import Tagger
from sequst.training.noise import hide_words


@pytest.mark.parametrize("kind", ["transformer", "bilstm"])
def test_whole_words_are_hidden_and_nothing_else(kind: str, tiny_encoder: str, split: Split) -> None:
    text = [s.words for s in split.labeled]
    tagger = Tagger.from_encoder(
        tiny_encoder if kind == "transformer" else "bilstm", ["O"], text=text, max_length=24, overlap=4
    )
    windows = tagger.splitter.windows([*text, ("zqzqzqzqzq", "x")])
    batch = collate(windows, list(range(len(windows))), tagger.pad_id)
    hidden = hide_words(batch, 0.3, tagger, torch.Generator().manual_seed(1))
    changed, words = 0, 0
    for row, window in enumerate(windows):
        ends = [*window.heads[1:], len(window.ids) - tagger.splitter.closing]
        outside = [i for i in range(hidden.input_ids.shape[1]) if not window.heads or i < window.heads[0] or i >= ends[-1]]
        assert torch.equal(hidden.input_ids[row, outside], batch.input_ids[row, outside])
        for place, (begin, end) in enumerate(zip(window.heads, ends, strict=True)):
            seen = hidden.input_ids[row, begin:end]
            gone = bool((seen == tagger.encoder.mask_id).all()) and not torch.equal(seen, batch.input_ids[row, begin:end])
            assert gone or torch.equal(seen, batch.input_ids[row, begin:end])
            if gone and hidden.spelling is not None:
                assert not hidden.spelling[row, place].any()
            changed, words = changed + gone, words + 1
    assert changed / words == pytest.approx(0.3, abs=0.06)
    again = hide_words(batch, 0.3, tagger, torch.Generator().manual_seed(1))
    assert torch.equal(hidden.input_ids, again.input_ids)
    assert torch.equal(hidden.heads, batch.heads)
