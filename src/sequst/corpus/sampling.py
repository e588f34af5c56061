"""K-shot splits: a few labelled sentences, a dev set of the same kind, and the rest unlabelled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sequst.corpus.counts import count_types, count_words, mentions_in
from sequst.corpus.formats.columns import write_conll
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError, nearest
from sequst.files import atomic_folder, write_json

SAMPLERS = ("sentences", "mentions")


@dataclass(frozen=True)
class Split:
    """A K-shot split. The tags of `unlabeled` are for diagnosis; training hides them."""

    labeled: list[Sentence]
    dev: list[Sentence]
    unlabeled: list[Sentence]
    shots: int
    sampler: str
    seed: int
    short: dict[str, str] = field(default_factory=dict)
    """Types with too few for both sets, and what each got."""

    def summary(self) -> dict[str, Any]:
        how = {"shots": self.shots, "sampler": self.sampler, "seed": self.seed, "short_types": self.short}
        return {**how, **{name: _counts(part) for name, part in self._parts().items()}}

    def _parts(self) -> dict[str, list[Sentence]]:
        return {"labeled": self.labeled, "dev": self.dev, "unlabeled": self.unlabeled}

    def save(self, folder: str | Path) -> None:
        """Write labeled.conll, dev.conll, unlabeled.conll and summary.json, or none of them."""
        with atomic_folder(folder) as temporary:
            for name, sentences in self._parts().items():
                write_conll(temporary / f"{name}.conll", sentences)
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
        labeled, dev = draw.of_type(type_, shots, sampler == "mentions")
        if min(labeled, dev) < shots:
            short[type_] = f"{labeled} labelled, {dev} dev {sampler} of {shots}"
    taken = {*draw.parts[0], *draw.parts[1]}
    rest = [sentence for i, sentence in enumerate(sentences) if i not in taken]
    labelled, dev_set = ([sentences[i] for i in part] for part in draw.parts)
    return Split(labelled, dev_set, rest, shots, sampler, seed, short)


class _Draw:
    """What has been drawn so far, as places of sentences: a labelled set and a dev set."""

    def __init__(self, sentences: Sequence[Sentence], rng: random.Random) -> None:
        self.parts: tuple[list[int], list[int]] = ([], [])
        self._all, self._rng = sentences, rng
        self._taken: set[tuple[str, ...]] = set()
        self._found = [mentions_in(sentence) for sentence in sentences]

    def of_type(self, type_: str, shots: int, by_mentions: bool) -> tuple[int, int]:
        """(labelled, dev) shots of the type: sentences drawn for it, or its mentions that are there now."""

        def count(place: int) -> int:
            return self._found[place][type_] if by_mentions else 1

        have = [sum(map(count, part)) if by_mentions else 0 for part in self.parts]
        candidates = self._candidates(type_)
        available = sum(have) + sum(map(count, candidates))
        goals = min(shots, (available + 1) // 2), min(shots, available // 2)
        for place in candidates:
            part = 0 if have[0] < goals[0] else 1
            if have[part] >= goals[part]:
                break
            self.parts[part].append(place)
            self._taken.add(self._all[place].words)
            have[part] += count(place)
        return have[0], have[1]

    def _candidates(self, type_: str) -> list[int]:
        """Sentences with the type, shuffled, none with the words of another or of one already taken."""
        drawn = {*self.parts[0], *self.parts[1]}
        order = [i for i, found in enumerate(self._found) if found[type_] and i not in drawn]
        self._rng.shuffle(order)
        first = {self._all[i].words: i for i in reversed(order) if self._all[i].words not in self._taken}
        return [i for i in order if first.get(self._all[i].words) == i]


def sample_dev(sentences: Sequence[Sentence], shots: int, seed: int) -> tuple[list[int], dict[str, int]]:
    """(places of the dev sentences, types of which fewer were found and how many): K sentences of every type, the rarest first,
    without taking more than half of the sentences of any type. Sentences with the same words count once."""
    rng = random.Random(seed)
    types_of: dict[tuple[str, ...], set[str]] = {}
    places: dict[tuple[str, ...], int] = {}
    for place, sentence in enumerate(sentences):  # all copies of a sentence go with it, and what any of them holds
        places.setdefault(sentence.words, place)
        types_of.setdefault(sentence.words, set()).update(mentions_in(sentence))
    there: Counter[str] = Counter()
    for types in types_of.values():
        there.update(types)
    taken: Counter[str] = Counter()
    chosen: list[tuple[str, ...]] = []
    for type_ in sorted(there, key=lambda t: (there[t], t)):
        candidates = [words for words, types in types_of.items() if type_ in types and words not in chosen]
        rng.shuffle(candidates)
        for words in candidates:
            if taken[type_] < shots and all(2 * (taken[t] + 1) <= there[t] for t in types_of[words]):
                chosen.append(words)
                taken.update(types_of[words])
    return sorted(places[words] for words in chosen), {t: taken[t] for t in sorted(there) if taken[t] < shots}
