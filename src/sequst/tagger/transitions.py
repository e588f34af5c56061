"""Which tags follow one another: counted in labelled sentences, and weighed when the tags of others are decoded.

As in a hybrid of a network and a hidden Markov model, tags are as likely as the product of p(tag | sentence) over all words,
times p(tag | tag before) / p(tag) for every two neighbours. A few dozen sentences say little of every pair of tags, so pairs
are counted by kind: whether a tag begins or continues an entity, and whether one of the same type.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from sequst.corpus.tags import split_tag

KINDS = ("O O", "O B", "B O", "B I", "B same", "B other", "I O", "I I", "I same", "I other")
"""The letters of two neighbours; `same` and `other` are a B of the same or another type right after an entity."""
SEEN_ONCE_MORE = 1.0
"""Added to how often each kind comes, and would by chance: a few sentences prove nothing impossible."""
HALF = 0.5
"""Added to how often each tag comes."""


def kind_of(before: str, after: str) -> str | None:
    """Of two neighbouring tags; none of what IOB2 does not allow."""
    (letter, type_), (next_letter, next_type) = split_tag(before), split_tag(after)
    if next_letter == "I":
        return f"{letter} I" if letter in ("B", "I") and type_ == next_type else None
    if next_letter == "B" and letter in ("B", "I"):
        return f"{letter} {'same' if type_ == next_type else 'other'}"
    return f"{letter} {next_letter}"


def count_transitions(sequences: Iterable[Sequence[str]], labels: Sequence[str]) -> dict[str, float]:
    """{kind: log of how often it comes, over how often it would if tags did not look at their neighbours}."""
    tagged = [tuple(tags) for tags in sequences]
    pairs = Counter(pair for tags in tagged for pair in itertools.pairwise(tags))
    counts = Counter(tag for tags in tagged for tag in tags)
    total = sum(counts.values()) + HALF * len(labels)
    found, expected = dict.fromkeys(KINDS, SEEN_ONCE_MORE), dict.fromkeys(KINDS, SEEN_ONCE_MORE)
    befores: Counter[str] = Counter()
    for (before, after), count in pairs.items():
        befores[before] += count
        if (kind := kind_of(before, after)) is not None:
            found[kind] += count
    for before, count in befores.items():
        for label in labels:
            if (kind := kind_of(before, label)) is not None:
                expected[kind] += count * (counts[label] + HALF) / total
    return {kind: math.log(found[kind] / expected[kind]) for kind in KINDS}


def transition_scores(found: Mapping[str, float], labels: Sequence[str]) -> Tensor:
    """(C, C): what is added to a path for a row's tag and a column's after it; 0 of what IOB2 does not allow, and of kinds that
    are not told."""
    kinds = ((kind_of(before, after) for after in labels) for before in labels)
    return torch.tensor([[found.get(kind, 0.0) if kind is not None else 0.0 for kind in row] for row in kinds])


def checked(found: Mapping[str, Any]) -> dict[str, float]:
    """What `count_transitions` gave, read from a file; a ValueError for anything else."""
    if not all(kind in KINDS and isinstance(score, int | float) and math.isfinite(score) for kind, score in found.items()):
        raise ValueError("damaged or not written by sequst")
    return {kind: float(score) for kind, score in found.items()}
