"""Split labelled sentences into folds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from sequst.corpus.counts import mentions_in
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError


def fold_of(sentences: Sequence[Sentence], folds: int, seed: int) -> list[int]:
    """The fold of every sentence, from 0. Sentences with the same words are in the same one, and none is empty.

    Those of the rarest type come first, and each goes where fewest mentions of that type are, then where fewest sentences are;
    so every type is spread over as many folds as it can be.
    """
    if folds < 2:
        raise UsageError(f"{folds} folds: at least 2")
    copies: dict[tuple[str, ...], list[int]] = {}
    for place, sentence in enumerate(sentences):
        copies.setdefault(sentence.words, []).append(place)
    if len(copies) < folds:
        raise SequstError(f"{len(copies)} different sentences are too few for {folds} folds; label more, or use fewer folds")
    found = [mentions_in(sentence) for sentence in sentences]
    all_of: Counter[str] = sum(found, Counter())
    groups = list(copies.values())
    random.Random(seed).shuffle(groups)

    def rarest(group: list[int]) -> tuple[float, str]:
        """(how many mentions there are, the type); sentences without entities come last."""
        return min(((all_of[type_], type_) for place in group for type_ in found[place]), default=(float("inf"), ""))

    there: list[Counter[str]] = [Counter() for _ in range(folds)]
    sizes = [0] * folds
    chosen = [0] * len(sentences)
    for group in sorted(groups, key=rarest):
        _, type_ = rarest(group)
        fold = min(range(folds), key=lambda each: (there[each][type_], sizes[each], each))
        sizes[fold] += len(group)
        for place in group:
            chosen[place] = fold
            there[fold].update(found[place])
    return chosen
