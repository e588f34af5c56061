"""A random draw from a stream of sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from sequst.annotation.diversity import Highest
from sequst.corpus.sentence import Sentence

Key = Callable[[tuple[str, ...]], tuple[str, ...]]
_DIGITS = re.compile(r"\d+")


def shape(words: tuple[str, ...]) -> tuple[str, ...]:
    """A key that is equal for lines that differ only in numbers and capitals."""
    return tuple(_DIGITS.sub("0", word.lower()) for word in words)


class Draw:
    """At most `most` different sentences of all that were offered, each as likely as another; at most twice as many are held.

    Every sentence has a random number, a hash of its words and the seed, and the highest are kept. So copies count once, and
    the order of the stream does not matter. Sentences with the same `key` of their words count as copies.
    """

    def __init__(self, most: int, seed: int, key: Key = lambda words: words) -> None:
        self._most, self._seed, self._key = most, seed, key
        self._held = Highest[Sentence](most)

    def watch(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """The same sentences, each offered as it passes."""
        for sentence in sentences:
            self.offer(sentence)
            yield sentence

    def offer(self, sentence: Sentence) -> None:
        if self._most:
            key = self._key(sentence.words)
            self._held.offer(self._number(key), key, sentence)

    def drawn(self) -> list[Sentence]:
        """In random order: the first n are a draw of n."""
        return [sentence for _, sentence in self._held.ranked()] if self._most else []

    def _number(self, key: tuple[str, ...]) -> float:
        text = "\0".join((str(self._seed), *key))
        return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") / 2**64
