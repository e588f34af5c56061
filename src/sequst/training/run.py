"""A run in progress: what a method needs to train taggers, score them and survive a crash."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sequst.calibration.temperature import fit_temperature
from sequst.corpus.mentions import Mention, Mentions, mentions_of
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError
from sequst.evaluation.evaluate import evaluate
from sequst.files import write_bytes
from sequst.tagger.accel.forward import forward_of
from sequst.tagger.accel.parallel import on_all_cores
from sequst.tagger.batches import Batch
from sequst.tagger.capitals import count_capitals
from sequst.tagger.encoders.shape import BILSTM
from sequst.tagger.tagger import Tagger, labels_of
from sequst.tagger.transitions import count_transitions
from sequst.training.checkpoint import load_state, save_state
from sequst.training.data import Data
from sequst.training.device import make_accelerator
from sequst.training.directory import RunDirectory
from sequst.training.loop import MAX_TOKENS, Diverged, Examples, Hooks, OtherState, PhaseResult, Renew, batches_of, fit
from sequst.training.objective import Objective
from sequst.training.progress import Progress, Silent
from sequst.training.seeds import derive
from sequst.training.settings import Phase, Settings
from sequst.training.tracking import NoTracker, Tracker
from sequst.uncertainty.beliefs import Beliefs, Probabilities, form_beliefs
from sequst.uncertainty.ensembles import mixture
from sequst.uncertainty.labelling import Labelling
from sequst.uncertainty.mc_dropout import dropout_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PhaseStopped(SequstError):
    """A phase whose loss or gradients were not finite: what happened, what is left of it, and what to do."""

    def __init__(self, what: str, left: str, advice: str) -> None:
        super().__init__(f"{what}\n{left}{advice}")
        self.what, self.advice = what, advice


class Run:
    """Settings, data and the directory, with `new_tagger` and `train` on top of them."""

    def __init__(
        self,
        settings: Settings,
        data: Data,
        directory: RunDirectory,
        precision: str,
        progress: Progress | None = None,
        tracker: Tracker | None = None,
    ) -> None:
        self.settings, self.data, self.directory = settings, data, directory
        self.progress: Progress = progress or Silent()
        self.tracker: Tracker = tracker or NoTracker()
        self.labels = labels_of(data.labeled)
        self.accelerator = make_accelerator(settings, precision)
        self.history: list[dict[str, Any]] = []
        """A line for every round of self-training, the first teacher's included."""
        self.last_selection: tuple[Beliefs, NDArray[np.float64]] | None = None
        """Of the last round: what the teacher believed of the unlabelled words, and how much each counted, 0 for those that
        were not selected."""
        self.kept_round: int | None = None
        """The round of self-training whose tagger is kept."""
        self.adapted: dict[str, Tensor] | None = None
        """Weights of an encoder that has read the text, from which all taggers start."""
        self.seconds = 0.0
        """Time spent in phases, those of earlier processes included."""
        directory.clear_metrics()  # what earlier processes recorded is recorded again as the run passes it

    @functools.cached_property
    def text(self) -> list[tuple[str, ...]]:
        """The sentences that are learnt from, labelled and unlabelled: what a vocabulary may know."""
        return [sentence.words for sentence in (*self.data.labeled, *self.data.unlabeled)]

    @functools.cached_property
    def transitions(self) -> dict[str, float]:
        """Which tags follow one another in the labelled sentences, as much as it is to count; a CRF learns that by itself."""
        strength = self.settings.transitions if self.settings.head == "softmax" else 0.0
        found = count_transitions((sentence.tags or () for sentence in self.data.labeled), self.labels)
        return {kind: strength * score for kind, score in found.items()} if strength else {}

    @functools.cached_property
    def capitals(self) -> dict[str, list[float]]:
        """How the words of every tag are written in the labelled sentences, as much as it is to count."""
        strength = self.settings.capitals
        if not strength:
            return {}
        found = count_capitals(((sentence.words, sentence.tags or ()) for sentence in self.data.labeled), self.labels)
        return {tag: [strength * score for score in scores] for tag, scores in found.items()}

    def new_tagger(self, *place: object) -> Tagger:
        """A tagger fresh from the pretrained weights; the head's first weights, and all of an encoder that is not pretrained,
        depend on the place (round, phase)."""
        tagger = Tagger.from_encoder(
            self.settings.encoder,
            self.labels,
            max_length=self.settings.max_length,
            overlap=self.settings.overlap,
            head=self.settings.head,
            constrained=self.settings.crf.constrained,
            valid=self.settings.valid_tags,
            transitions=self.transitions,
            capitals=self.capitals,
            seed=derive(self.settings.seed, *place, "head"),
            text=self.text,
            shape=self.settings.bilstm,
        )
        if self.adapted is not None:
            tagger.encoder.load_state_dict(self.adapted)
        return tagger.to(self.accelerator.device)

    def examples(self, tagger: Tagger, sentences: list[Sentence]) -> Examples:
        """Tagged sentences as windows with labels."""
        windows = tagger.splitter.windows([s.words for s in sentences])
        return Examples(windows, [tagger.label_ids(s.tags or ()) for s in sentences])

    def swapping(self, tagger: Tagger, phase: Phase, round_: int, name: str, found: Iterable[Mention] = ()) -> Renew:
        """The labelled sentences anew for every epoch, with others of their type in the place of some entities, labelled or
        `found`, where the phase asks for it."""
        if not phase.swap:
            return None
        mentions = Mentions([*mentions_of(self.data.labeled), *found])

        def renew(epoch: int) -> Examples:
            rng = np.random.default_rng(derive(self.settings.seed, round_, name, "swap", epoch))
            return self.examples(tagger, [mentions.swapped(sentence, phase.swap, rng) for sentence in self.data.labeled])

        return renew

    def dev_f1(self, tagger: Tagger) -> float:
        return evaluate(tagger, self.data.dev).total.f1

    def train(
        self,
        tagger: Tagger,
        examples: Examples,
        objective: Objective,
        phase: Phase,
        round_: int,
        name: str,
        renew: Renew = None,
        scored: bool = True,
    ) -> PhaseResult:
        """Run one phase, or take its result from disk where an earlier process has finished it. `renew`: see `fit`. What is not
        `scored` on the dev set is kept as it is at the end."""
        outcome = self._train(tagger, examples, objective, phase, round_, name, renew, scored)
        self.seconds += outcome.seconds
        return outcome

    def _train(
        self, tagger: Tagger, examples: Examples, objective: Objective, phase: Phase, round_: int, name: str, renew: Renew,
        scored: bool,
    ) -> PhaseResult:  # fmt: skip
        done = self.directory.outcome(round_, name)
        if done is not None:
            for line in done["lines"]:
                self.record(line)
            tagger.load_state_dict(done["tagger"])
            tagger.eval()
            return PhaseResult(**done["outcome"])
        saved = self.directory.phase(round_, name) / "state.pt"
        state = load_state(saved) if saved.is_file() else None
        lines: list[dict[str, Any]] = []

        def record(line: dict[str, Any]) -> None:
            lines.append({"round": round_, "phase": name, **line})
            self.record(lines[-1])

        for line in state.pop("lines") if state is not None else []:
            record(line)
        hooks = Hooks(
            score=self.dev_f1 if self.data.dev and scored else None,
            record=record,
            save=lambda state: save_state(saved, {**state, "lines": lines}),
            save_every=self.settings.checkpoint_seconds,
            progress=self.progress,
            name=name if round_ == 0 else f"round {round_}: {name}",
        )
        seed = derive(self.settings.seed, round_, name)
        try:
            outcome = fit(
                tagger, examples, objective, self._with_rates(phase), self.accelerator, seed, hooks, state,
                self.settings.crf.learning_rate, renew,
            )  # fmt: skip
        except OtherState:
            raise SequstError(
                f"{saved}: phase {name} of round {round_} was begun by another version of sequst\n"
                "Go on with that version, or delete the file to begin the phase anew"
            ) from None
        except Diverged as stop:
            raise self._explain(stop, tagger, phase, round_, name, objective.exact) from None
        except torch.OutOfMemoryError as error:
            group, _, _ = name.partition("-")
            raise SequstError(
                f"phase {name} of round {round_}: the GPU has too little memory ({str(error).splitlines()[0]})\n"
                f"Use smaller batches, e.g. --set {group}.batch_size={max(1, phase.batch_size // 2)}, or a smaller max_length"
            ) from None
        finally:
            self.progress.end()
        if tagger.device.type == "cuda":
            torch.cuda.empty_cache()  # what steps were recorded in: no other phase can use it, and other processes may
        result = {"outcome": dataclasses.asdict(outcome), "lines": lines}
        self.directory.finish_phase(round_, name, tagger.state_dict(), result)
        return outcome

    def _with_rates(self, phase: Phase) -> Phase:
        """The phase at the rates that its encoder needs."""
        factor = self.settings.bilstm.rate if self.settings.encoder == BILSTM else 1.0
        rates = {name: factor * getattr(phase, name) for name in ("learning_rate", "head_learning_rate")}
        return dataclasses.replace(phase, **rates)

    def beliefs(
        self,
        teachers: Sequence[Tagger],
        round_: int,
        labelling: Labelling,
        *,
        uncertain: bool,
        before: Beliefs | None = None,
    ) -> Beliefs:
        """What the teachers believe of the unlabelled words; kept on disk, so that a resumed run does not ask again.

        The passes of MC dropout are made where it must be known how `uncertain` a teacher is, or where labels are their mean.
        `before` is what the round before believed.
        """
        path = self.directory.beliefs(round_)
        if not path.is_file():
            memory, seed = self.settings.ensemble.memory, self.settings.seed
            mixed = len(teachers) > 1 or memory > 0
            passes = self.settings.uncertainty.passes if uncertain or labelling.kind == "mean" else 0
            draw = derive(seed, round_, "labels")
            begun = time.perf_counter()
            words = sum(len(sentence.words) for sentence in self.data.unlabeled)
            self.progress.begin(f"round {round_}: beliefs", len(teachers) * words, unit="words")
            try:
                members = []
                for number, teacher in enumerate(teachers):
                    own = derive(seed, round_, "beliefs", *([number] if number else []))
                    drawn = draw if labelling.kind == "sampled" and not mixed else None
                    form = functools.partial(self._believe, teacher, passes, own, labelling.needs(passes, mixed))
                    members.append(form(self.data.unlabeled, drawn, self.progress.advance))
            finally:
                self.progress.end()
            found = mixture(members, [1.0] * len(members)) if len(members) > 1 else members[0]
            if before is not None and memory > 0:
                found = mixture([found, before], [1.0 - memory, memory])
            found = labelling.apply(found, self.labels, draw, mixed)
            if mixed and not labelling.soft and memory == 0:  # labels have been made of them, and nobody asks again
                found = dataclasses.replace(found, probabilities=None)
            found = dataclasses.replace(found, seconds=time.perf_counter() - begun)
            self.directory.written()  # never beliefs without the teacher that they are of
            write_bytes(path, found.to_bytes(), "free some space, then continue with --resume")
        beliefs = Beliefs.from_file(path)
        self.seconds += beliefs.seconds
        return beliefs

    def labelling(self, kind: str | None, selects: bool) -> Labelling:
        """Pseudo-labels as the settings ask for them, or of this kind, for a method that selects words or takes all."""
        settings = self.settings
        rest = settings.selection.rest if selects else "dropped"
        links = tuple(self.transitions.items())
        return Labelling(kind or settings.pseudo_labels, settings.sharpness, settings.valid_tags, rest, links)

    def _believe(
        self, teacher: Tagger, passes: int, seed: int, needs: Probabilities, sentences: Sequence[Sentence],
        draw: int | None = None, advance: Callable[[int], None] = lambda words: None,
    ) -> Beliefs:  # fmt: skip
        uncertainty = self.settings.uncertainty
        with self.accelerator.autocast(), dropout_rate(teacher, uncertainty.dropout):
            temperature = fit_temperature(teacher, self.data.dev) if uncertainty.calibrated else 1.0
            return form_beliefs(
                teacher, sentences, passes, seed, probabilities=needs, last_layers=uncertainty.last_layers,
                temperature=temperature, draw=draw, advance=advance,
            )  # fmt: skip

    def keep_selection(
        self, round_: int, beliefs: Beliefs, selected: NDArray[np.bool_], weights: NDArray[np.float64] | None
    ) -> None:
        """Remember which words a round selected, here with their weights for the report, and on disk for whoever keeps the
        rounds."""
        self.last_selection = beliefs, selected.astype(np.float64) if weights is None else np.where(selected, weights, 0.0)
        self.directory.keep_selection(round_, selected)

    def pseudo_examples(
        self, tagger: Tagger, beliefs: Beliefs, selected: NDArray[np.bool_], labelling: Labelling, *,
        weights: NDArray[np.float64] | None = None, all_sentences: bool = False,
    ) -> Examples:  # fmt: skip
        """The unlabelled sentences with the teachers' labels, their words with `weights` or all alike, and the labelled ones
        if they are to be mixed in; sentences without a word that counts are left out, unless `all_sentences` are asked for."""
        targets, counts = labelling.targets(beliefs, selected, weights, len(self.labels)), selected | labelling.learns_rest
        bounds = [slice(*pair) for pair in itertools.pairwise(beliefs.starts.tolist())]
        kept = [i for i, place in enumerate(bounds) if all_sentences or counts[place].any()]
        words = [self.data.unlabeled[i].words for i in kept]
        found: list[NDArray[Any]] = [targets[bounds[i]] for i in kept]
        counted = [counts[bounds[i]].tolist() for i in kept]
        for sentence in self.data.labeled if self.settings.mix_labeled else ():
            truth = np.array(tagger.label_ids(sentence.tags or ()))
            words.append(sentence.words)
            found.append(np.eye(len(self.labels), dtype=np.float32)[truth] if targets.ndim == 2 else truth)
            counted.append([True] * len(truth))
        return Examples(tagger.splitter.windows(words), found, counted)

    def renewed(self, examples: Examples, beliefs: Beliefs, selected: NDArray[np.bool_], labelling: Labelling) -> Examples:
        """Pseudo-examples of all sentences with other words selected; those of labelled ones all count, as before."""
        assert examples.selected is not None
        bounds = [slice(*pair) for pair in itertools.pairwise(beliefs.starts.tolist())]
        if labelling.learns_rest:  # all words count as before, and other ones have their label alone
            targets = labelling.targets(beliefs, selected)
            return examples._replace(labels=[*(targets[place] for place in bounds), *examples.labels[len(bounds) :]])
        counted = [selected[place].tolist() for place in bounds]
        return examples._replace(selected=[*counted, *examples.selected[len(counted) :]])

    def end_round(self, line: dict[str, Any]) -> None:
        """Keep and tell what a round brought."""
        self.history.append(line)
        self.record({"phase": "round", **line})
        self.progress.round(line)

    def finished_tagger(self, round_: int, name: str) -> Tagger:
        """The tagger that a finished phase left."""
        done = self.directory.outcome(round_, name)
        assert done is not None
        tagger = self.new_tagger(round_, name)
        tagger.load_state_dict(done["tagger"])
        return tagger.eval()

    def record(self, line: dict[str, Any]) -> None:
        """Add a line to metrics.jsonl. A method that records between phases does so again when the run is resumed."""
        self.directory.record(line)
        self.tracker.log(line)

    def _explain(self, stop: Diverged, tagger: Tagger, phase: Phase, round_: int, name: str, exact: bool) -> PhaseStopped:
        """Keep the last weights that were good, and say so. A phase has the name of its settings."""
        told = f"phase {name} of round {round_}: {stop.what} is not finite at step {stop.step} of {stop.steps}"
        own, _, _ = name.partition("-")
        settings = getattr(self.settings, own)
        given = own if settings.learning_rate == phase.learning_rate else "teacher"  # whose rate another is a share of
        rate = getattr(self.settings, given).learning_rate
        advice = f"Begin a new run with a lower rate, e.g. --set {given}.learning_rate={rate / 4:g}"
        if self.accelerator.mixed_precision != "no" and not exact:
            advice += ", or with --set precision=fp32"
        if stop.good_step == 0:
            return PhaseStopped(told, "", advice)
        kept = self.directory.phase(round_, name) / "last-good"
        tagger.eval()
        tagger.save(kept, {"stopped": str(stop)})
        return PhaseStopped(told, f"The tagger after step {stop.good_step}, still good, is in {kept}. ", advice)

    @torch.no_grad()
    def standardise(self, tagger: Tagger, examples: Examples, exact: bool = False) -> None:
        """Give the head the centre and scale of the hidden states of these examples, as the encoder now makes them: in the
        precision of the run, or in fp32."""
        if not self.settings.standardise:
            return
        tagger.eval()
        width = tagger.head.linear.in_features
        total = torch.zeros(width, dtype=torch.float64, device=tagger.device)
        squares, count = torch.zeros_like(total), 0
        with contextlib.nullcontext() if exact else self.accelerator.autocast(), forward_of(tagger) as forward:

            def sums(batch: Batch) -> tuple[Tensor, Tensor, int]:
                states = batch.owned_of(forward.hidden(batch)).double()  # (N, H)
                return states.sum(0), states.pow(2).sum(0), len(states)

            batches = batches_of(examples, tagger, min(MAX_TOKENS, forward.token_budget))
            for more, more_squares, words in on_all_cores(tagger, forward, sums, batches):
                total, squares, count = total + more, squares + more_squares, count + words
        mean = total / count
        spread = (squares / count - mean.pow(2)).mean().clamp(min=0).sqrt()
        tagger.head.standardise(mean, float(spread))
