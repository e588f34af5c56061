"""The tagger: an encoder and a head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor, nn

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import OUTSIDE, types_of
from sequst.errors import SequstError, UsageError, shorten
from sequst.tagger.batches import Batch
from sequst.tagger.capitals import capital_scores, sees_capitals
from sequst.tagger.encoders.base import Encoder
from sequst.tagger.encoders.shape import BILSTM, BiLstmShape
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.entity_calibration import UNCALIBRATED
from sequst.tagger.heads import HEADS, CrfHead, Decoded, Head, SoftmaxHead

if TYPE_CHECKING:
    from sequst.tagger.prediction import Prediction


DEVICES = ("auto", "cpu", "cuda")
_SHAPE = BiLstmShape()


def labels_of(sentences: Iterable[Sentence]) -> list[str]:
    """O, then B- and I- of each type, in alphabetical order."""
    types = types_of(sentence.tags or () for sentence in sentences)
    return [OUTSIDE, *(f"{prefix}-{type_}" for type_ in types for prefix in "BI")]


def pick_device(name: str = "auto") -> torch.device:
    """The device; `auto` = the GPU if there is one."""
    if name not in DEVICES:
        raise UsageError(f"unknown device {name!r}; use {', '.join(DEVICES)}")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise UsageError("device cuda: this torch sees no GPU; use --device cpu")
    return torch.device("cuda" if there and name != "cpu" else "cpu")


class Tagger(nn.Module):
    """`hidden(batch)` and `log_probs(hidden, batch)`, or `decode(batch)` at once, each per word."""

    def __init__(
        self,
        encoder: Encoder,
        labels: list[str],
        *,
        max_length: int = 64,
        overlap: int = 16,
        seed: int = 0,
        head: str = "softmax",
        valid: bool = False,
        transitions: Mapping[str, float] | None = None,
        capitals: Mapping[str, Sequence[float]] | None = None,
        classifier: nn.Linear | None = None,
    ) -> None:
        """`classifier` is a learnt one for the head to take over; `transitions` are what `count_transitions` makes of labelled
        sentences, for a softmax head with `valid` tags to weigh, and `capitals` what `count_capitals` does, for either head."""
        super().__init__()
        self.labels = labels
        self.max_length, self.overlap = max_length, overlap
        self.encoder = encoder
        self.splitter = encoder.splitter(max_length, overlap)
        self.pad_id = encoder.pad_id
        self.entity_calibration = UNCALIBRATED
        if head not in HEADS:
            raise UsageError(f"unknown head {head!r}; use {' or '.join(HEADS)}")
        self.head: Head = (
            CrfHead(encoder.width, labels, encoder.dropout, seed)
            if head == "crf"
            else SoftmaxHead(encoder.width, len(labels), encoder.dropout, seed, labels if valid else None, transitions)
        )
        if capitals:
            self.head.capitals = torch.from_numpy(capital_scores(capitals, labels)).float()
        if classifier is not None:
            self.head.unfold(classifier)
        self.eval()

    @classmethod
    def from_encoder(
        cls, source: str | Transformer, labels: list[str], *, max_length: int = 64, overlap: int = 16, seed: int = 0,
        head: str = "softmax", valid: bool = False, transitions: Mapping[str, float] | None = None,
        capitals: Mapping[str, Sequence[float]] | None = None, text: Iterable[Sequence[str]] = (),
        shape: BiLstmShape = _SHAPE,
    ) -> Tagger:  # fmt: skip
        """A tagger that has learnt nothing yet. The source is a transformer, which is copied, or the name of one, whose missing
        weights are decided by the seed, or `bilstm`: a new one of this shape that knows the words and characters of the text.
        `capitals` do not count where the encoder sees those of the text."""
        encoder: Encoder
        if isinstance(source, Transformer):
            encoder = source.copy()
        elif source == BILSTM:
            from sequst.tagger.encoders.bilstm import BiLstm

            encoder = BiLstm.new(text, shape, seed)
        else:
            encoder = Transformer.pretrained(source, labels, seed)
        tagger = cls(
            encoder, labels, max_length=max_length, overlap=overlap, seed=seed, head=head, valid=valid, transitions=transitions,
            capitals=capitals,
        )  # fmt: skip
        if tagger.head.capitals is not None and sees_capitals(tagger.splitter, text):
            tagger.head.capitals = None
        return tagger

    @classmethod
    def load(
        cls, folder: str | Path, device: str = "auto", raw_tags: bool = False, min_confidence: float | None = None
    ) -> Tagger:
        """A saved tagger, or any `*ForTokenClassification` whose labels are IOB2 tags. With `raw_tags` every word has its best
        tag, allowed by IOB2 or not, as transformers gives it. Entities below `min_confidence` are left out; without, those that
        training found not worth telling, and with raw tags none. A tagger that is saved again keeps what was asked for."""
        from sequst.tagger.save import load

        tagger = load(folder)
        if raw_tags:
            tagger.head.take_raw_tags()
        tagger.entity_calibration = tagger.entity_calibration.asked_for(raw_tags, min_confidence)
        return tagger.to(pick_device(device))

    def save(self, folder: str | Path, about: dict[str, Any] | None = None) -> None:
        """Write a folder that `Tagger.load` reads, and, of a transformer and but for the chain of a CRF,
        `transformers.AutoModelForTokenClassification` too. A model that is there is replaced; a folder of other things is an
        error."""
        from sequst.tagger.save import save

        save(self, folder, about or {})

    @property
    def device(self) -> torch.device:
        return self.head.linear.weight.device

    @property
    def capitals(self) -> dict[str, list[float]]:
        """What the ways in which words are written say of every tag, as `count_capitals` has it; nothing where they do not
        count."""
        if self.head.capitals is None:
            return {}
        return dict(zip(self.labels, self.head.capitals[1:].T.tolist(), strict=True))

    @property
    def types(self) -> list[str]:
        return types_of([self.labels])

    def embeddings(self, batch: Batch) -> Tensor:
        """(B, L, E): the word embeddings, before the encoder adds anything to them."""
        return self.encoder.embeddings(batch)

    def hidden(self, batch: Batch, embeddings: Tensor | None = None) -> Tensor:
        """(B, W, H): the state of every word; from these embeddings where they are given."""
        return self.encoder(batch, embeddings)  # type: ignore[no-any-return]

    def log_probs(self, hidden: Tensor, batch: Batch, dropout: bool = True) -> Tensor:
        """(..., B, W, C): log probabilities of the labels of words, from their states (..., B, W, H); marginals under a CRF."""
        return self.head(hidden, batch.rows, dropout)  # type: ignore[no-any-return]

    def decode(self, batch: Batch) -> Decoded:
        """The labels of all words with their probabilities: the raw argmax, or the best path, with or without a CRF."""
        return self.head.decode(self.head.scores(self.hidden(batch)), batch.rows)

    def loss(self, batch: Batch) -> Tensor:
        """The loss of labelled words: cross-entropy, or the negative log likelihood under a CRF."""
        assert batch.labels is not None
        return self.head.loss(self.head.raw_scores(self.hidden(batch)), batch.labels, batch.rows)

    def forward(self, batch: Batch) -> Tensor:
        return self.log_probs(self.hidden(batch), batch)

    def label_ids(self, tags: Sequence[str]) -> list[int]:
        """The label ids of tags. An unknown tag is an error."""
        index = {label: i for i, label in enumerate(self.labels)}
        try:
            return [index[tag] for tag in tags]
        except KeyError as error:
            unknown = shorten(error.args[0])
            raise SequstError(f"tag {unknown} is unknown to this tagger; it knows {', '.join(self.labels)}") from None

    @overload
    def predict(self, inputs: str | tuple[str, ...] | Sentence) -> Prediction: ...
    @overload
    def predict(self, inputs: list[Any]) -> Prediction | list[Prediction]: ...
    def predict(self, inputs: Any) -> Prediction | list[Prediction]:
        """Tag a text, a list of words, a `Sentence`, or a list of any of them; see `sequst.tagger.prediction.as_sentences`."""
        from sequst.tagger.predict import annotate
        from sequst.tagger.prediction import as_sentences

        sentences, single = as_sentences(inputs)
        predictions = list(annotate(self, sentences, keep_forward=True))
        return predictions[0] if single else predictions
