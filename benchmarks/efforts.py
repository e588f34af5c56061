"""How long the efforts take from a few labelled sentences to a tagger, and how well that was foretold.

SEQUST_DATA=DIR python benchmarks/efforts.py [--json FILE] [--cases 1,2]

Each case is a run on CoNLL-03 (its 100,000 sentences of raw text are OntoNotes'), forecast included: `foretold` are the seconds
that the note before training says, `seconds` those that passed from then to the end of the last phase. `all_seconds` also has
what comes before and after: reading, loading, calibrating, writing. A process of its own for each case.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common

from sequst.api import train
from sequst.corpus.formats.jsonl import write_jsonl
from sequst.corpus.sampling import sample
from sequst.training.progress import Counted, Planned

CASES = (
    # encoder, labelled sentences, raw sentences, settings
    ("minilm", 50, 5000, {"effort": "quick"}),
    ("minilm", 50, 5000, {"effort": "default"}),
    ("minilm", 50, 5000, {"effort": "thorough"}),
    ("minilm", 50, 50_000, {"effort": "quick"}),
    ("minilm", 12, 60, {"effort": "default"}),
    ("minilm", 50, 500, {"effort": "quick"}),
    ("minilm", 500, 0, {"effort": "default"}),
    ("bilstm", 50, 5000, {"effort": "quick"}),
    ("minilm", 50, 5000, {"effort": "quick", "method": "sst"}),
    ("MPNET", 50, 1000, {"effort": "quick"}),
    ("MPNET", 50, 0, {"effort": "quick"}),
    ("minilm", 50, 1000, {"effort": "default", "max_length": 128, "max_rounds": 2}),
)


class Clock(Counted):
    """What was foretold, and what it took."""

    def expect(self, planned: Sequence[Planned]) -> None:
        super().expect(planned)
        self.foretold, self.begun = sum(each.seconds for each in planned), time.perf_counter()

    def end(self) -> None:
        self.ended = time.perf_counter()


def one(case: int, mpnet: str) -> dict[str, Any]:
    encoder, labelled, raw, settings = CASES[case]
    _, corpus, _ = common.benchmark("conll03")
    split = sample(corpus, 10, seed=12)
    text = split.unlabeled if raw <= len(split.unlabeled) else common.benchmark("ontonotes")[1]
    labeled = [*split.labeled, *split.dev, *split.unlabeled[-1000:]][:labelled]
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(Path(folder) / "raw.jsonl", text[:raw])
        begun = time.perf_counter()
        train(
            labeled, Path(folder) / "run", unlabeled=Path(folder) / "raw.jsonl" if raw else None, progress=clock,
            encoder=mpnet if encoder == "MPNET" else encoder, **settings,
        )  # fmt: skip
        seconds = time.perf_counter() - begun
    took = clock.ended - clock.begun
    told = {"encoder": encoder.lower(), "labelled": labelled, "raw": raw, **settings}
    return {**told, "foretold": clock.foretold, "seconds": took, "all_seconds": seconds}


def main() -> None:
    parser = common.parser(__doc__, cases=",".join(map(str, range(1, len(CASES) + 1))), mpnet="mpnet", one=0)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one - 1, options.mpnet)))
        return
    found = []
    for case in options.cases.split(","):
        command = [sys.executable, __file__, "--one", case, "--mpnet", options.mpnet]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
        print(found[-1], file=sys.stderr)
        common.tell({"runs": found, **common.machine("cpu")}, options.json)


if __name__ == "__main__":
    main()
