"""A pretrained transformer as an encoder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sequst.errors import SequstError
from sequst.tagger.accel.embedding import Lookup, make_safe
from sequst.tagger.accel.fused_encoder import Learning
from sequst.tagger.accel.layers import Layers
from sequst.tagger.batches import Batch
from sequst.tagger.encoders.base import Encoder, Way
from sequst.tagger.encoders.pretrained import load_model, load_tokenizer, quiet
from sequst.tagger.windows import Splitter, SubwordSplitter

_FEW = 0.5
"""Of more of its rows than this share a table is trained whole."""


class Transformer(Encoder):
    """The Hugging Face `*ForTokenClassification` itself with its classifier taken out, so that whatever an architecture does
    between its last layer and its classifier is kept, and saving puts the learnt classifier back where transformers expects it.
    """

    kind = "transformer"

    def __init__(self, model: Any, tokenizer: Any, labels: int) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self.mask_id = next(
            (each for each in (tokenizer.mask_token_id, tokenizer.unk_token_id) if each is not None), self.pad_id
        )
        self._classifier_name, classifier = _find_classifier(model, labels)
        self.width = classifier.in_features
        self.dropout = _take_dropout(model)
        self.classifier = (classifier,)  # in a tuple, and so no part of the module: it is the saved one, for the head to take
        setattr(model, self._classifier_name, nn.Identity())
        make_safe(model)
        self._learning: Learning | None = None
        self._mask: Callable[[Tensor], Tensor] = lambda mask: mask
        if model.config.model_type == "mpnet":
            from sequst.tagger.accel.mpnet import added_mask, place

            place(model.base_model.encoder)
            self._mask = added_mask

    @classmethod
    def pretrained(cls, name: str, labels: list[str], seed: int) -> Transformer:
        """By its name; the seed decides weights that the checkpoint lacks."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = load_model(name, labels)
        return cls(model, load_tokenizer(name), len(labels))

    def splitter(self, max_length: int, overlap: int) -> Splitter:
        return SubwordSplitter(self.tokenizer, max_length, overlap)

    def embeddings(self, batch: Batch) -> Tensor:
        """The word embeddings of the sub-words, before positions are added."""
        return self.model.get_input_embeddings()(batch.input_ids)  # type: ignore[no-any-return]

    def forward(self, batch: Batch, embeddings: Tensor | None = None) -> Tensor:
        """Of every word the state of its first sub-word."""
        if self._learning is not None and self.goes_fast(batch):
            return states_of_words(self._learning.states(batch, embeddings), batch)
        inputs = {"input_ids": batch.input_ids} if embeddings is None else {"inputs_embeds": embeddings}
        states = self.model(attention_mask=self._mask(batch.attention_mask), **inputs).logits  # (B, L, H)
        return states_of_words(states, batch)

    def known_layers(self) -> Layers | None:
        return Layers.of(self.model)

    def narrowed(self, ids: Tensor) -> contextlib.AbstractContextManager[None]:
        """Where the word embeddings are a table like any other, which nothing else shares, and few of its rows are in use."""
        table = self.model.get_input_embeddings()
        weights = [weight for _, weight in self.named_parameters(remove_duplicate=False)]
        alone = isinstance(table, Lookup) and sum(weight is table.weight for weight in weights) == 1
        if not alone or not table.weight.requires_grad:
            return contextlib.nullcontext()
        always = [self.pad_id, self.mask_id] + ([] if table.padding_idx is None else [table.padding_idx])
        rows = torch.unique(torch.cat([ids, torch.tensor(always)]))
        rows = rows[rows < len(table.weight)]  # a tokenizer may know a mask that its encoder does not
        few = len(rows) <= _FEW * len(table.weight)
        return table.narrowed(rows.to(table.weight.device)) if few else contextlib.nullcontext()

    @property
    def is_fast(self) -> bool:
        return self._learning is not None

    def goes_fast(self, batch: Batch) -> bool:
        return self.training and self._learning is not None and self._learning.takes(batch)

    def refresh(self) -> None:
        if self._learning is not None:
            self._learning.refresh()

    def learning(self, dtype: torch.dtype) -> Way:
        way = Learning.of(self.known_layers(), dtype)
        return Way() if way is None else _Fast(self, way)

    def take_way(self, way: Learning | None) -> None:
        """Go this way through the layers where it takes a batch, else that of transformers."""
        self._learning = way

    def save(self, folder: Path, classifier: nn.Linear) -> None:
        identity = getattr(self.model, self._classifier_name)
        setattr(self.model, self._classifier_name, classifier)
        try:
            with quiet():
                self.model.save_pretrained(folder)
        finally:
            setattr(self.model, self._classifier_name, identity)
        self.tokenizer.save_pretrained(folder)


class _Fast(Way):
    def __init__(self, encoder: Transformer, learning: Learning) -> None:
        self._encoder, self._learning = encoder, learning
        self.copies = learning.copies

    def refresh(self) -> None:
        self._learning.refresh()

    def __enter__(self) -> None:
        self._encoder.take_way(self._learning)

    def __exit__(self, *raised: object) -> None:
        self._encoder.take_way(None)


def states_of_words(states: Tensor, batch: Batch) -> Tensor:
    """(B, W, H): of every word the state of its first sub-word, from those of all sub-words (B, L, H)."""
    return torch.gather(states, 1, batch.heads.unsqueeze(-1).expand(-1, -1, states.shape[-1]))


def _find_classifier(model: nn.Module, labels: int) -> tuple[str, nn.Linear]:
    """The last linear layer of a `*ForTokenClassification`, by name."""
    candidates = {
        name: child for name, child in model.named_children() if isinstance(child, nn.Linear) and child.out_features == labels
    }
    for name in ("classifier", "score", *candidates):
        if name in candidates:
            return name, candidates[name]
    raise SequstError(
        f"{type(model).__name__} has no linear classifier after its encoder, so sequst cannot train it; "
        "use an encoder of the BERT family (BERT, RoBERTa, MPNet, DeBERTa, ELECTRA, ModernBERT, …)"
    )


def _take_dropout(model: nn.Module) -> float:
    """Move the dropout before the classifier into the head, where it acts on standardised states; 0.1 where there is none."""
    rates = []
    for child in model.children():
        if isinstance(child, nn.Dropout):
            rates.append(child.p)
            child.p = 0.0
    return rates[-1] if rates else 0.1
