"""A pretrained transformer as an encoder."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sequst.errors import SequstError
from sequst.tagger.accel.embedding import make_safe
from sequst.tagger.batches import Batch
from sequst.tagger.encoders.base import Encoder
from sequst.tagger.encoders.pretrained import load_model, load_tokenizer, quiet
from sequst.tagger.windows import Splitter, SubwordSplitter


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
        self._mask: Callable[[Tensor], Tensor] = lambda mask: mask
        if model.config.model_type == "mpnet":
            from sequst.tagger.accel.mpnet import PlacedEncoder, added_mask

            model.base_model.encoder.__class__ = PlacedEncoder
            self._mask = added_mask

    @classmethod
    def pretrained(cls, name: str, labels: list[str], seed: int) -> Transformer:
        """By its name; the seed decides weights that the checkpoint lacks."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = load_model(name, labels)
        return cls(model, load_tokenizer(name), len(labels))

    def copy(self) -> Transformer:
        """Weights of its own, and the same tokenizer."""
        return copy.deepcopy(self, {id(self.tokenizer): self.tokenizer})

    def splitter(self, max_length: int, overlap: int) -> Splitter:
        return SubwordSplitter(self.tokenizer, max_length, overlap)

    def embeddings(self, batch: Batch) -> Tensor:
        """The word embeddings of the sub-words, before positions are added."""
        return self.model.get_input_embeddings()(batch.input_ids)  # type: ignore[no-any-return]

    def forward(self, batch: Batch, embeddings: Tensor | None = None) -> Tensor:
        """Of every word the state of its first sub-word."""
        if self.fused is not None and self._goes_fused(batch):
            return states_of_words(self.fused.states(batch, embeddings), batch)
        inputs = {"input_ids": batch.input_ids} if embeddings is None else {"inputs_embeds": embeddings}
        states = self.model(attention_mask=self._mask(batch.attention_mask), **inputs).logits  # (B, L, H)
        return states_of_words(states, batch)

    def has_second_derivative(self, batch: Batch) -> bool:
        return not self._goes_fused(batch)

    def _goes_fused(self, batch: Batch) -> bool:
        return self.training and self.fused is not None and self.fused.takes(batch)

    def save(self, folder: Path, classifier: nn.Linear) -> None:
        identity = getattr(self.model, self._classifier_name)
        setattr(self.model, self._classifier_name, classifier)
        self.model.config.sequst = True  # so that a missing sequst.json is told
        try:
            with quiet():
                self.model.save_pretrained(folder)
        finally:
            setattr(self.model, self._classifier_name, identity)
        self.tokenizer.save_pretrained(folder)


def states_of_words(states: Tensor, batch: Batch) -> Tensor:
    """(B, W, H): of every word the state of its first sub-word, from those of all sub-words (B, L, H)."""
    return torch.gather(states, 1, batch.heads.unsqueeze(-1).expand(-1, -1, states.shape[-1]))


def _find_classifier(model: nn.Module, labels: int) -> tuple[str, nn.Linear]:
    """The last linear layer of a `*ForTokenClassification`, by name."""
    linear = [(name, child) for name, child in model.named_children() if isinstance(child, nn.Linear)]
    found = {name: child for name, child in linear if child.out_features == labels}
    for name in ("classifier", "score", *found):
        if name in found:
            return name, found[name]
    raise SequstError(
        f"{type(model).__name__} has no linear classifier after its encoder, so sequst cannot train it; "
        "use an encoder of the BERT family (BERT, RoBERTa, MPNet, DeBERTa, ELECTRA, ModernBERT, …)"
    )


def _take_dropout(model: nn.Module) -> float:
    """Move the dropout before the classifier into the head, where it acts on standardised states; 0.1 where there is none."""
    rate = 0.1
    for child in model.children():
        if isinstance(child, nn.Dropout):
            rate, child.p = child.p, 0.0
    return rate
