"""The tagger: an encoder, a head, and the words between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor, nn

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import OUTSIDE, types_of
from sequst.errors import SequstError, UsageError
from sequst.tagger.batches import Batch
from sequst.tagger.encoders import load_model, load_tokenizer
from sequst.tagger.head import HEADS, CrfHead, Decoded, Head, SoftmaxHead
from sequst.tagger.windows import Splitter

if TYPE_CHECKING:
    from sequst.tagger.predicting import Prediction


DEVICES = ("auto", "cpu", "cuda")


def labels_of(sentences: Iterable[Sentence]) -> list[str]:
    """O, then B- and I- of every type that occurs, in alphabetical order."""
    types = types_of(sentence.tags or () for sentence in sentences)
    return [OUTSIDE, *(f"{prefix}-{type_}" for type_ in types for prefix in "BI")]


def pick_device(name: str = "auto") -> torch.device:
    """`auto` is the GPU where there is one."""
    if name not in DEVICES:
        raise UsageError(f"unknown device {name!r}; use {', '.join(DEVICES)}")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise UsageError("device cuda: this torch sees no GPU; use --device cpu")
    return torch.device("cuda" if there and name != "cpu" else "cpu")


class Tagger(nn.Module):
    """`hidden(batch)` and `log_probs(hidden, batch)`, or `decode(batch)` at once, each per word.

    The encoder is the Hugging Face `*ForTokenClassification` itself with its classifier taken out, so that whatever an
    architecture does between its last layer and its classifier is kept, and saving puts the learnt classifier back where
    transformers expects it.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        labels: list[str],
        *,
        max_length: int,
        overlap: int,
        seed: int = 0,
        learnt: bool = False,
        head: str = "softmax",
        constrained: bool = True,
    ) -> None:
        super().__init__()
        self.labels = labels
        self.max_length, self.overlap = max_length, overlap
        self.tokenizer = tokenizer
        self.splitter = Splitter(tokenizer, max_length, overlap)
        self.pad_id: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self.encoder = model
        self.classifier_name, classifier = _find_classifier(model, len(labels))
        if head not in HEADS:
            raise UsageError(f"unknown head {head!r}; use {' or '.join(HEADS)}")
        width, dropout = classifier.in_features, _take_dropout(model)
        self.head: Head = (
            CrfHead(width, labels, dropout, seed, constrained)
            if head == "crf"
            else SoftmaxHead(width, len(labels), dropout, seed)
        )
        if learnt:
            self.head.unfold(classifier)
        setattr(model, self.classifier_name, nn.Identity())
        self.eval()

    @classmethod
    def from_encoder(
        cls, name: str, labels: list[str], *, max_length: int = 64, overlap: int = 16, seed: int = 0,
        head: str = "softmax", constrained: bool = True,
    ) -> Tagger:  # fmt: skip
        """A tagger that has learnt nothing yet, on pretrained weights; the seed decides those that the checkpoint lacks."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = load_model(name, labels)
        return cls(
            model, load_tokenizer(name), labels, max_length=max_length, overlap=overlap, seed=seed, head=head,
            constrained=constrained,
        )  # fmt: skip

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Tagger:
        """A saved tagger, or any `*ForTokenClassification` whose labels are IOB2 tags."""
        from sequst.tagger.saving import load

        return load(folder).to(pick_device(device))

    def save(self, folder: str | Path, about: dict[str, Any] | None = None) -> None:
        """Write a folder that `Tagger.load` reads, and, but for the chain of a CRF,
        `transformers.AutoModelForTokenClassification` too."""
        from sequst.tagger.saving import save

        save(self, folder, about or {})

    @property
    def device(self) -> torch.device:
        return self.head.linear.weight.device

    @property
    def types(self) -> list[str]:
        return types_of([self.labels])

    def embeddings(self, batch: Batch) -> Tensor:
        """(B, L, E): the word embeddings of the sub-words, before the encoder adds anything to them."""
        return self.encoder.get_input_embeddings()(batch.input_ids)  # type: ignore[no-any-return]

    def hidden(self, batch: Batch, embeddings: Tensor | None = None) -> Tensor:
        """(B, W, H): of every word the state of its first sub-word; from these embeddings where they are given."""
        inputs = {"input_ids": batch.input_ids} if embeddings is None else {"inputs_embeds": embeddings}
        states = self.encoder(attention_mask=batch.attention_mask, **inputs).logits  # (B, L, H)
        return torch.gather(states, 1, batch.heads.unsqueeze(-1).expand(-1, -1, states.shape[-1]))

    def log_probs(self, hidden: Tensor, batch: Batch, dropout: bool = True) -> Tensor:
        """(B, W, C): log probabilities of the labels of every word; marginals under a CRF."""
        return self.head(hidden, batch.rows, dropout)  # type: ignore[no-any-return]

    def decode(self, batch: Batch) -> Decoded:
        """The labels of every word with the probabilities of all: the raw argmax, or the best path under a CRF."""
        return self.head.decode(self.head.scores(self.hidden(batch)), batch.rows)

    def loss(self, batch: Batch) -> Tensor:
        """The loss of labelled words: cross-entropy, or the negative log likelihood under a CRF."""
        assert batch.labels is not None
        return self.head.loss(self.head.scores(self.hidden(batch)), batch.labels, batch.rows)

    def forward(self, batch: Batch) -> Tensor:
        return self.log_probs(self.hidden(batch), batch)

    def label_ids(self, tags: Sequence[str]) -> list[int]:
        """The label of every tag; a tag that the tagger does not know is an error."""
        index = {label: i for i, label in enumerate(self.labels)}
        try:
            return [index[tag] for tag in tags]
        except KeyError as error:
            raise SequstError(f"tag {error.args[0]!r} is none that this tagger knows: {', '.join(self.labels)}") from None

    @overload
    def predict(self, inputs: str | tuple[str, ...] | Sentence) -> Prediction: ...
    @overload
    def predict(self, inputs: list[Any]) -> Prediction | list[Prediction]: ...
    def predict(self, inputs: Any) -> Prediction | list[Prediction]:
        """Tag a text, a list of words, a `Sentence`, or a list of any of them; see `sequst.tagger.predicting.as_sentences`."""
        from sequst.tagger.predicting import annotate, as_sentences

        sentences, single = as_sentences(inputs)
        predictions = list(annotate(self, sentences))
        return predictions[0] if single else predictions


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
