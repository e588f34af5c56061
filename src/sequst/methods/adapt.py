"""Adapting the encoder to the text before anything is labelled: it learns to tell hidden words from the others.

Labelled and unlabelled sentences are read alike. In each step some words are hidden behind the mask token, and the first
sub-word of each is to be predicted, by the encoder's own embeddings. All taggers of the run then start from these weights.
"""

from __future__ import annotations

from collections.abc import Hashable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sequst.tagger.batches import Batch
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.tagger import Tagger
from sequst.training.loop import Examples, PhaseSpec
from sequst.training.objective import Objective
from sequst.training.run import Run
from sequst.training.settings import PhaseSettings

NAME = "adaptation"
HIDE = 0.15
"""Fraction of the words that are hidden in each step."""


def adapt(run: Run) -> None:
    """Adapt the run's encoder to its text, if the encoder has a mask token."""
    if run.encoder is None:  # a BiLSTM has no weights yet that could have read anything
        return
    if run.encoder.tokenizer.mask_token_id is None:
        run.progress.note(f"the encoder {run.settings.encoder} has no mask token, so it is not adapted to the text")
        return
    tagger = run.new_tagger(0, NAME)
    windows = tagger.splitter.windows(run.text)
    words = [[0] * len(sentence) for sentence in run.text]
    for window in windows:
        for place, head in enumerate(window.heads):
            words[window.sentence][window.first + place] = window.ids[head]
    asked = run.settings.adaptation
    settings = PhaseSettings(asked.learning_rate, asked.epochs, min_steps=0, batch_size=asked.batch_size)
    objective = HiddenWords(tagger, HIDE)
    run.train(tagger, PhaseSpec(NAME, 0, settings, Examples(windows, words), objective, hide=HIDE, scored=False))
    run.encoder.load_state_dict(tagger.encoder.state_dict())


class HiddenWords(Objective):
    """Cross-entropy of the first sub-words of hidden words, which are the labels. On top of the encoder a layer that starts at
    the identity, and the word embeddings as the last one. That last product is most of the work, so it is done for twice as
    many words as are hidden on average: a number that the shape of a batch decides, for a step is recorded by its shape."""

    nets_rate = 1e-3

    def __init__(self, tagger: Tagger, share: float) -> None:
        self._share = share
        assert isinstance(tagger.encoder, Transformer)
        table = tagger.encoder.model.get_input_embeddings().weight
        self._layer, self._norm = nn.Linear(tagger.encoder.width, table.shape[1]), nn.LayerNorm(table.shape[1])
        nn.init.eye_(self._layer.weight)
        nn.init.zeros_(self._layer.bias)
        self._bias = nn.ParameterList([torch.zeros(len(table))])
        self.nets = nn.ModuleList([self._layer, self._norm, self._bias])

    def graph_key(self) -> Hashable | None:
        return NAME

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        assert batch.labels is not None
        assert isinstance(tagger.encoder, Transformer)
        table = tagger.encoder.model.get_input_embeddings().weight
        asked = ((batch.input_ids.gather(1, batch.heads) == tagger.encoder.mask_id) & batch.owned).flatten()
        room = min(len(asked), 8 + int(2 * self._share * len(asked)))
        places = torch.argsort(asked.logical_not().to(torch.uint8), stable=True)[:room]  # those that are asked for come first
        asked, labels = asked[places], batch.labels.flatten()[places].clamp(min=0)
        states = tagger.hidden(batch).flatten(0, 1)[places]
        states = self._norm(F.gelu(self._layer(states)))
        scores = (F.linear(states, table) + self._bias[0]).float()  # (room, V)
        count = asked.sum().clamp(min=1)
        losses = F.cross_entropy(scores, labels, reduction="none")
        found = (scores.argmax(-1) == labels) & asked
        return torch.where(asked, losses, 0.0).sum() / count, {"found": found.sum() / count}
