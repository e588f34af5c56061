"""The first batch to label, before there is a model: typical sentences that differ, by a pretrained encoder.

The encoder's vectors of a random draw are clustered, and of every cluster a sentence near its centre is chosen. Large clusters
come first, for odd sentences (a single word, a table, a list of a thousand names) are in small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sequst.annotation.diversity import features, spread_out
from sequst.annotation.draw import Draw, shape
from sequst.annotation.judging import SHARE, for_judging, interleave, judging_count, require_share
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError
from sequst.files import as_path
from sequst.inputs import read_json
from sequst.tagger.encoders.pretrained import MINILM
from sequst.tagger.encoders.shape import BILSTM, SHAPE, require_folder
from sequst.tagger.predict import sentence_vectors
from sequst.tagger.save import CONFIG, FACTS
from sequst.tagger.tagger import Tagger, pick_device
from sequst.training.seeds import derive

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 2000
"""Sentences that are clustered; of more a random draw."""
STEPS = 30
"""Of k-means at most."""


def choose_first(
    encoder: str,
    sentences: Iterable[Sentence],
    count: int = 50,
    *,
    seed: int = 12,
    judging: float = SHARE,
    labeled: Iterable[Sentence] = (),
    device: str = "auto",
    advance: Callable[[int], None] = lambda sentences: None,
) -> list[Sentence]:
    """The `count` sentences to label first, without tags, or all different ones where there are fewer.

    Typical ones that differ, chosen by the vectors of `encoder` (`minilm`, a folder or a hub model) among `MOST` that are drawn
    at random; lines that differ only in numbers and capitals count as one. The share `judging` of them, every fifth, is drawn
    at random and marked for judging. Sentences with the words of a `labeled` one are never chosen. The text is read as a
    stream; `advance` is called for each sentence of it.
    """
    if count < 1:
        raise UsageError(f"count {count}: choose at least 1 sentence")
    require_share(judging)
    if encoder == BILSTM:
        raise UsageError(f"the encoder {BILSTM} is not pretrained, so it cannot tell sentences apart; use {MINILM}")
    tagger = Tagger.from_encoder(encoder, ["O"], seed=seed).to(pick_device(device))
    done = {sentence.words for sentence in labeled}
    drawn = Draw(max(MOST, 2 * count), derive(seed, "first"), shape)
    marked = Draw(judging_count(count, judging), seed)
    for sentence in marked.watch(sentence for sentence in sentences if sentence.words and sentence.words not in done):
        drawn.offer(sentence)
        advance(1)
    candidates = [replace(each, tags=None, judging=False) for each in drawn.drawn()]
    for_judge = for_judging(marked.drawn(), (each.words for each in candidates), count, judging)
    taken = {sentence.words for sentence in for_judge}
    candidates = [each for each in candidates if each.words not in taken]
    return interleave(_typical(tagger, candidates, count - len(for_judge), seed), for_judge)


def is_encoder(name: str) -> bool:
    """Whether it names a pretrained encoder, not a tagger: `minilm`, a folder whose model has no classifier of words, or
    OWNER/NAME of the hub if there is no folder OWNER here. RUN/model is never one of the hub: a slip of the pen stays here."""
    folder = as_path(name)
    if folder.is_dir():
        if any((folder / file).is_file() for file in (FACTS, SHAPE)) or not (folder / CONFIG).is_file():
            return False
        config = read_json(folder / CONFIG)
        kinds = (config.get("architectures") if isinstance(config, dict) else None) or []
        return isinstance(kinds, list) and not any(str(kind).endswith("ForTokenClassification") for kind in kinds)
    owner, _, own = name.partition("/")
    if own in ("", "model") or Path(owner).exists():
        return name == MINILM
    try:
        require_folder(name)
    except SequstError:
        return False
    return not folder.exists()


def _typical(tagger: Tagger, candidates: Sequence[Sentence], count: int, seed: int) -> list[Sentence]:
    """A sentence of every cluster. The first is of the largest; each next one has the largest product of the size of its
    cluster and its distance from those before it, so whoever labels only the first ten has ten that differ too."""
    if not candidates or count < 1:
        return []
    vectors = sentence_vectors(tagger, candidates)
    centred = vectors - vectors.mean(0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    directions: NDArray[np.float64] = centred / np.where(lengths > 0, lengths, 1.0)
    groups = clusters(directions, count, seed)
    places = [_usual(group, candidates) for group in groups]
    own, some = vectors[places], [candidates[place] for place in places]
    return [some[place] for place in spread_out([len(group) for group in groups], own, count, features(own, some))]


def _usual(group: Sequence[int], candidates: Sequence[Sentence]) -> int:
    """Of the nearer half of a cluster that with the median number of words. The nearest alone is bland: it is short, and has
    fewer entities than others."""
    near = sorted(group[: (len(group) + 1) // 2], key=lambda place: len(candidates[place]))
    return near[len(near) // 2]


def clusters(vectors: NDArray[np.float64], count: int, seed: int) -> list[list[int]]:
    """The rows of every cluster, the nearest to its centre first: k-means with k-means++. Every row alone if there are no more
    than `count`."""
    if len(vectors) <= count:
        return [[row] for row in range(len(vectors))]
    rows = np.arange(len(vectors))
    centres = vectors[_spread_rows(vectors, count, np.random.default_rng(seed))]
    own = np.full(len(vectors), -1)
    for _ in range(STEPS):
        distances = _squared_distances(vectors, centres)
        nearest = distances.argmin(1)
        for empty in np.setdiff1d(np.arange(count), nearest):  # takes the row that is worst off, of a cluster with others
            sizes = np.bincount(nearest, minlength=count)
            far = int(np.argmax(np.where(sizes[nearest] > 1, distances[rows, nearest], -1.0)))
            nearest[far] = empty
        if (nearest == own).all():
            break
        own = nearest
        sums = np.zeros_like(centres)
        np.add.at(sums, own, vectors)
        centres = sums / np.bincount(own, minlength=count)[:, None]
    order = np.argsort(_squared_distances(vectors, centres)[rows, own], kind="stable")
    return [order[own[order] == cluster].tolist() for cluster in range(count)]


def _spread_rows(vectors: NDArray[np.float64], count: int, rng: np.random.Generator) -> list[int]:
    """First centres, by k-means++: each next row with a probability in proportion to its squared distance from those taken."""
    places = [int(rng.integers(len(vectors)))]
    nearest = _squared_distances(vectors, vectors[places])[:, 0]
    while len(places) < count:
        nearest[places] = 0.0
        total = nearest.sum()
        free = np.setdiff1d(np.arange(len(vectors)), places)
        places.append(int(rng.choice(len(vectors), p=nearest / total) if total > 0 else rng.choice(free)))
        nearest = np.minimum(nearest, _squared_distances(vectors, vectors[places[-1:]])[:, 0])
    return places


def _squared_distances(rows: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, K)"""
    crossed = rows @ centres.T
    distances: NDArray[np.float64] = (rows**2).sum(1)[:, None] - 2.0 * crossed + (centres**2).sum(1)
    return np.maximum(distances, 0.0)
