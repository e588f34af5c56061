"""A run: what a method needs to train and score taggers and survive a crash."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError
from sequst.evaluation.evaluate import evaluate
from sequst.tagger.accel.forward import forward_of
from sequst.tagger.accel.parallel import on_all_cores
from sequst.tagger.batches import Batch
from sequst.tagger.capitals import count_capitals
from sequst.tagger.encoders.shape import BILSTM, BiLstmShape
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.tagger import Tagger, labels_of
from sequst.tagger.transitions import count_transitions
from sequst.training.checkpoint import load_state, save_state
from sequst.training.data import Data, Pool
from sequst.training.device import make_accelerator
from sequst.training.directory import RunDirectory
from sequst.training.loop import MAX_TOKENS, Diverged, Examples, Hooks, PhaseResult, PhaseSpec, batches_of, fit
from sequst.training.progress import Progress, Tracker
from sequst.training.seeds import derive
from sequst.training.settings import PhaseSettings, Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequst.uncertainty.beliefs import Beliefs

BILSTM_RATE = 20.0
"""A BiLSTM is not pretrained, so it and its head learn at this multiple of the rates."""


class PhaseStopped(SequstError):
    """A phase stopped because its loss or gradients were not finite."""


class Run:
    """Settings, data and run directory, with `new_tagger` and `train`."""

    def __init__(
        self,
        settings: Settings,
        data: Data,
        encoder: Transformer | None,
        directory: RunDirectory,
        precision: str,
        progress: Progress | None = None,
        tracker: Tracker | None = None,
    ) -> None:
        self.settings, self.data, self.directory = settings, data, directory
        self.encoder = encoder
        """The transformer that all taggers start from; None for a BiLSTM."""
        self.progress: Progress = progress or Progress()
        self.tracker: Tracker = tracker or Tracker()
        self.labels = labels_of(data.labeled)
        self.accelerator = make_accelerator(settings, precision)
        self.history: list[dict[str, Any]] = []
        """One line for each round of self-training, round 0 included."""
        self.last_selection: tuple[Pool, Beliefs, NDArray[np.float64]] | None = None
        """The sentences of the last round, beliefs about their words, and the weights of these; 0 = not selected."""
        self.kept_round: int | None = None
        """The round of self-training whose tagger is kept."""
        self.seconds = 0.0
        """Time spent in phases, including those before a resume."""
        directory.clear_metrics()  # what earlier processes recorded is recorded again as the run passes it

    @functools.cached_property
    def text(self) -> list[tuple[str, ...]]:
        """Words of the labelled and unlabelled sentences."""
        return [sentence.words for sentence in (*self.data.labeled, *self.data.unlabeled)]

    def pool(self, round_: int) -> Pool:
        """The unlabelled sentences of a round."""
        return self.data.pool(round_, self.settings.round_size)

    @functools.cached_property
    def transitions(self) -> dict[str, float]:
        """The weighted tag transitions of the labelled sentences; none for a CRF, which learns its own."""
        weight = self.settings.transitions if self.settings.head == "softmax" else 0.0
        found = count_transitions((sentence.tags or () for sentence in self.data.labeled), self.labels)
        return {kind: weight * score for kind, score in found.items()} if weight else {}

    @functools.cached_property
    def capitals(self) -> dict[str, list[float]]:
        """The weighted capitalisation prior of the labelled sentences."""
        weight = self.settings.capitals
        if not weight:
            return {}
        found = count_capitals(((sentence.words, sentence.tags or ()) for sentence in self.data.labeled), self.labels)
        return {tag: [weight * score for score in scores] for tag, scores in found.items()}

    def new_tagger(self, *place: object) -> Tagger:
        """A new tagger on the pretrained weights. The place (round, phase) seeds the head, and an encoder that is not
        pretrained."""
        tagger = Tagger.from_encoder(
            self.encoder or BILSTM,
            self.labels,
            max_length=self.settings.max_length,
            overlap=self.settings.overlap,
            head=self.settings.head,
            valid=self.settings.valid_tags,
            transitions=self.transitions,
            capitals=self.capitals,
            seed=derive(self.settings.seed, *place, "head"),
            text=self.text,
            shape=BiLstmShape(**dataclasses.asdict(self.settings.bilstm)),
        )
        return tagger.to(self.accelerator.device)

    def finished_tagger(self, round_: int, name: str) -> Tagger:
        """The tagger of a finished phase."""
        done = self.directory.outcome(round_, name)
        assert done is not None
        tagger = self.new_tagger(round_, name)
        tagger.load_state_dict(done["tagger"])
        return tagger.eval()

    def examples(self, tagger: Tagger, sentences: Sequence[Sentence]) -> Examples:
        """Tagged sentences as windows with labels."""
        windows = tagger.splitter.windows([s.words for s in sentences])
        return Examples(windows, [tagger.label_ids(s.tags or ()) for s in sentences])

    def train(self, tagger: Tagger, spec: PhaseSpec) -> PhaseResult:
        """Run one phase, or load its result if it is already finished."""
        done = self.directory.outcome(spec.round, spec.name)
        if done is not None:
            for line in done["lines"]:
                self.record(line)
            tagger.load_state_dict(done["tagger"])
            tagger.eval()
            result = PhaseResult(**done["outcome"])
        else:
            lines: list[dict[str, Any]] = []
            result = self._fit(tagger, spec, lines)
            kept = {"outcome": dataclasses.asdict(result), "lines": lines}
            self.directory.finish_phase(spec.round, spec.name, tagger.state_dict(), kept)
        self.seconds += result.seconds
        return result

    def _fit(self, tagger: Tagger, spec: PhaseSpec, lines: list[dict[str, Any]]) -> PhaseResult:
        """Train, or continue from a checkpoint. Recorded metrics are appended to the lines."""
        saved = self.directory.phase(spec.round, spec.name) / "state.pt"
        state = load_state(saved) if saved.is_file() else None

        def record(line: dict[str, Any]) -> None:
            lines.append({"round": spec.round, "phase": spec.name, **line})
            self.record(lines[-1])

        for line in state.pop("lines") if state is not None else []:
            record(line)
        hooks = Hooks(
            score=(lambda tagger: evaluate(tagger, self.data.dev).total.f1) if self.data.dev and spec.scored else None,
            record=record,
            save=lambda state: save_state(saved, {**state, "lines": lines}),
            save_every=self.settings.checkpoint_seconds,
            progress=self.progress,
        )
        seed = derive(self.settings.seed, spec.round, spec.name)
        try:
            result = fit(tagger, self._completed(spec), self.accelerator, seed, hooks, state)
        except Diverged as stop:
            raise self._explain(stop, spec) from None
        except torch.OutOfMemoryError as error:
            group, _, _ = spec.name.partition("-")
            raise SequstError(
                f"phase {spec.name} of round {spec.round}: the GPU has too little memory ({str(error).splitlines()[0]})\n"
                f"Use smaller batches, e.g. --set {group}.batch_size={max(1, spec.settings.batch_size // 2)}, or a smaller "
                "max_length"
            ) from None
        finally:
            self.progress.end()
        if tagger.device.type == "cuda":
            torch.cuda.empty_cache()  # what steps were recorded in: no other phase can use it, and other processes may
        return result

    def _completed(self, spec: PhaseSpec) -> PhaseSpec:
        """The phase with the settings that all phases share."""
        factor = BILSTM_RATE if self.settings.encoder == BILSTM else 1.0
        settings = dataclasses.replace(spec.settings, learning_rate=factor * spec.settings.learning_rate)
        evaluations = self.settings.evaluations if spec.scored else 1
        return dataclasses.replace(spec, settings=settings, head_rate=self.settings.head_rate, evaluations=evaluations)

    def end_round(self, line: dict[str, Any]) -> None:
        """Record the result of a round."""
        self.history.append(line)
        self.record({"phase": "round", **line})

    def record(self, line: dict[str, Any]) -> None:
        """Add a line to metrics.jsonl. A method that records between phases does so again when the run is resumed."""
        self.directory.record(line)
        self.tracker.log(line)

    def _explain(self, stop: Diverged, spec: PhaseSpec) -> PhaseStopped:
        """A phase has the name of its settings."""
        own, _, _ = spec.name.partition("-")
        settings: PhaseSettings = getattr(self.settings, own)
        given = own if settings.learning_rate == spec.settings.learning_rate else "teacher"  # whose rate another is a share of
        rate = getattr(self.settings, given).learning_rate
        advice = f"Begin a new run with a lower rate, e.g. --set {given}.learning_rate={rate / 4:g}"
        if self.accelerator.mixed_precision != "no" and not spec.objective.needs_fp32:
            advice += ", or with --set precision=fp32"
        return PhaseStopped(f"phase {spec.name} of round {spec.round}: {stop}\n{advice}")

    @torch.no_grad()
    def standardise(self, tagger: Tagger, examples: Examples, fp32: bool = False) -> None:
        """Set the head's centre and scale from the hidden states of these examples, computed in the run's precision or in
        fp32."""
        if not self.settings.standardise:
            return
        tagger.eval()
        width = tagger.head.linear.in_features
        total = torch.zeros(width, dtype=torch.float64, device=tagger.device)
        squares, count = torch.zeros_like(total), 0
        with contextlib.nullcontext() if fp32 else self.accelerator.autocast(), forward_of(tagger) as forward:

            def sums(batch: Batch) -> tuple[Tensor, Tensor, int]:
                states = batch.owned_of(forward.hidden(batch)).double()  # (N, H)
                return states.sum(0), states.pow(2).sum(0), len(states)

            batches = batches_of(examples, tagger, min(MAX_TOKENS, forward.token_budget))
            for more, more_squares, words in on_all_cores(tagger, forward, sums, batches):
                total, squares, count = total + more, squares + more_squares, count + words
        mean = total / count
        spread = (squares / count - mean.pow(2)).mean().clamp(min=0).sqrt()
        tagger.head.standardise(mean, float(spread))
