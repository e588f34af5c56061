"""Learning from a batch of unlabelled sentences beside the labelled ones."""

from __future__ import annotations

from sequst.methods.finetune import LabelledWords
from sequst.tagger.batches import Batch, collate
from sequst.tagger.planning import plan
from sequst.tagger.tagger import Tagger
from sequst.training.loop import MAX_TOKENS
from sequst.training.run import Run
from sequst.training.seeds import derive


class BesideLabelledWords(LabelledWords):
    """What objectives share that also see unlabelled batches: all of the sentences over and over, in another order every time.
    All that is drawn depends on a seed and the number of the step or batch, so that a resumed phase sees the same."""

    batch_only = False

    def __init__(self, run: Run, tagger: Tagger) -> None:
        self._seed, self._rows = derive(run.settings.seed, 0, "unlabelled"), run.settings.teacher.batch_size
        self._windows = tagger.splitter.windows([sentence.words for sentence in run.data.unlabeled])
        self._pass, self._plan = 0, self._order(0)
        self._batches = len(self._plan)
        self._step = 0

    def begin_step(self, step: int, steps: int) -> None:
        self._step = step

    def _order(self, passes: int) -> list[list[int]]:
        lengths = [len(window.ids) for window in self._windows]
        return plan(lengths, max_rows=self._rows, max_tokens=MAX_TOKENS, seed=derive(self._seed, "order", passes))

    def unlabelled(self, number: int, tagger: Tagger) -> Batch:
        """The batch of this number, up to as many windows as a labelled one."""
        passes, place = divmod(number, self._batches)
        if passes != self._pass:
            self._pass, self._plan = passes, self._order(passes)
        rows = self._plan[place % len(self._plan)]
        return collate(self._windows, rows, tagger.pad_id).to(tagger.device)
