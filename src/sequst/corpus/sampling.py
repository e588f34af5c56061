"""K-shot splits: a few labelled sentences, a dev set of the same kind, and all the rest unlabelled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sequst.corpus.counts import count_types, count_words
from sequst.corpus.formats.columns import write_conll
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans
from sequst.errors import SequstError, UsageError, nearest
from sequst.files import atomic_folder, write_json

Sampler = Literal["sentences", "mentions"]
SAMPLERS: tuple[Sampler, ...] = ("sentences", "mentions")


@dataclass(frozen=True)
class Split:
    """A K-shot split. The tags of `unlabeled` are for diagnosis; training hides them."""

    labeled: list[Sentence]
    dev: list[Sentence]
    unlabeled: list[Sentence]
    shots: int
    sampler: Sampler
    seed: int
    short: dict[str, str] = field(default_factory=dict)
    """Types that could not give K to both sets, and what each got."""

    def summary(self) -> dict[str, Any]:
        parts = {"labeled": self.labeled, "dev": self.dev, "unlabeled": self.unlabeled}
        return {
            "shots": self.shots,
            "sampler": self.sampler,
            "seed": self.seed,
            "short_types": self.short,
            **{name: _counts(part) for name, part in parts.items()},
        }

    def save(self, folder: str | Path) -> None:
        """labeled.conll, dev.conll, unlabeled.conll and summary.json, all or nothing."""
        with atomic_folder(folder) as temporary:
            write_conll(temporary / "labeled.conll", self.labeled)
            write_conll(temporary / "dev.conll", self.dev)
            write_conll(temporary / "unlabeled.conll", self.unlabeled)
            write_json(temporary / "summary.json", self.summary())


def _counts(sentences: list[Sentence]) -> dict[str, Any]:
    counts = count_types(sentences)
    return {
        "sentences": len(sentences),
        "words": count_words(sentences),
        "mentions": sum(counts.mentions.values()),
        "types": {
            type_: {"sentences": counts.sentences[type_], "mentions": counts.mentions[type_]}
            for type_ in sorted(counts.mentions)
        },
    }


def sample(sentences: Sequence[Sentence], shots: int, *, sampler: str = "sentences", seed: int = 12) -> Split:
    """Draw a K-shot split.

    `sentences`: K sentences of every type, the rarest type first, without replacement; a sentence counts for the type it was
    drawn for alone, so that K shots of n types are K x n sentences. `mentions`: sentences of every type, the rarest first,
    until K mentions of it are there; mentions in sentences drawn for other types count. The dev set is drawn in the same way
    from what is left, type by type. A type that has not enough for both gives half to each. No sentence of the dev set has the
    same words as a labelled one.
    """
    if shots < 1:
        raise UsageError(f"--shots {shots}: at least 1")
    if sampler not in SAMPLERS:
        raise UsageError(f"unknown sampler {sampler!r}; {nearest(sampler, SAMPLERS)}")
    counts = count_types(sentences)
    if not counts.mentions:
        raise SequstError("no entity at all in the file: a K-shot split needs tagged sentences")
    draw = _Draw(sentences, random.Random(seed))
    short: dict[str, str] = {}
    for type_ in sorted(counts.mentions, key=lambda t: (counts.sentences[t], t)):
        got = (draw.sentences if sampler == "sentences" else draw.mentions)(type_, shots)
        if min(got) < shots:
            short[type_] = f"{got[0]} labelled, {got[1]} dev {sampler} of {shots}"
    rest = [s for i, s in enumerate(sentences) if i not in draw.taken]
    labeled, dev = ([sentences[i] for i in indices] for indices in (draw.labeled, draw.dev))
    return Split(labeled, dev, rest, shots, "sentences" if sampler == "sentences" else "mentions", seed, short)


def sample_dev(sentences: Sequence[Sentence], shots: int, seed: int) -> tuple[list[int], dict[str, int]]:
    """(places of the dev sentences, types of which fewer were found and how many): K sentences of every type, the rarest first,
    without taking more than half of the sentences of any type. Sentences with the same words count once."""
    rng = random.Random(seed)
    found: dict[tuple[str, ...], tuple[int, set[str]]] = {}
    for i, sentence in enumerate(sentences):  # all copies of a sentence go with it, and what any of them holds
        _, types = found.setdefault(sentence.words, (i, set()))
        types.update(span.type for span in spans(sentence.tags or ()))
    there = Counter(type_ for _, types in found.values() for type_ in types)
    taken: Counter[str] = Counter()
    chosen: list[int] = []
    for type_ in sorted(there, key=lambda t: (there[t], t)):
        candidates = [(i, types) for i, types in found.values() if type_ in types and i not in chosen]
        rng.shuffle(candidates)
        for i, types in candidates:
            if taken[type_] < shots and all(2 * (taken[t] + 1) <= there[t] for t in types):
                chosen.append(i)
                taken.update(types)
    return sorted(chosen), {type_: taken[type_] for type_ in sorted(there) if taken[type_] < shots}


class _Draw:
    """The state of one draw: what has been taken for the labelled set and for the dev set."""

    def __init__(self, sentences: Sequence[Sentence], rng: random.Random) -> None:
        self.labeled: list[int] = []
        self.dev: list[int] = []
        self.taken: set[int] = set()
        self._all, self._rng = sentences, rng
        self._words_taken: set[tuple[str, ...]] = set()
        self._found = [Counter(span.type for span in spans(s.tags or ())) for s in sentences]

    def _candidates(self, type_: str) -> list[int]:
        """Sentences with the type, shuffled, none with the words of another or of one already taken."""
        order = [i for i, found in enumerate(self._found) if found[type_] and i not in self.taken]
        self._rng.shuffle(order)
        first = {self._all[i].words: i for i in reversed(order) if self._all[i].words not in self._words_taken}
        return [i for i in order if first.get(self._all[i].words) == i]

    def _take(self, part: list[int], index: int) -> None:
        part.append(index)
        self.taken.add(index)
        self._words_taken.add(self._all[index].words)

    def sentences(self, type_: str, shots: int) -> tuple[int, int]:
        """(labelled, dev) sentences drawn for the type."""
        candidates = self._candidates(type_)
        labeled = shots if len(candidates) >= 2 * shots else (len(candidates) + 1) // 2
        dev = min(shots, len(candidates) - labeled)
        for place, index in enumerate(candidates[: labeled + dev]):
            self._take(self.labeled if place < labeled else self.dev, index)
        return labeled, dev

    def mentions(self, type_: str, shots: int) -> tuple[int, int]:
        """(labelled, dev) mentions of the type that are there now."""
        have = [sum(self._found[i][type_] for i in part) for part in (self.labeled, self.dev)]
        candidates = self._candidates(type_)
        available = sum(have) + sum(self._found[i][type_] for i in candidates)
        goals = min(shots, (available + 1) // 2), min(shots, available // 2)
        for index in candidates:
            part = 0 if have[0] < goals[0] else 1
            if have[part] >= goals[part]:
                break
            self._take((self.labeled, self.dev)[part], index)
            have[part] += self._found[index][type_]
        return have[0], have[1]
