"""Sentences that are in several files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sequst.corpus.sentence import Sentence

ROLES = ("test", "dev", "labeled", "unlabeled")
"""From the most protected file to the least: a sentence in two files is dropped from the later one."""


def drop_overlap(files: Mapping[str, list[Sentence]]) -> tuple[dict[str, list[Sentence]], Counter[tuple[str, str]]]:
    """(the files without sentences that a more protected file has, how many went from (role) because of (role))."""
    seen: dict[tuple[str, ...], str] = {}
    kept: dict[str, list[Sentence]] = {}
    dropped: Counter[tuple[str, str]] = Counter()
    for role in (role for role in ROLES if role in files):
        kept[role] = [sentence for sentence in files[role] if sentence.words not in seen]
        for sentence in files[role]:
            owner = seen.setdefault(sentence.words, role)
            if owner != role:
                dropped[role, owner] += 1
    return kept, dropped


def overlap_messages(dropped: Mapping[tuple[str, str], int]) -> list[str]:
    return [f"{count} sentences of {role} left out: {other} has them too" for (role, other), count in dropped.items()]


def shared(sentences: Iterable[Sentence], others: Iterable[Sentence]) -> int:
    """How many of the sentences have the words of one of the others."""
    words = {sentence.words for sentence in others}
    return sum(sentence.words in words for sentence in sentences)
