"""Mutate the bytes of a kind of file, guided by the code that they reach: python -m tests.hostile.guided KIND CORPUS.

Options after these are those of libFuzzer. Needs atheris, which only some versions of Python have.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["sequst", "yaml"], enable_loader_override=False):
    from sequst.corpus.formats.registry import FORMATS
    from tests.hostile.mutation import Trial
    from tests.hostile.targets import GUIDED, samples

    for format in FORMATS.values():
        format.load()

EVERY = 500
"""Inputs after which what was tried is told, in the file of SEQUST_FUZZ_COUNTS: the process is not ended by Python."""


def main() -> None:
    kind, corpus, *options = sys.argv[1:]
    trial, place = Trial(), Path(os.environ["SEQUST_FUZZ_COUNTS"])
    Path(corpus).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("SEQUST_FUZZ_FOLDER")))
    for number, data in enumerate(samples(kind, folder)):
        (Path(corpus) / f"sample-{number}").write_bytes(data)

    def one(data: bytes) -> None:
        trial(kind, lambda: GUIDED[kind](data, folder))
        if trial.counts[kind]["tried"] % EVERY == 0:
            place.write_text(" ".join(f"{name}={count}" for name, count in trial.counts[kind].items()))

    with contextlib.redirect_stdout(sys.stderr):
        atheris.Setup([sys.argv[0], *options, corpus], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
