"""The heads: from hidden states to scores of tags, and from scores to probabilities, tags and the loss of labelled words.

Both standardise the hidden states, drop out, and have one linear layer. A linear layer at the encoder's learning rate hardly
moves on small states, as some encoders have them, so states are centred and scaled with fixed statistics of the labelled data.
When the tagger is saved that step is folded into the linear layer: what is saved is an ordinary classifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sequst.errors import UsageError
from sequst.tagger.accel.available import loss_kernels
from sequst.tagger.batches import IGNORED, Rows
from sequst.tagger.crf import FORBIDDEN, Chain, iob2_constraints, log_marginals, log_normaliser, viterbi
from sequst.tagger.prediction import NO_RAW_TAGS
from sequst.tagger.transitions import transition_scores


class Decoded(NamedTuple):
    """The labels of words, and the probabilities of all labels."""

    labels: Tensor  # (B, W)
    log_probs: Tensor  # (B, W, C)

    @property
    def confidences(self) -> Tensor:
        """(B, W): the probability of each word's label."""
        return self.log_probs.gather(-1, self.labels.unsqueeze(-1)).squeeze(-1).exp()


def unhalved(scores: Tensor) -> Tensor:
    """Scores in fp32 where they are in half precision."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


class Head(nn.Module):
    """Base of both heads."""

    kind: str
    mean: Tensor
    scale: Tensor
    capitals: Tensor | None
    """(1 + ways, C): what the way in which a word is written adds to the score of every tag, once words are tagged."""

    def __init__(self, hidden: int, labels: int, dropout: float, seed: int = 0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(hidden))
        self.register_buffer("scale", torch.ones(hidden))
        self.register_buffer("capitals", None, persistent=False)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden, labels)
        with torch.no_grad():
            self.linear.weight.normal_(0.0, 0.02, generator=torch.Generator().manual_seed(seed))
            self.linear.bias.zero_()

    def standardise(self, mean: Tensor, spread: float) -> None:
        """Fix the centre of every feature (H,) and the scale that all share; states that do not differ are left as they are."""
        if spread > 1e-6:
            self.mean.copy_(mean)
            self.scale.fill_(1.0 / spread)

    def scores(self, hidden: Tensor, dropout: bool = True) -> Tensor:
        """Hidden states (..., H) -> scores of the tags (..., C), without dropout where predictions are to be compared."""
        return self.raw_scores(hidden, dropout).float()

    def raw_scores(self, hidden: Tensor, dropout: bool = True) -> Tensor:
        """`scores` in the precision of the linear layer."""
        states = self.standardised(hidden)
        return self.linear(self.dropout(states) if dropout else states)  # type: ignore[no-any-return]

    def standardised(self, hidden: Tensor) -> Tensor:
        return (hidden - self.mean) * self.scale

    def forward(self, hidden: Tensor, rows: Rows, dropout: bool = True) -> Tensor:
        """Hidden states (..., B, W, H) -> log probabilities (..., B, W, C)."""
        return self.log_probs(self.scores(hidden, dropout), rows)

    def seen(self, scores: Tensor, rows: Rows) -> Tensor:
        """The scores (..., B, W, C) with what capitals say, where they are to count: see `sequst.tagger.capitals`. Nothing is
        learnt with these."""
        return scores if self.capitals is None or rows.written is None else scores + self.capitals[rows.written]

    def seen_log_probs(self, scores: Tensor, rows: Rows) -> Tensor:
        """What a tagger believes of words that it tags: their log probabilities, capitals included."""
        return self.log_probs(self.seen(scores, rows), rows)

    def chain(self, scores: Tensor, rows: Rows) -> Chain:
        """The distribution over tag sequences."""
        raise NotImplementedError

    def log_probs(self, scores: Tensor, rows: Rows) -> Tensor:
        raise NotImplementedError

    def decode(self, scores: Tensor, rows: Rows) -> Decoded:
        raise NotImplementedError

    def loss(self, scores: Tensor, labels: Tensor, rows: Rows) -> Tensor:
        """The mean loss of labelled words, from raw scores; words whose label is IGNORED do not count."""
        raise NotImplementedError

    def take_raw_tags(self) -> None:
        """Decode the best tag of every word by itself from now on."""
        raise NotImplementedError

    @torch.no_grad()
    def temper(self, temperature: float) -> None:
        """Divide all scores by the temperature, permanently."""
        for weight in self.parameters():
            weight.div_(temperature)
        if self.capitals is not None:
            self.capitals.div_(temperature)

    def folded(self) -> nn.Linear:
        """The one linear layer that gives the same scores from plain hidden states."""
        plain = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            weight = self.linear.weight.double() * self.scale.double()
            plain.weight.copy_(weight)
            plain.bias.copy_(self.linear.bias.double() - weight @ self.mean.double())
        return plain.to(self.linear.weight.device)

    def unfold(self, plain: nn.Linear) -> None:
        """Take over a saved classifier: no standardisation, the same scores."""
        with torch.no_grad():
            self.mean.zero_()
            self.scale.fill_(1.0)
            self.linear.weight.copy_(plain.weight)
            self.linear.bias.copy_(plain.bias)


class SoftmaxHead(Head):
    """Every word for itself. With the `names` of its tags it decodes the most probable ones that IOB2 allows; with
    `transitions` it weighs which tags follow one another."""

    kind = "softmax"
    links: Tensor | None
    forbidden_start: Tensor | None

    def __init__(
        self, hidden: int, labels: int, dropout: float, seed: int = 0, names: Sequence[str] | None = None,
        transitions: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(hidden, labels, dropout, seed)
        self._names, self.transitions = names, dict(transitions or {}) if names is not None else {}
        start = None if names is None else iob2_constraints(list(names))[1]
        self.register_buffer("links", self._links(), persistent=False)
        self.register_buffer("forbidden_start", start, persistent=False)

    def _links(self) -> Tensor | None:
        """(C, C): the scores of two tags one after the other."""
        if self._names is None:
            return None
        return iob2_constraints(list(self._names))[0] + transition_scores(self.transitions, self._names)

    @property
    def valid(self) -> bool:
        """Whether it decodes only tag sequences that IOB2 allows."""
        return self.links is not None

    def take_raw_tags(self) -> None:
        self.links = self.forbidden_start = self._names = self.capitals = None
        self.transitions = {}

    def temper(self, temperature: float) -> None:
        """Of the transitions too: tags stay as they are."""
        super().temper(temperature)
        self.transitions = {kind: score / temperature for kind, score in self.transitions.items()}
        self.links = None if self.links is None else self._links().to(self.links)  # type: ignore[union-attr]

    def chain(self, scores: Tensor, rows: Rows) -> Chain:
        """Without transitions: words know nothing of each other."""
        nothing = scores.new_zeros(scores.shape[-1])
        return Chain(scores, rows.words, nothing.expand(len(nothing), -1), nothing, nothing)

    def log_probs(self, scores: Tensor, rows: Rows) -> Tensor:
        return torch.log_softmax(scores, dim=-1)

    def decode(self, scores: Tensor, rows: Rows) -> Decoded:
        """The raw argmax, or the best path of what IOB2 allows; in both the probabilities are those of words by themselves."""
        log_probs = self.seen_log_probs(scores, rows)
        if self.links is None or self.forbidden_start is None:
            return Decoded(log_probs.argmax(-1), log_probs)
        chain = self.chain(log_probs, rows)
        start = torch.where(rows.opens.unsqueeze(-1), self.forbidden_start, 0.0)  # see CrfHead.chain
        return Decoded(viterbi(chain._replace(transitions=self.links, start=start)), log_probs)

    def loss(self, scores: Tensor, labels: Tensor, rows: Rows) -> Tensor:
        """Cross-entropy."""
        kernels = loss_kernels(scores, len(labels))
        if kernels is not None:
            return kernels.labelled_loss(scores, labels)  # type: ignore[no-any-return]
        total = nn.functional.nll_loss(
            self.log_probs(unhalved(scores), rows).flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
        )
        return total / (labels != IGNORED).sum().clamp(min=1)


class CrfHead(Head):
    """A linear chain over the words of a window: probabilities are marginals, tags the best path, and what IOB2 does not allow
    within a window has probability 0."""

    kind = "crf"
    forbidden: Tensor
    forbidden_start: Tensor

    def __init__(self, hidden: int, labels: list[str], dropout: float, seed: int = 0) -> None:
        super().__init__(hidden, len(labels), dropout, seed)
        self.transitions = nn.Parameter(torch.zeros(len(labels), len(labels)))
        self.start = nn.Parameter(torch.zeros(len(labels)))
        self.end = nn.Parameter(torch.zeros(len(labels)))
        transitions, start = iob2_constraints(labels)
        self.register_buffer("forbidden", transitions, persistent=False)
        self.register_buffer("forbidden_start", start, persistent=False)

    def take_raw_tags(self) -> None:
        raise UsageError(NO_RAW_TAGS)

    def chain(self, scores: Tensor, rows: Rows) -> Chain:
        # a window that begins inside a sentence may begin inside an entity
        start = self.start + torch.where(rows.opens.unsqueeze(-1), self.forbidden_start, 0.0)  # (B, C)
        return Chain(scores, rows.words, self.transitions + self.forbidden, start, self.end)

    def log_probs(self, scores: Tensor, rows: Rows) -> Tensor:
        """Forward-backward marginals."""
        each = rows.repeated(scores.shape[:-3].numel())
        return log_marginals(self.chain(scores.flatten(0, -3), each)).view(scores.shape)

    def decode(self, scores: Tensor, rows: Rows) -> Decoded:
        """The best path, and the marginals of its tags."""
        chain = self.chain(self.seen(scores, rows), rows)
        return Decoded(viterbi(chain), log_marginals(chain))

    def loss(self, scores: Tensor, labels: Tensor, rows: Rows) -> Tensor:
        """The negative log likelihood of the labels, a mean over labelled words.

        Words of a window that carry no label here, for another window owns them, are summed over.
        """
        scores, known = unhalved(scores), labels != IGNORED
        other = torch.ones_like(scores, dtype=torch.bool).scatter(-1, labels.clamp(min=0).unsqueeze(-1), False)
        chain = self.chain(scores, rows)
        bound = chain._replace(emissions=scores.masked_fill(other & known.unsqueeze(-1), FORBIDDEN))
        return (log_normaliser(chain) - log_normaliser(bound)).sum() / known.sum().clamp(min=1)


HEADS = (SoftmaxHead.kind, CrfHead.kind)
