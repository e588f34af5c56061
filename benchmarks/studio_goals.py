"""Times, memory and crashes of the studio on this machine.

  python benchmarks/studio_goals.py --out OUT.json [--only first_label large while_training kills]

first_label: from `sequst studio --demo` to the first label that is on the disk.
large: a project of 200,000 sentences: seconds to open it, to give a sentence, to label; memory of the server.
while_training: the time from a label to the next sentence while a model is trained, of 400 labels.
kills: server and worker are killed (SIGKILL) at random, 50 times in a session of labels, skips and undos; then every answer
that was acknowledged must be there, and none twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from studio_process import Studio, ask, memory_of

from sequst.corpus.generated import generate
from sequst.corpus.sentence import sentence_from_text
from sequst.corpus.tags import spans
from sequst.files import Scratch, write_json
from sequst.studio.project import Project

GOLD = {sentence.words: [span._asdict() for span in spans(sentence.tags or ())] for sentence in generate(pool=8000).pool}
TYPES = sorted({span["type"] for found in GOLD.values() for span in found})


def label(address: str) -> float:
    """Label a sentence; seconds from the label to the next one."""
    given = ask(address, "GET", "/api/next")
    found = GOLD.get(tuple(given["words"]), [])
    begun = time.perf_counter()
    ask(address, "POST", f"/api/sentences/{given['id']}/labels", {"entities": found})
    ask(address, "GET", "/api/next")
    return time.perf_counter() - begun


def first_label(folder: Path) -> dict[str, Any]:
    found = []
    for run in range(3):
        place = folder / f"demo-{run}"
        place.mkdir()
        begun = time.perf_counter()
        command = [sys.executable, "-m", "sequst", "studio", "--demo", "--no-browser", "--port", str(8300 + run)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=place) as process:
            while True:
                try:
                    label(f"http://127.0.0.1:{8300 + run}")
                    break
                except (urllib.error.URLError, ConnectionError):
                    time.sleep(0.02)
            found.append(time.perf_counter() - begun)
            process.terminate()
    return {"seconds": sorted(found)}


def large(folder: Path, sentences: int = 200_000) -> dict[str, Any]:
    project, begun = Project(folder / "large"), time.perf_counter()
    words = [word for sentence in GOLD for word in sentence]
    rng = random.Random(12)
    project.add_text((sentence_from_text(f"{' '.join(rng.choices(words, k=20))} {i}") for i in range(sentences)), "made")
    added = time.perf_counter() - begun
    for name in TYPES:
        project.change_types({"op": "add", "name": name}, "")
    begun = time.perf_counter()
    studio = Studio(folder / "large")
    opened = time.perf_counter() - begun
    waits = sorted(label(studio.address) for _ in range(9))
    begun = time.perf_counter()
    state = studio.ask("GET", "/api/state")
    asked = time.perf_counter() - begun
    begun = time.perf_counter()
    studio.ask("GET", "/api/sentences?status=all&q=nowhere+at+all")
    searched = time.perf_counter() - begun
    memory = studio.memory()
    studio.stop()
    return {
        "sentences": state["sentences"], "add_seconds": added, "open_seconds": opened, "state_seconds": asked,
        "search_seconds": searched, "next_ms_median": 1000 * waits[4], "server_mb": memory,
    }  # fmt: skip


def while_training(folder: Path) -> dict[str, Any]:
    """A person labels every quarter of a second while a model is trained."""
    project = Project(folder / "training")
    project.add_text([sentence.without_tags() for sentence in generate(pool=8000).pool], "generated")
    for name in TYPES:
        project.change_types({"op": "add", "name": name}, "")
    studio = Studio(folder / "training")
    for _ in range(12):
        label(studio.address)
    waits, phases = [], set()
    while len(waits) < 400:
        if len(waits) % 10 == 0:
            training = studio.ask("GET", "/api/state")["training"]
            if training is None:
                label(studio.address)
                time.sleep(0.25)
                continue
            phases.add(training["phase"])
        waits.append(label(studio.address))
        time.sleep(0.25)
    memory = {"server_mb": studio.memory(), "worker_mb": memory_of(studio.workers()[0])}
    studio.stop()
    waits.sort()
    return {
        "labels": len(waits), "p50_ms": 1000 * waits[200], "p95_ms": 1000 * waits[380], "most_ms": 1000 * waits[-1],
        "phases": sorted(phases), **memory,
    }  # fmt: skip


def kills(folder: Path, times: int = 50) -> dict[str, Any]:
    project = Project(folder / "kills")
    project.add_text([sentence.without_tags() for sentence in generate(pool=8000).pool], "generated")
    for name in TYPES:
        project.change_types({"op": "add", "name": name}, "")
    rng, accepted, of_worker = random.Random(12), dict[int, Any](), 0
    studio = Studio(folder / "kills")
    killed = 0
    while killed < times:
        if rng.random() < 0.5 and (workers := studio.workers()):
            threading.Timer(rng.uniform(0.05, 3.0), os.kill, (workers[0], signal.SIGKILL)).start()
            killed, of_worker = killed + 1, of_worker + 1
        timer = threading.Timer(rng.uniform(0.05, 5.0), studio.process.kill)
        timer.start()
        try:
            while True:
                time.sleep(rng.uniform(0.0, 0.1))
                kind = rng.choices(("label", "skip", "undo"), (8, 1, 1))[0]
                if kind == "undo":
                    undone = studio.ask("POST", "/api/undo", {})
                    if undone["undone"]:
                        accepted.pop(undone["sentence"]["id"], None)
                    continue
                given = studio.ask("GET", "/api/next")
                if kind == "skip":
                    studio.ask("POST", f"/api/sentences/{given['id']}/skip", {})
                    accepted[given["id"]] = None
                else:
                    found = GOLD[tuple(given["words"])]
                    studio.ask("POST", f"/api/sentences/{given['id']}/labels", {"entities": found})
                    accepted[given["id"]] = found
        except (OSError, urllib.error.URLError, ValueError, ConnectionError):
            pass  # killed: what was under way is not acknowledged
        timer.join()
        studio.process.wait()
        killed += 1
        studio = Studio(folder / "kills")
    studio.stop()
    project = Project(folder / "kills")
    lost = doubled = other = 0
    for id_, found in accepted.items():
        row, events = project.row(id_), project.history(id_)
        wanted = "skip" if found is None else "labels"
        # an undo that was done but not acknowledged takes back one answer; the next label of the session finds it open again
        lost += row["status"] != wanted and not any(each["kind"] == "undo" for each in events)
        given = [each for each in events if each["kind"] in ("labels", "skip")]
        taken_back = sum(each["kind"] == "undo" for each in events)
        doubled += len(given) - taken_back > 1
        other += found is not None and row["entities"] is not None and len(json.loads(row["entities"])) != len(found)
    check = project.database.reading.execute("PRAGMA integrity_check").fetchone()[0]
    return {
        "kills": killed, "of_the_worker": of_worker, "acknowledged": len(accepted), "lost": lost, "doubled": doubled,
        "changed": other, "integrity": check,
    }  # fmt: skip


PARTS = {each.__name__: each for each in (first_label, large, while_training, kills)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(Path(options.out).read_text()) if Path(options.out).exists() else {}
    for name in options.only:
        with Scratch() as folder:
            found[name] = PARTS[name](Path(folder))
        print(name, found[name], flush=True)
        write_json(options.out, found)


if __name__ == "__main__":
    main()
