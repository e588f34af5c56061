"""Settings: nested dataclasses with a docstring for every field, checked first of all. `configuring` reads and writes them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Collection
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import PurePath
from typing import Any

from sequst.errors import UsageError
from sequst.tagger.encoders.shape import BILSTM, BiLstmShape


@dataclass(frozen=True)
class Phase:
    """One training phase: AdamW, linear warm-up, linear decay to zero."""

    learning_rate: float = 1e-4
    """Peak learning rate of the encoder."""
    head_learning_rate: float = 2e-4
    """Peak learning rate of the head."""
    epochs: float = 5.0
    """Passes over the data, unless `min_steps` asks for more, or `max_steps` for less."""
    min_steps: int = 600
    """Steps to take at least: a few dozen sentences need many more than `epochs` passes."""
    max_steps: int = 0
    """Steps to take at most, whatever `epochs` and `min_steps` ask for, with a rate that falls to zero by then; 0 for no
    limit."""
    batch_size: int = 8
    """Sentences (windows of long ones) in a step."""
    weight_decay: float = 0.01
    """AdamW's weight decay; biases and normalisation weights have none."""
    warmup: float = 0.1
    """Share of the steps in which the learning rate rises."""
    max_gradient_norm: float = 1.0
    """Longer gradients are clipped to this norm."""
    evaluations: int = 5
    """How many times the dev set is scored during the phase; the best weights are kept. Without a dev set the last are."""
    average: float = 0.0
    """Score and keep a moving average of the weights, with this decay a step; 0 for the weights as they are."""
    hide: float = 0.0
    """Share of the words that are hidden in each step, behind the encoder's mask token: their tags must be told from others."""
    swap: float = 0.0
    """Of `teacher` and `retune` alone: share of the labelled entities in whose place another of their type is drawn, anew in
    each epoch after the first, from the labelled ones and, of `retune`, as `swap_from` says."""


@dataclass(frozen=True)
class Uncertainty:
    """What the teacher does not know."""

    passes: int = 20
    """Passes of MC dropout over the unlabelled words, T in the paper."""
    last_layers: int = 0
    """Let only so many layers of the encoder drop out, from the last on: faster, and an approximation; 0 for all."""
    dropout: float = 0.0
    """Dropout rate of the passes, everywhere; 0 for the rates that the encoder and the head are trained with."""
    calibrated: bool = False
    """Divide the scores by a temperature that fits the dev set before words are scored, in every round; needs a dev set."""


SHARE = 0.5
"""The paper's share of the words of a sentence."""


@dataclass(frozen=True)
class Selection:
    """Which pseudo-labelled words the student learns."""

    selector: str = "weighed-of-class"
    """`weighed`: all words, each as much as it is trusted; `weighed-of-class`: the same within each predicted class; `all` of
    them alike; `sampled` (Eq. 7, 8) or `top` of each sentence, `sampled-of-class` or `top-of-class` of each predicted class."""
    share: float = SHARE
    """Share of the words that one of the last four takes, at least one of each sentence or class."""
    weight: str = "both"
    """Score words by `both` confidence and certainty, by `confidence` or by `certainty`."""
    power: float = 1.0
    """Take the scores to this power: the larger, the less doubtful words weigh, or the more rarely they are drawn; with 0 all
    are alike."""
    unit: str = "word"
    """Select every `word` for itself, or an `entity` as a whole, by the worst score of its words."""
    each_epoch: bool = False
    """Draw again for every epoch of the student, not once a round; of the selectors that draw."""
    rest: str = "dropped"
    """Words that are not selected: `dropped`, or learnt all the same, with the `mean` probabilities of MC dropout as labels."""
    doubtful: str = "kept"
    """Entities that the teachers had better leave out, as the dev set tells (see `abstain`): `kept`, their words `dropped` from
    what is selected, or learnt as `outside` of any entity."""


@dataclass(frozen=True)
class Ensemble:
    """Several teachers in place of one, where it is asked for: the student learns what they believe on average."""

    teachers: int = 1
    """First teachers of self-training, fine-tuned from so many seeds."""
    students: int = 1
    """Students of each round, from so many seeds: the teachers of the next. The best of the last is kept."""
    memory: float = 0.0
    """Weight, below 1, of what the teachers of earlier rounds believed, beside those of this one; 0 for none."""


@dataclass(frozen=True)
class Robust:
    """The loss of pseudo-labelled words."""

    loss: str = "phce"
    """`phce` (Eq. 11) or `cross-entropy`."""
    tau: float = 0.0
    """PHCE is linear below p = 1/tau; 0 for the larger of 10 and 1.25 times the number of tags: less stalls a new student."""
    warmup: float = 0.3
    """Share of the student's steps that learn with cross-entropy before PHCE, which would stall a new student at all O."""


@dataclass(frozen=True)
class Gcr:
    """Gaussian-based consistency regularisation."""

    weight: float = 0.5
    """Its weight in the student's loss, lambda in the paper; 0 switches it off."""
    samples: int = 3
    """Perturbations of each word, K in the paper."""
    prior: float = 0.0
    """Scale s of a prior N(1, s) on the noise that keeps it from collapsing; 0 for none, as in the paper."""
    start: str = "identity"
    """How its nets begin: `identity`, mu = 1 with a little noise, or `random`, mu near 0, with which students collapsed."""
    detach: bool = True
    """Keep the clean side of the divergence out of the gradient."""
    selected_only: bool = False
    """Regularise the selected words alone, not all."""


@dataclass(frozen=True)
class Vat:
    """Virtual adversarial training."""

    weight: float = 0.03
    """Weight of the adversarial divergence beside the loss of labelled words."""
    warmup: float = 0.0
    """Share of the steps, the first ones, that learn labelled words alone."""
    epsilon: float = 1.0
    """Length of the perturbation of a sentence, in mean norms of its word embeddings."""
    step: float = 0.1
    """Length of the random step from which the worst direction is sought, in mean norms as well."""
    entropy: float = 0.0
    """Weight of the entropy of predictions for unlabelled words, to be made small as well; 0 switches it off."""
    paths: int = 3
    """Best paths that the sequence divergence of SeqVAT tells apart, k in its paper."""


@dataclass(frozen=True)
class Cvt:
    """Cross-view training."""

    weight: float = 0.1
    """Weight of the divergence of every auxiliary head from the primary one."""
    warmup: float = 0.0
    """Share of the steps, the first ones, that learn labelled words alone."""
    hidden: int = 128
    """Over a transformer's states: size of the BiLSTM that makes the views, in each direction."""
    learning_rate: float = 1e-3
    """Peak learning rate of the auxiliary heads and of that BiLSTM, which start from nothing."""


@dataclass(frozen=True)
class MetaSt:
    """Meta self-training."""

    labels: str = "sampled"
    """Pseudo-labels: `sampled`, drawn from the teacher's probabilities, or `hard`, the best tag."""
    first_order: bool = False
    """Weigh words by a difference of their losses in place of exact slopes: on a CPU cheaper, and an approximation."""
    rate: float = 0.01
    """Length of the virtual step: the gradient times this."""
    batch_size: int = 16
    """Labelled windows in a meta batch."""
    refresh: int = 50
    """Steps after which the losses of all labelled windows are looked at again; what fell most is drawn most."""
    smoothing: float = 0.01
    """Loss decay, in nats, below which a labelled window is drawn as if it had this much."""
    retune: float = 0.1
    """Re-tuning has this share of the teacher's rates."""
    warmup: float = 0.3
    """Share of a student's steps, the first ones, in which all words weigh the same: a new one cannot tell them apart."""


@dataclass(frozen=True)
class Crf:
    """The linear-chain CRF of `head: crf`."""

    constrained: bool = True
    """Forbid what IOB2 does not allow: an I- that continues nothing."""
    learning_rate: float = 5e-3
    """Peak learning rate of its transitions, in every phase; they start at 0 and are few."""


@dataclass(frozen=True)
class Bilstm(BiLstmShape):
    """The encoder `bilstm`."""

    rate: float = 20.0
    """It starts from nothing, so it and its head learn with so many times the rates of the phases."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers of a run, but for the data."""

    method: str = "auto"
    """How to learn; `sequst methods` lists the ways. `auto`: SeqUST where there is unlabelled text, else fine-tuning."""
    encoder: str = "minilm"
    """`minilm`, a local folder, a model of the Hugging Face hub, or `bilstm`, which is not pretrained."""
    head: str = "softmax"
    """`softmax`, every word for itself, or `crf`, a linear chain over the words of a sentence."""
    seed: int = 12
    """Decides every random choice: the same settings, seed and machine give the same numbers."""
    max_length: int = 64
    """Longest window, in sub-words with special tokens (of a `bilstm`, in words); longer sentences are cut, with an overlap."""
    overlap: int = 16
    """Sub-words that a window shares with the one before it."""
    valid_tags: bool = True
    """Of a softmax head take the best path of tags that IOB2 allows, not the best tag of every word by itself."""
    transitions: float = 1.0
    """Of a softmax head with `valid_tags`, how much it counts when tags are decoded which of them follow one another in the
    labelled sentences; 0 for not at all."""
    capitals: float = 0.0
    """With an encoder that does not see them, how much it counts when words are tagged how those of every tag are written in
    the labelled sentences, with a capital, in capitals or small: 1 for as much as the counts say, 0 for not at all."""
    standardise: bool = True
    """Centre and scale the hidden states before the head with statistics of the labelled data."""
    dev_fraction: float = 0.0
    """Share of the labelled sentences to set aside as dev set; 0 for none, or where a dev file is given."""
    dev_shots: int = 0
    """Labelled sentences of every type to set aside as dev set, at most half of a type's; 0 for none."""
    calibrate: bool = True
    """With a dev set, let the final confidences of words and entities follow how often they are right there."""
    abstain: bool = True
    """With `calibrate`, leave out entities whose confidence says that they cost more F1 than they bring: less than half of the
    F1 that is to be expected, so never one that is more likely right than wrong."""
    calibration_shift: float = 0.23
    """How much surer, in logits, a small dev set makes entities look than other text bears out: taken off by `calibrate`,
    before it is asked what to leave out. The default was found with few-shot dev sets that also chose the weights; 0 where
    yours is a fair sample of your text."""
    device: str = "auto"
    """`auto` (a GPU where there is one), `cpu` or `cuda`."""
    precision: str = "auto"
    """`fp32`, `bf16`, or `auto`: bf16 where the machine has it and it pays, which is for transformers of 80 million parameters
    and more on a GPU, of 10 million on a CPU, and phases that do not look at small differences; fp32 elsewhere."""
    deterministic: bool = True
    """On a GPU, choose deterministic kernels, so that the same seed gives the same numbers there too."""
    checkpoint_seconds: float = 60.0
    """A phase keeps a state to resume from at the end of an epoch, if this long has passed since the last."""
    keep_rounds: bool = False
    """Keep the weights of every phase when the run has ended, not only the final model."""
    max_rounds: int = 5
    """Rounds of self-training; with `choose: best`, at most."""
    patience: int = 2
    """With `choose: best`, stop when the dev F1 has not risen for this many rounds."""
    keep: str = "teacher"
    """Which tagger of the round to keep: the `teacher` (the student, re-tuned on the labelled data) or the `student`."""
    choose: str = "last"
    """Which round to keep: the `best` on the dev set, which is small and may be wrong, or the `last` unless it broke down."""
    pseudo_labels: str = "hard"
    """What the student learns: `hard`, the best tag; `sampled`, a draw; `soft`, probabilities; `mean`, those of MC dropout."""
    sharpness: float = 1.0
    """Take the probabilities of `soft` and `mean` labels to this power, normed again: above 1 they are nearer to hard."""
    mix_labeled: bool = False
    """Let the student learn the labelled sentences too, among the pseudo-labelled ones."""
    swap_from: str = "text"
    """Where `retune.swap` draws from: the `labeled` entities alone, or also those that the teachers find in the `text`."""
    adapt: bool = False
    """Let the encoder read the text first, where some is unlabelled: it predicts words that are hidden from it."""
    crf: Crf = field(default_factory=Crf)
    """The linear-chain CRF of `head: crf`."""
    bilstm: Bilstm = field(default_factory=Bilstm)
    """The encoder `bilstm`."""
    adaptation: Phase = field(
        default_factory=lambda: Phase(learning_rate=5e-5, epochs=5.0, min_steps=0, batch_size=32, evaluations=1, hide=0.15)
    )
    """Reading the text, where `adapt` asks for it."""
    teacher: Phase = field(default_factory=Phase)
    """Fine-tuning on the labelled data."""
    student: Phase = field(default_factory=lambda: Phase(epochs=4.0, min_steps=500, batch_size=32, hide=0.15))
    """Learning the pseudo-labelled words, from the encoder's first weights, in each round."""
    retune: Phase = field(default_factory=lambda: Phase(learning_rate=5e-5, head_learning_rate=1e-4, min_steps=200))
    """Fine-tuning the student on the labelled data again, which makes it the next teacher."""
    uncertainty: Uncertainty = field(default_factory=Uncertainty)
    """What the teacher does not know."""
    selection: Selection = field(default_factory=Selection)
    """Which pseudo-labelled words the student learns."""
    ensemble: Ensemble = field(default_factory=Ensemble)
    """Several teachers in place of one."""
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
        for name in ("adaptation", "student"):
            if getattr(self, name).swap:
                raise UsageError(
                    f"setting {name}.swap: entities are swapped in labelled sentences alone; set teacher.swap or retune.swap"
                )

        if self.selection.rest == "mean" and self.pseudo_labels not in ("hard", "sampled"):
            raise UsageError(
                f"setting selection.rest=mean: with pseudo_labels={self.pseudo_labels} selected words would be learnt as the "
                "rest is; set pseudo_labels=hard or sampled"
            )
        if self.selection.doubtful != "kept" and self.pseudo_labels != "hard":
            raise UsageError(
                f"setting selection.doubtful={self.selection.doubtful}: it is the best tags that are doubted, and not those of "
                f"pseudo_labels={self.pseudo_labels}; set pseudo_labels=hard"
            )
        if self.selection.doubtful != "kept" and self.ensemble.memory:
            raise UsageError(
                f"setting selection.doubtful={self.selection.doubtful}: what earlier rounds believed of the dev set is not "
                "kept; set ensemble.memory=0"
            )
        takes_all = self.selection.selector in ("all", "weighed", "weighed-of-class")
        for name, is_default in {
            "share": self.selection.share == SHARE,
            "each_epoch": not self.selection.each_epoch,
            "rest": self.selection.rest == "dropped",
        }.items():
            if takes_all and not is_default:
                raise UsageError(
                    f"setting selection.{name}: the selector {self.selection.selector} takes every word, so there is nothing "
                    "to draw and no rest; leave it out, or set selection.selector too, to sampled for example"
                )
        if self.selection.rest == "mean" and self.gcr.selected_only:
            raise UsageError("setting selection.rest=mean: all words are learnt then; set gcr.selected_only=false")

    def hash(self, unused: Collection[str] = ()) -> str:
        """Equal for settings that differ in nothing but the seed, where they ran, what changes no tag, and names that the
        method does not use."""
        without = {"seed", "device", "checkpoint_seconds", "keep_rounds", *unused}
        doubts = (self.abstain and self.calibrate) or (self.selection.doubtful != "kept" and "selection" not in unused)
        without |= set() if doubts else {"calibration_shift"}
        without |= set() if self.calibrate else {"abstain"}
        without |= set() if self.head == "softmax" and self.valid_tags else {"transitions"}
        without |= {"head", "crf"} if self.head == "softmax" else set()
        # a bilstm has no weights yet that could have read anything, and sees capitals
        without |= {"bilstm"} if self.encoder != BILSTM else {"adapt", "capitals"}
        without |= {"adaptation"} if not self.adapt or self.encoder == BILSTM else set()
        if self.pseudo_labels == "mean" and "pseudo_labels" not in unused:
            without.discard("uncertainty")  # whose passes the labels are the mean of
        kept = {name: value for name, value in _aged(self).items() if name not in without}
        kept["encoder"] = PurePath(self.encoder).name  # the same weights may lie in other folders elsewhere
        if "bilstm" in kept:
            kept["bilstm"]["vectors"] = PurePath(self.bilstm.vectors).name
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


_YOUNGER: dict[type, dict[str, Any]] = {
    Settings: {
        "dev_shots": 0,
        "choose": "best",
        "calibrate": True,
        "adapt": False,
        "sharpness": 1.0,
        "swap_from": "text",
        "valid_tags": False,
        "transitions": 0.0,
        "capitals": 0.0,
        "abstain": False,
        "ensemble": Ensemble(teachers=1, students=1, memory=0.0),
    },
    Phase: {"average": 0.0, "hide": 0.0, "swap": 0.0, "max_steps": 0},
    Uncertainty: {"last_layers": 0, "dropout": 0.0, "calibrated": False},
    Selection: {"power": 1.0, "unit": "word", "each_epoch": False, "rest": "dropped", "doubtful": "kept"},
}
"""Settings that the oldest results do not have, and what those had in effect. Where they are that they are left out of the
hash, so that it stays what it was."""


def oldest(settings: Any) -> Any:
    """With younger settings as they were in effect before they were there."""
    younger = _YOUNGER.get(type(settings), {})
    values = {item.name: younger.get(item.name, getattr(settings, item.name)) for item in fields(settings)}
    return type(settings)(**{name: oldest(value) if is_dataclass(value) else value for name, value in values.items()})


def _aged(settings: Any) -> dict[str, Any]:
    """As `to_dict`, without younger settings that are as they were before they were there."""
    kept = {}
    younger = _YOUNGER.get(type(settings), {})
    for item in fields(settings):
        value = getattr(settings, item.name)
        if item.name not in younger or value != younger[item.name]:
            kept[item.name] = _aged(value) if is_dataclass(value) else value
    return kept


_CHOICES = {
    "precision": ("auto", "fp32", "bf16"),
    "selector": ("all", "weighed", "weighed-of-class", "sampled", "top", "sampled-of-class", "top-of-class"),
    "unit": ("word", "entity"),
    "rest": ("dropped", "mean"),
    "doubtful": ("kept", "dropped", "outside"),
    "choose": ("best", "last"),
    "swap_from": ("labeled", "text"),
    "weight": ("both", "confidence", "certainty"),
    "loss": ("phce", "cross-entropy"),
    "start": ("identity", "random"),
    "keep": ("teacher", "student"),
    "head": ("softmax", "crf"),
    "pseudo_labels": ("hard", "sampled", "soft", "mean"),
    "labels": ("sampled", "hard"),
}
_POSITIVE = {"learning_rate", "head_learning_rate", "epochs", "batch_size", "max_gradient_norm", "max_length"}
_POSITIVE |= {"passes", "samples", "patience", "max_rounds", "epsilon", "step", "paths"}
_POSITIVE |= {"teachers", "students", "sharpness"}
_POSITIVE |= {"refresh", "smoothing", "retune", "layers", "hidden", "word_size", "character_size", "filters", "rate"}
_SHARES = {"warmup", "dev_fraction", "dropout", "average", "memory", "hide", "swap"}
_MAY_BE_ZERO = {"min_steps", "weight_decay", "evaluations", "overlap", "checkpoint_seconds", "seed", "weight", "dev_shots"}
_MAY_BE_ZERO |= {"entropy", "last_layers", "power", "calibration_shift", "transitions", "capitals", "max_steps"}
_ZERO_OR_FROM = {"tau": 1.0, "prior": 1e-3}


def _check_ranges(settings: Any, prefix: str = "") -> None:
    for item in fields(settings):
        name, value = prefix + item.name, getattr(settings, item.name)
        if is_dataclass(value):
            _check_ranges(value, f"{name}.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"setting {name}={value}: must be a finite number")
        elif item.name in _CHOICES and isinstance(value, str) and value not in _CHOICES[item.name]:
            raise UsageError(f"setting {name}={value!r}: must be one of {', '.join(_CHOICES[item.name])}")
        elif isinstance(value, str):
            continue
        elif item.name == "share" and not 0 < value <= 1:
            raise UsageError(f"setting {name}={value}: must be above 0 and at most 1")
        elif item.name in _ZERO_OR_FROM and value != 0 and not value >= _ZERO_OR_FROM[item.name]:
            raise UsageError(f"setting {name}={value}: must be 0 or at least {_ZERO_OR_FROM[item.name]:g}")
        elif item.name in _POSITIVE and value <= 0:
            raise UsageError(f"setting {name}={value}: must be above 0")
        elif item.name in _SHARES and not 0 <= value < 1:
            raise UsageError(f"setting {name}={value}: must be at least 0 and below 1")
        elif item.name in _MAY_BE_ZERO and value < 0:
            raise UsageError(f"setting {name}={value}: must be at least 0")


def to_dict(settings: Settings) -> dict[str, Any]:
    return dataclasses.asdict(settings)
