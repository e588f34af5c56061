"""How many labels that were made wrong on purpose are found: ours beside cleanlab, on the same cross-validated probabilities.

python benchmarks/suspects.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--data mit_restaurant] [--sentences 400]
    [--share 0.05] [--folds 5] [--seeds 12,21] [--steps 600] [--batch 8]

One label in twenty is made wrong, as many in each of four ways: another type, an edge moved by a word, an entity dropped, an
entity where none is. Then taggers judge the folds that they have not learnt, and each ranking is read from its top, as many
entries as labels were made wrong:

- `ours`: entities and missed entities, as `sequst suspects` ranks them; `ratio`: the same without what is usual for a tag, and
  `difference`: by how much likelier one is than the other, not how many times;
- `cleanlab, words`: words by cleanlab's `get_label_quality_scores`, from the lowest up; `cleanlab, margins` by those that it
  makes of the margin between the given label and the likeliest other;
- `cleanlab, issues`: those words that its `find_label_issues` calls wrong, in its order.

Words of cleanlab that stand side by side are one entry, at the place of the first. An entry is right where it has a word
whose label was changed; precision is the share of right entries, recall the share of wrong labels that some entry has found.
cleanlab is asked where it can be imported. Sentences are of a benchmark where SEQUST_DATA names the folder, else of the
generated corpus.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import common
import numpy as np

from sequst.annotation.label_errors import HeldOutPrediction, rank_suspects, suspects_of
from sequst.annotation.suspects import judge
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Span, spans, tags_of, types_of
from sequst.tagger.tagger import labels_of
from sequst.training.configure import from_dict
from sequst.training.progress import Progress

WAYS = ("type", "edge", "dropped", "spurious")


class Wrong(NamedTuple):
    """A label that was made wrong: in which sentence, how, and the words whose tags are others now."""

    sentence: int
    way: str
    words: frozenset[int]


class Entry(NamedTuple):
    """An entry of a ranking: some words of a sentence."""

    sentence: int
    words: frozenset[int]


def corrupt(sentences: Sequence[Sentence], share: float, seed: int) -> tuple[list[Sentence], list[Wrong]]:
    """The sentences with a share of their entities made wrong, one in a sentence at most, and which."""
    rng = random.Random(seed)
    types = types_of(sentence.tags or () for sentence in sentences)
    goal = round(share * sum(len(spans(sentence.tags or ())) for sentence in sentences))
    order = list(range(len(sentences)))
    rng.shuffle(order)
    changed, wrong = list(sentences), []
    for place in order:
        if len(wrong) == goal:
            break
        way = WAYS[len(wrong) % len(WAYS)]
        tags = sentences[place].tags or ()
        new = _changed(spans(tags), len(tags), way, types, rng)
        if new is not None:
            after = tags_of(new, len(tags))
            words = frozenset(i for i, (one, other) in enumerate(zip(tags, after, strict=True)) if one != other)
            changed[place] = dataclasses.replace(sentences[place], tags=after)
            wrong.append(Wrong(place, way, words))
    return changed, wrong


def _changed(found: list[Span], length: int, way: str, types: list[str], rng: random.Random) -> list[Span] | None:
    """The entities with one of them made wrong, or one too many; None where that cannot be done."""
    taken = {i for span in found for i in range(span.start, span.end)}
    if way == "spurious":
        free = [i for i in range(length) if i not in taken]
        if not free:
            return None
        start = rng.choice(free)
        end = start + 2 if start + 1 in free and rng.random() < 0.5 else start + 1
        return sorted([*found, Span(rng.choice(types), start, end)], key=lambda span: span.start)
    if not found:
        return None
    at = rng.randrange(len(found))
    type_, start, end = found[at]
    if way == "dropped":
        return [*found[:at], *found[at + 1 :]]
    if way == "type":
        others = [other for other in types if other != type_]
        return [*found[:at], Span(rng.choice(others), start, end), *found[at + 1 :]] if others else None
    moves = [Span(type_, start - 1, end)] if start > 0 and start - 1 not in taken else []
    moves += [Span(type_, start, end + 1)] if end < length and end not in taken else []
    moves += [Span(type_, start + 1, end), Span(type_, start, end - 1)] if end - start > 1 else []
    return [*found[:at], rng.choice(moves), *found[at + 1 :]] if moves else None


def figures(ranking: Sequence[Entry], wrong: Sequence[Wrong], first: int) -> dict[str, Any]:
    """Precision and recall among the first entries, in percent, and how many of each way were found."""
    top = ranking[:first]
    hits = [any(entry.sentence == each.sentence and entry.words & each.words for each in wrong) for entry in top]
    found = [any(entry.sentence == each.sentence and entry.words & each.words for entry in top) for each in wrong]
    ways = {way: [ok for ok, each in zip(found, wrong, strict=True) if each.way == way] for way in WAYS}
    return {
        "precision": 100.0 * sum(hits) / max(1, len(top)),
        "recall": 100.0 * sum(found) / max(1, len(wrong)),
        "recall_by_way": {way: 100.0 * sum(ok) / len(ok) for way, ok in ways.items() if ok},
        "entries": len(ranking),
    }


def together(ranked: Sequence[tuple[int, int]]) -> list[Entry]:
    """Ranked words as entries: words of a sentence that stand side by side are one, at the place of the first of them."""
    words = set(ranked)
    seen: set[tuple[int, int]] = set()
    entries = []
    for sentence, word in ranked:
        if (sentence, word) in seen:
            continue
        begin = end = word
        while (sentence, begin - 1) in words:
            begin -= 1
        while (sentence, end + 1) in words:
            end += 1
        seen |= {(sentence, i) for i in range(begin, end + 1)}
        entries.append(Entry(sentence, frozenset(range(begin, end + 1))))
    return entries


def ours(judged: Sequence[HeldOutPrediction]) -> dict[str, list[Entry]]:
    alike = dict.fromkeys((label for each in judged for label in each.labels), 1.0)
    plain = [suspect for each in judged for suspect in suspects_of(each, alike)]
    rankings = {
        "ours": rank_suspects(judged),
        "ratio": sorted(plain, key=lambda suspect: -suspect.doubt),
        "difference": sorted(plain, key=lambda suspect: suspect.given_probability - suspect.alternative_probability),
    }
    return {
        name: [Entry(each.number - 1, frozenset(range(each.start, each.end))) for each in suspects]
        for name, suspects in rankings.items()
    }


def cleanlab_rankings(judged: Sequence[HeldOutPrediction], labels: list[str], first: int) -> dict[str, list[Entry]]:
    """Each of its rankings; nothing where it is not installed."""
    try:
        from cleanlab.token_classification.filter import find_label_issues
        from cleanlab.token_classification.rank import get_label_quality_scores
    except ImportError:
        return {}
    given = [[labels.index(tag) for tag in each.sentence.tags or ()] for each in judged]
    probabilities = [_of_labels(each, labels) for each in judged]
    rankings = {}
    for name, method in (("words", "self_confidence"), ("margins", "normalized_margin")):
        _, of_words = get_label_quality_scores(given, probabilities, token_score_method=method)
        words = [(value, place, word) for place, each in enumerate(of_words) for word, value in enumerate(each.tolist())]
        # of all words only as many as can fill the entries that are read: neighbours further down must not join them
        lowest: list[tuple[int, int]] = []
        for _, place, word in sorted(words):
            lowest.append((place, word))
            if len(together(lowest)) > first:
                break
        rankings[f"cleanlab, {name}"] = together(lowest)
    issues = [(int(place), int(word)) for place, word in find_label_issues(given, probabilities)]
    return {**rankings, "cleanlab, issues": together(issues)}


def _of_labels(judged: HeldOutPrediction, labels: list[str]) -> np.ndarray:
    """(W, C) of all labels of the data; those that a fold's tagger does not know have 0."""
    wide = np.zeros((len(judged.tags), len(labels)))
    wide[:, [labels.index(label) for label in judged.labels]] = judged.probabilities
    return wide / wide.sum(-1, keepdims=True)


def measure(sentences: Sequence[Sentence], options: Any, seed: int) -> dict[str, Any]:
    changed, wrong = corrupt(sentences, options.share, seed)
    phase = {"min_steps": options.steps, "epochs": options.epochs, "batch_size": options.batch}
    settings = from_dict({"encoder": options.encoder, "device": options.device, "seed": seed, "teacher": phase})
    begun = time.perf_counter()
    judged = judge(changed, options.folds, settings, Progress())
    seconds = time.perf_counter() - begun
    rankings = ours(judged) | cleanlab_rankings(judged, labels_of(changed), len(wrong))
    return {
        "seed": seed,
        "wrong_labels": len(wrong),
        "entities": sum(len(spans(sentence.tags or ())) for sentence in changed),
        "rankings": {name: figures(ranked, wrong, len(wrong)) for name, ranked in rankings.items()},
        "seconds": seconds,
    }


def main() -> None:
    phase = {"steps": 600, "epochs": 5.0, "batch": 8}
    given = {"encoder": "minilm", "data": "mit_restaurant", "sentences": 400, "share": 0.05, "folds": 5, "seeds": "12"}
    options = common.options(__doc__, **given, **phase)
    data, train_set, _ = common.benchmark(options.data)
    runs = []
    for seed in map(int, options.seeds.split(",")):
        sentences = random.Random(seed).sample(train_set, min(options.sentences, len(train_set)))
        runs.append(measure(sentences, options, seed))
    asked = common.asked(options, "encoder", "sentences", "share", "folds", "steps", "epochs", "batch")
    common.tell({**summary(runs), "runs": runs, "data": data, **asked, **common.machine(options.device)}, options.json)


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation over the seeds: of every ranking, and of how far ours is ahead of another in the same run."""
    keys = ("precision", "recall")
    of = {name: {key: [run["rankings"][name][key] for run in runs] for key in keys} for name in runs[0]["rankings"]}
    ahead = {
        name: {key: common.spread([a - b for a, b in zip(of["ours"][key], values[key], strict=True)]) for key in keys}
        for name, values in of.items()
        if name != "ours"
    }
    means = {name: {key: common.spread(values[key]) for key in keys} for name, values in of.items()}
    ways = {
        name: {way: statistics.fmean(run["rankings"][name]["recall_by_way"].get(way, 0.0) for run in runs) for way in WAYS}
        for name in of
    }
    return {"mean": means, "ahead": ahead, "recall_by_way": ways}


if __name__ == "__main__":
    main()
