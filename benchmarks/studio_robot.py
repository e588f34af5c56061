"""A robot labels a benchmark through the studio's API with the gold labels; its models are scored on the test set.

  SEQUST_DATA=DIR python benchmarks/studio_robot.py --data conll03 --out OUT.json [--labels 50,100,200] [--effort default]
  SEQUST_DATA=DIR python benchmarks/studio_robot.py --data conll03 --out OUT.json --usual   # what it is compared with

Both add to OUT.json, by data set.

The robot waits whenever a training is due, as a person who labels slowly would not notice it. At each of the points it presses
"learn from the raw text" with --effort, and the model is scored on the test set; the F1 that the studio tells from its judging
sentences is kept beside it. The usual way: as many random sentences, `AutoModelForTokenClassification` and transformers'
Trainer with at least 600 steps, three seeds. Keys per sentence are counted for the studio and for other tools.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path
from typing import Any

from studio_process import Studio

from sequst.corpus.formats.jsonl import write_jsonl
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Span, spans
from sequst.evaluation.evaluate import evaluate
from sequst.experiments.benchmarks import read_part
from sequst.files import Scratch, write_json
from sequst.tagger.tagger import Tagger

Record = dict[str, Any]


def keys(gold: list[Span], suggested: list[Span]) -> int:
    """Keys (and clicks or drags) that turn the suggestions into the gold labels and go on: a key for each type to be set or
    changed or mark to be removed, with a drag before it where the edges are new and more than a word; then Enter."""
    count = 1
    edges = {span[1:]: span.type for span in suggested}
    for span in gold:
        if edges.get(span[1:]) == span.type:
            continue
        new_edges = span[1:] not in edges
        count += 1 + (new_edges and span.end - span.start > 1)
    kept = {span[1:] for span in gold}
    count += sum(span[1:] not in kept and not any(_overlap(span, each) for each in gold) for span in suggested)
    return count


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def others(gold: list[Span]) -> Record:
    """The least that other tools take for the same labels, without suggestions: in doccano a drag and a key for each entity
    and a key to go on; in Label Studio a key for the type and a drag for each entity, and Ctrl-Enter."""
    return {"doccano": 2 * len(gold) + 1, "label_studio": 2 * len(gold) + 1}


def label_with_studio(args: argparse.Namespace, pool: list[Sentence], test: list[Sentence], types: list[str]) -> Record:
    gold = {sentence.words: spans(sentence.tags or ()) for sentence in pool}
    points, found, actions, waits = [int(each) for each in args.labels.split(",")], [], [], []
    with Scratch() as scratch:
        text, folder = Path(scratch) / "raw.jsonl", Path(scratch) / "project"
        write_jsonl(text, [sentence.without_tags() for sentence in pool])
        studio = Studio(folder, "--encoder", args.encoder, "--text", str(text), "--types", ",".join(types))
        try:
            while points:
                begun = time.perf_counter()
                given = studio.ask("GET", "/api/next")
                waits.append(1000 * (time.perf_counter() - begun))
                right = gold[tuple(given["words"])]
                suggested = [Span(each["type"], each["start"], each["end"]) for each in given["suggestions"]]
                entities = [span._asdict() for span in right]
                told = studio.ask("POST", f"/api/sentences/{given['id']}/labels", {"entities": entities})
                actions.append(
                    {"labels": told["labeled"], "judging": given["judging"], "studio": keys(right, suggested), **others(right)}
                )
                if told["labeled"] % 5 and told["labeled"] not in points:
                    continue
                studio.wait()
                if told["labeled"] == points[0]:
                    found.append(_scored(studio, folder, points.pop(0), test, args.effort))
                    print(found[-1], flush=True)
        finally:
            studio.stop()
    waits.sort()
    return {
        "points": found,
        "keys": _mean_keys(actions),
        "next_ms": {"p50": waits[len(waits) // 2], "p95": waits[int(0.95 * len(waits))]},
    }


def _scored(studio: Studio, folder: Path, labels: int, test: list[Sentence], effort: str) -> Record:
    """The quick model that is there, and the one of the effort, on the test set."""
    record: Record = {"labels": labels}
    for kind in dict.fromkeys(("quick", effort)):
        begun = time.perf_counter()
        state = studio.ask("GET", "/api/state")
        if state["model"] is None or state["model"]["labels"] != labels or kind != "quick":
            studio.ask("POST", "/api/train", {"effort": kind})
            state = studio.wait()
        tagger = Tagger.load(folder / state["model"]["folder"], "cpu")
        record[kind] = {"test": evaluate(tagger, test).total.f1, "judged": state["f1"], "seconds": time.perf_counter() - begun}
    record["judging"] = state["judging"]
    return record


def _mean_keys(actions: list[Record]) -> Record:
    """Of the sentences from the 100th on, those for judging among them."""
    late = [each for each in actions if each["labels"] > 100] or actions
    mean = {name: sum(each[name] for each in late) / len(late) for name in ("studio", "doccano", "label_studio")}
    return {**mean, "sentences": len(late)}


def usual(args: argparse.Namespace, pool: list[Sentence], test: list[Sentence]) -> Record:
    from plain_fine_tuning import one_run

    found = []
    for labels in (int(each) for each in args.labels.split(",")):
        for seed in (12, 21, 42):
            drawn = random.Random(seed).sample(pool, labels)
            counts, seconds, device = one_run(drawn, test, args.encoder, seed)
            found.append({"labels": labels, "seed": seed, "test": counts.f1, "seconds": seconds, "device": device})
            print(found[-1], flush=True)
    return {"points": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--labels", default="50,100,200")
    parser.add_argument("--effort", default="default")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--usual", action="store_true")
    args = parser.parse_args()
    data = Path(os.environ["SEQUST_DATA"])
    pool = list({each.words: each for each in read_part(data, args.data, "train") if each.words}.values())
    test = read_part(data, args.data, "test")
    types = sorted({span.type for sentence in pool for span in spans(sentence.tags or ())})
    way = "usual" if args.usual else "studio"
    found = usual(args, pool, test) if args.usual else label_with_studio(args, pool, test, types)
    out = Path(args.out)
    all_ = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    all_.setdefault(args.data, {"encoder": Path(args.encoder).name})[way] = found
    write_json(out, all_)


if __name__ == "__main__":
    main()
