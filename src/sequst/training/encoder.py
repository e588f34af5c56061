"""Load and check the encoder of a run before training."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import torch

from sequst.errors import UsageError
from sequst.tagger.batches import Batch, collate
from sequst.tagger.encoders.shape import BILSTM, BiLstmShape
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.precision import require_bf16
from sequst.tagger.tagger import Tagger, pick_device
from sequst.training.settings import Settings
from sequst.uncertainty.passes import require_layers

FEW_VECTORS = 50.0
"""Percentage of words with a vector below which the vectors are likely of another language."""


class LoadedEncoder(NamedTuple):
    """The encoder that the taggers of a run start from, and facts about it."""

    encoder: Transformer | None
    """The pretrained transformer; None for a BiLSTM."""
    parameters: int
    sha256: str
    """Hash of all weights. A resumed run must find the same."""


def load_encoder(settings: Settings, labels: list[str], perturbed: bool = False) -> LoadedEncoder:
    """Load the encoder, its tokenizer or vectors, and check the device, so that errors come before training. With `perturbed`
    the encoder must accept word embeddings as input. The seed initialises weights that the checkpoint lacks."""
    device = pick_device(settings.device)
    if settings.precision == "bf16":
        require_bf16(device, "setting precision=bf16", "fp32 or auto")
    tagger = Tagger.from_encoder(
        settings.encoder,
        labels,
        max_length=settings.max_length,
        overlap=settings.overlap,
        seed=settings.seed,
        shape=BiLstmShape(**dataclasses.asdict(settings.bilstm)),
    )
    require_layers(tagger, settings.uncertainty.last_layers)
    longest = collate(tagger.splitter.windows([["a"] * settings.max_length]), [0], tagger.pad_id)
    with torch.no_grad():  # not inference_mode: an architecture may keep tensors that are trained on later
        try:
            tagger(longest)
        except (IndexError, RuntimeError) as error:
            message = (
                f"max_length {settings.max_length}: the encoder {settings.encoder} does not take so many sub-words ({error})"
            )
            raise UsageError(f"{message}; use a lower one") from None
        if perturbed:
            _require_embeddings(tagger, longest, settings)
    digest = hashlib.sha256()
    if settings.encoder != BILSTM:
        for weight in tagger.encoder.state_dict().values():
            digest.update(weight.contiguous().view(torch.uint8).numpy())
    elif settings.bilstm.vectors:  # all else of it is made anew
        from sequst.tagger.encoders.vectors import load_vectors

        vectors = load_vectors(settings.bilstm.vectors)
        digest.update("\n".join(vectors.words).encode())
        digest.update(vectors.table.numpy().tobytes())
    parameters = sum(parameter.numel() for parameter in tagger.encoder.parameters())
    return LoadedEncoder(tagger.encoder if isinstance(tagger.encoder, Transformer) else None, parameters, digest.hexdigest())


def vectors_note(settings: Settings, text: Sequence[Sequence[str]]) -> list[str]:
    """How much of the text the word vectors of a BiLSTM cover; nothing where there are none."""
    if settings.encoder != BILSTM or not settings.bilstm.vectors:
        return []
    from sequst.tagger.encoders.vectors import load_vectors
    from sequst.tagger.encoders.vocabulary import UNKNOWN, Vocabulary

    vocabulary = Vocabulary(load_vectors(settings.bilstm.vectors).words, [])
    known = [vocabulary.id(word) != UNKNOWN for sentence in text for word in sentence]
    share = 100.0 * sum(known) / max(1, len(known))
    warning = "warning: " if share < FEW_VECTORS else ""
    return [f"{warning}{share:.0f} % of the words of the text have a vector; the others are known by their characters alone"]


def _require_embeddings(tagger: Tagger, batch: Batch, settings: Settings) -> None:
    try:
        tagger.hidden(batch, tagger.embeddings(batch))
    except Exception as error:  # an architecture may refuse in any way
        raise UsageError(
            f"method {settings.method} perturbs word embeddings, which the encoder {settings.encoder} does not take "
            f"({type(error).__name__}: {error}); use another encoder or method"
        ) from None
