"""Unlabelled sentences for methods that learn from a batch of them in a step."""

from __future__ import annotations

from collections.abc import Sequence

from sequst.corpus.sentence import Sentence
from sequst.tagger.batches import Batch, collate
from sequst.tagger.planning import plan
from sequst.tagger.tagger import Tagger
from sequst.training.loop import MAX_TOKENS
from sequst.training.seeds import derive


class UnlabelledBatches:
    """All of the sentences over and over, in another order every time. Which batch it is the turn of depends on the seed and
    its number alone, so that a resumed phase sees the same."""

    def __init__(self, tagger: Tagger, sentences: Sequence[Sentence], rows: int, seed: int) -> None:
        self._windows = tagger.splitter.windows([sentence.words for sentence in sentences])
        self._rows, self._seed = rows, seed
        self._pass, self._plan = 0, self._order(0)
        self._batches = len(self._plan)

    def _order(self, passes: int) -> list[list[int]]:
        lengths = [len(window.ids) for window in self._windows]
        return plan(lengths, max_rows=self._rows, max_tokens=MAX_TOKENS, seed=derive(self._seed, "order", passes))

    def batch(self, number: int, tagger: Tagger) -> Batch:
        passes, place = divmod(number, self._batches)
        if passes != self._pass:
            self._pass, self._plan = passes, self._order(passes)
        rows = self._plan[place % len(self._plan)]
        return collate(self._windows, rows, tagger.pad_id).to(tagger.device)
