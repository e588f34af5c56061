"""Settings: nested dataclasses with a docstring for every field, checked when built. `configure` reads and writes them."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Collection
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import PurePath
from typing import Any

from sequst.errors import UsageError, shorten
from sequst.files import as_json
from sequst.tagger.encoders.shape import BILSTM


@dataclass(frozen=True)
class PhaseSettings:
    """One training phase: AdamW, linear warm-up, linear decay to zero."""

    learning_rate: float = 1e-4
    """Peak learning rate of the encoder."""
    epochs: float = 5.0
    """Passes over the data, unless `min_steps` or `max_steps` decides."""
    min_steps: int = 600
    """Steps to take at least, though not in more than 150 passes: a few dozen sentences need many more than `epochs`."""
    max_steps: int = 0
    """Steps to take at most; 0 = no limit."""
    batch_size: int = 8
    """Sentences (windows of long ones) in a step."""


@dataclass(frozen=True)
class StudentSettings(PhaseSettings):
    """The phase in which a student learns pseudo-labels."""

    epochs: float = 4.0
    min_steps: int = 500
    batch_size: int = 32
    hide: float = 0.15
    """Fraction of words replaced by the mask token in each step."""


@dataclass(frozen=True)
class Adaptation:
    """Masked language modelling on the text before anything is labelled."""

    learning_rate: float = 5e-5
    """Peak learning rate of the encoder."""
    epochs: float = 5.0
    """Passes over the text."""
    batch_size: int = 32
    """Sentences in a step."""


@dataclass(frozen=True)
class Uncertainty:
    """How the teacher's uncertainty is measured."""

    passes: int = 5
    """MC dropout passes over the unlabelled words, T in the paper."""
    last_layers: int = 0
    """Drop out only in this many last layers: faster, an approximation. 0 = all."""


SHARE = 0.5
"""The paper's fraction of the words of a sentence."""


@dataclass(frozen=True)
class Selection:
    """Which pseudo-labelled words the student learns."""

    selector: str = "weighed-of-class"
    """`weighed-of-class`: all words, weighted by their scores within each predicted class; `sampled`: a fraction of each
    sentence, drawn by the scores (Eq. 7, 8); `all`: all words alike."""
    share: float = SHARE
    """Fraction of the words of a sentence that `sampled` draws, at least one."""
    power: float = 1.0
    """Exponent of the scores: the larger, the less doubtful words count."""


@dataclass(frozen=True)
class Ensemble:
    """Several teachers and students: students learn the mean of what their teachers believe."""

    teachers: int = 1
    """First teachers, fine-tuned from different seeds."""
    students: int = 1
    """Students in each round, from different seeds. The best of the last round is kept."""


@dataclass(frozen=True)
class Robust:
    """The loss of pseudo-labelled words."""

    loss: str = "phce"
    """`phce` (Eq. 11) or `cross-entropy`."""
    tau: float = 0.0
    """PHCE is linear below p = 1/tau. 0 = the larger of 10 and 1.25 times the number of tags."""
    warmup: float = 0.3
    """Fraction of the student's steps that use cross-entropy before PHCE, which would stall a new student."""


@dataclass(frozen=True)
class Gcr:
    """Gaussian-based consistency regularisation."""

    weight: float = 0.5
    """Weight in the student's loss, lambda in the paper. 0 = off."""
    samples: int = 3
    """Perturbations of each word, K in the paper."""


@dataclass(frozen=True)
class Vat:
    """Virtual adversarial training."""

    weight: float = 0.03
    """Weight of the adversarial divergence beside the loss of labelled words."""
    epsilon: float = 1.0
    """Length of the perturbation of a sentence, in mean norms of its word embeddings."""
    paths: int = 3
    """Best paths that SeqVAT's sequence divergence tells apart, k in its paper."""


@dataclass(frozen=True)
class Cvt:
    """Cross-view training."""

    weight: float = 0.1
    """Weight of the divergence of every auxiliary head from the primary one."""


@dataclass(frozen=True)
class MetaSt:
    """Meta self-training."""

    rate: float = 0.01
    """Learning rate of the virtual step."""
    warmup: float = 0.3
    """Fraction of a student's steps in which all words weigh the same."""


@dataclass(frozen=True)
class Bilstm:
    """The encoder `bilstm`."""

    vectors: str = ""
    """Word vectors: `glove` (GloVe 6B, 50 dimensions, an installed package) or a text file. Empty = learnt ones."""
    layers: int = 2
    """Bidirectional layers; a word's state is the output of all of them."""
    hidden: int = 128
    """Size of a layer's state in each direction."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers of a run, but for the data."""

    method: str = "auto"
    """Training method; `sequst methods` lists them. `auto` = SeqUST; SST for one round; fine-tuning without text."""
    encoder: str = "minilm"
    """`minilm`, a local folder, a model of the Hugging Face hub, or `bilstm`, which is not pretrained."""
    head: str = "softmax"
    """`softmax`, each word by itself, or `crf`, a linear chain over the words of a sentence."""
    seed: int = 12
    """Decides every random choice: the same settings, seed and machine give the same numbers."""
    max_length: int = 64
    """Longest window, in sub-words with special tokens (of a `bilstm`, in words). Longer sentences are split."""
    overlap: int = 16
    """Sub-words that a window shares with the one before it."""
    valid_tags: bool = True
    """With a softmax head, decode the best path that IOB2 allows, not the best tag of each word."""
    transitions: float = 1.0
    """With `valid_tags`, weight of the tag transitions counted in the labelled sentences. 0 = off."""
    capitals: float = 0.0
    """Weight of a capitalisation prior, for uncased encoders. 0 = off."""
    standardise: bool = True
    """Centre and scale the hidden states before the head with statistics of the labelled data."""
    head_rate: float = 2.0
    """The head learns at this multiple of the encoder's rate."""
    evaluations: int = 5
    """How often a phase scores the dev set; the best weights are kept. Without a dev set the last are."""
    dev_fraction: float = 0.0
    """Fraction of the labelled sentences to set aside as dev set. 0 = none."""
    dev_shots: int = 0
    """Labelled sentences of each type to set aside as dev set, at most half of a type's. 0 = none."""
    learn_judging: bool = False
    """Learn from the sentences marked for judging too. By default they are the dev set."""
    calibrate: bool = True
    """With a dev set, fit the final confidences of words and entities to it."""
    abstain: bool = True
    """With `calibrate`, leave out entities whose confidence says that they lower F1."""
    calibration_shift: float = 0.23
    """Logits that `calibrate` subtracts from entity confidences, because a few-shot dev set that also chose the weights makes
    them look too sure. 0 where your dev set is a fair sample of your text."""
    device: str = "auto"
    """`auto` (the GPU if there is one), `cpu` or `cuda`."""
    precision: str = "auto"
    """`fp32`, `bf16`, or `auto`: bf16 where the machine has it and it is faster: for transformers of 80 million parameters
    and more on a GPU, of 10 million on a CPU."""
    deterministic: bool = True
    """On a GPU, choose deterministic kernels, so that the same seed gives the same numbers there too."""
    checkpoint_seconds: float = 60.0
    """A phase saves a checkpoint at the end of an epoch, if this long has passed since the last."""
    keep_rounds: bool = False
    """Keep the weights of every phase when the run has ended, not only the final model."""
    max_rounds: int = 4
    """Rounds of self-training; with `choose: best`, at most."""
    round_size: int = 4000
    """Unlabelled sentences that a round learns from; where the text has more, each round draws others. 0 = all of the text."""
    patience: int = 2
    """With `choose: best`, stop when the dev F1 has not risen for this many rounds."""
    keep: str = "teacher"
    """Which tagger of a round to keep: the `teacher` (the student, re-tuned on the labelled data) or the `student`."""
    choose: str = "last"
    """Which round to keep: the `best` on the dev set, or the `last` unless it broke down."""
    adapt: bool = False
    """Adapt the encoder to the text first, by masked language modelling."""
    bilstm: Bilstm = field(default_factory=Bilstm)
    """The encoder `bilstm`."""
    adaptation: Adaptation = field(default_factory=Adaptation)
    """Masked language modelling, with `adapt`."""
    teacher: PhaseSettings = field(default_factory=PhaseSettings)
    """Fine-tuning on the labelled data."""
    student: StudentSettings = field(default_factory=StudentSettings)
    """Learning the pseudo-labelled words, from the encoder's first weights, in each round."""
    retune: PhaseSettings = field(default_factory=lambda: PhaseSettings(learning_rate=5e-5, min_steps=200))
    """Fine-tuning the student on the labelled data, which makes it the next teacher."""
    uncertainty: Uncertainty = field(default_factory=Uncertainty)
    """How the teacher's uncertainty is measured."""
    selection: Selection = field(default_factory=Selection)
    """Which pseudo-labelled words the student learns."""
    ensemble: Ensemble = field(default_factory=Ensemble)
    """Several teachers and students."""
    robust: Robust = field(default_factory=Robust)
    """The loss of pseudo-labelled words."""
    gcr: Gcr = field(default_factory=Gcr)
    """Gaussian-based consistency regularisation."""
    vat: Vat = field(default_factory=Vat)
    """Virtual adversarial training."""
    cvt: Cvt = field(default_factory=Cvt)
    """Cross-view training."""
    metast: MetaSt = field(default_factory=MetaSt)
    """Meta self-training."""

    def __post_init__(self) -> None:
        _check_ranges(self)
        if self.selection.selector != "sampled" and self.selection.share != SHARE:
            raise UsageError(
                f"setting selection.share: the selector {self.selection.selector} takes every word; leave it out, or set "
                "selection.selector=sampled"
            )

    def hash(self, unused: Collection[str] = ()) -> str:
        """Equal for settings that differ in nothing but the seed, where they ran, and names that the method does not use."""
        without = {"seed", "device", "checkpoint_seconds", "keep_rounds", *unused}
        without |= {"adapt"} if self.encoder == BILSTM else {"bilstm"}
        without |= set() if self.learn_judging else {"learn_judging"}  # as before there was such a setting
        kept = {name: value for name, value in to_dict(self).items() if name not in without}
        kept["encoder"] = PurePath(self.encoder).name  # the same weights may lie in other folders elsewhere
        if self.encoder == BILSTM:
            kept["bilstm"]["vectors"] = PurePath(self.bilstm.vectors).name
        return hashlib.sha256(as_json(kept, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:12]


SELECTORS = ("all", "sampled", "weighed-of-class")
_CHOICES = {
    "precision": ("auto", "fp32", "bf16"),
    "selector": SELECTORS,
    "choose": ("best", "last"),
    "loss": ("phce", "cross-entropy"),
    "keep": ("teacher", "student"),
    "head": ("softmax", "crf"),
}
_POSITIVE = {"learning_rate", "head_rate", "epochs", "batch_size", "max_length", "passes", "samples", "patience", "max_rounds"}
_POSITIVE |= {"epsilon", "paths", "teachers", "students", "layers", "hidden", "rate"}
_LARGEST = {"seed": 2**63 - 1, "learning_rate": 1e30, "rate": 10, "layers": 100, "hidden": 10_000}
_LARGEST |= dict.fromkeys(("head_rate", "weight", "transitions", "capitals", "calibration_shift", "power", "epsilon"), 1000)
_FRACTIONS = {"warmup", "dev_fraction", "hide"}
_MAY_BE_ZERO = {
    "min_steps",
    "max_steps",
    "evaluations",
    "overlap",
    "checkpoint_seconds",
    "seed",
    "weight",
    "dev_shots",
    "round_size",
}
_MAY_BE_ZERO |= {"last_layers", "power", "calibration_shift", "transitions", "capitals"}


_LONGEST = 4096
"""Characters of a text: no path has more."""


def _check_ranges(settings: Any, prefix: str = "") -> None:
    for item in fields(settings):
        name, value = prefix + item.name, getattr(settings, item.name)
        if is_dataclass(value):
            _check_ranges(value, f"{name}.")
        elif isinstance(value, str):
            if len(value) > _LONGEST:
                raise UsageError(f"setting {name}={shorten(value)}: must have at most {_LONGEST:,} characters")
            if value not in _CHOICES.get(item.name, (value,)):
                raise UsageError(f"setting {name}={shorten(value)}: must be one of {', '.join(_CHOICES[item.name])}")
        elif expected := _range_missed(item.name, value):
            raise UsageError(f"setting {name}={shorten(value)}: must be {expected}")


def _range_missed(leaf: str, value: float) -> str:
    """What a number should be and is not; empty where it is fine."""
    largest = _LARGEST.get(leaf, 10**9)
    ranges = (
        (not abs(value) < math.inf, "a finite number"),
        (abs(value) > largest, f"at most {largest}"),
        (leaf == "share" and not 0 < value <= 1, "above 0 and at most 1"),
        (leaf == "tau" and value != 0 and value < 1, "0 or at least 1"),
        (leaf in _POSITIVE and value <= 0, "above 0"),
        (leaf in _FRACTIONS and not 0 <= value < 1, "at least 0 and below 1"),
        (leaf in _MAY_BE_ZERO and value < 0, "at least 0"),
    )
    return next((expected for missed, expected in ranges if missed), "")


def to_dict(settings: Settings) -> dict[str, Any]:
    return dataclasses.asdict(settings)
