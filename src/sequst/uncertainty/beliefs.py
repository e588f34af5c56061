"""Beliefs: the label of each word, and how sure the tagger is."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.files import intact
from sequst.tagger.accel.forward import forward_of
from sequst.tagger.accel.parallel import on_all_cores
from sequst.tagger.batches import Batch
from sequst.tagger.predict import Gathered, Words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.information import posterior
from sequst.uncertainty.passes import mc_passes, require_layers

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Beliefs:
    """Flat arrays over the words of some sentences in order; sentence i has the words starts[i] to starts[i + 1]."""

    labels: NDArray[np.int64]
    """The teacher's best tags as it decodes them, without dropout (Eq. 2), or draws from its probabilities."""
    plain_confidence: NDArray[np.float32]
    """Its probability without dropout."""
    confidence: NDArray[np.float32]
    """Its mean probability over the passes (Eq. 5)."""
    information_gain: NDArray[np.float32]
    """How much the passes disagree, in nats (Eq. 4)."""
    starts: NDArray[np.int64]
    probabilities: NDArray[np.float32] | None = None
    """(N, C): of every label, where they were asked for."""
    drawn_from: NDArray[np.int64] | None = None
    """The best tags, if the labels are drawn."""
    seconds: float = 0.0
    """Time it took to form them."""

    @property
    def best(self) -> NDArray[np.int64]:
        """The teacher's best tags, whatever the labels are."""
        return self.labels if self.drawn_from is None else self.drawn_from

    @property
    def certainty(self) -> NDArray[np.float32]:
        """1 - information gain (Eq. 6), cut at 0: from three classes up the gain can exceed 1."""
        certainty: NDArray[np.float32] = np.clip(np.float32(1.0) - self.information_gain, np.float32(0.0), None)
        return certainty

    def __len__(self) -> int:
        return len(self.labels)

    def to_bytes(self) -> bytes:
        buffer = io.BytesIO()
        arrays = {item.name: getattr(self, item.name) for item in fields(self)}
        np.savez(buffer, **{name: array for name, array in arrays.items() if array is not None})
        return buffer.getvalue()

    @classmethod
    def from_file(cls, path: Path) -> Beliefs:
        with intact(path), np.load(path, allow_pickle=False) as arrays:
            return cls(**{**arrays, "seconds": float(arrays.get("seconds", 0.0))})

    @property
    def sentence_of(self) -> NDArray[np.int64]:
        """The sentence of each word."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@torch.inference_mode()
def form_beliefs(
    tagger: Tagger, sentences: Sequence[Sentence], passes: int, seed: int, *,
    probabilities: bool = False, last_layers: int = 0, advance: Callable[[int], None] = lambda words: None,
) -> Beliefs:  # fmt: skip
    """Label every word, then pass each batch `passes` times with dropout; only sums over the passes are kept.

    Without a pass the confidence is that without dropout, and the information gain 0. `probabilities` asks for those of all
    labels, where the confidence comes from. With `last_layers` only these drop out, and the head. `advance` hears how many
    words each batch has.
    """
    if passes < 0:
        raise UsageError(f"passes {passes}: at least 0")
    require_layers(tagger, last_layers)
    words = Words(tagger, sentences)
    found = Gathered(len(words))
    with forward_of(tagger) as forward:

        def believe(item: tuple[int, tuple[Batch, NDArray[np.int64]]]) -> tuple[NDArray[np.int64], dict[str, Tensor | None]]:
            number, (batch, places) = item
            decoded = forward.decode(batch)
            of_all, label = batch.owned_of(decoded.log_probs), batch.owned_of(decoded.labels)
            mean, plain, gain = of_all.exp(), _of(label, of_all).exp().float(), torch.zeros(len(label), device=label.device)
            if passes:
                all_passes = mc_passes(tagger, forward, batch, passes, seed + number, last_layers)
                mean, gain = posterior(log_probs.flatten(1, 2)[:, batch.places] for log_probs in all_passes)
            return places, {
                "labels": label,
                "plain_confidence": plain,
                "confidence": _of(label, mean).float(),
                "information_gain": gain.float(),
                "probabilities": mean.float() if probabilities else None,
            }

        numbered = enumerate(words.batches(forward.token_budget, forward.chunk))
        for places, values in on_all_cores(tagger, forward, believe, numbered):
            found.add(places, values)
            advance(len(places))
    none = np.zeros(0, dtype=np.float32)
    nothing: dict[str, NDArray[Any]] = {"labels": np.zeros(0, dtype=np.int64), "plain_confidence": none, "confidence": none}
    nothing["information_gain"] = none
    if probabilities:
        nothing["probabilities"] = np.zeros((0, len(tagger.labels)), dtype=np.float32)
    return Beliefs(starts=words.starts, **found.arrays(nothing))  # type: ignore[arg-type]


def _of(labels: Tensor, values: Tensor) -> Tensor:
    """(N,): of the values of all labels (N, C) those of one for each word."""
    return values.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
