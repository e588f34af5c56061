"""The benchmarks of the paper and two variants: what they are, where they come from, how their files are read.

A data folder has a folder for each, by its name, with `train.txt.gz`, `dev.txt.gz` and `test.txt.gz` (a word and its tag a
line) or the original files. Nothing is shipped: what may be downloaded is fetched from pinned commits and checked by its hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sequst.corpus.counts import count_words
from sequst.corpus.formats.originals import Read, read_gold_conll, read_multiwoz, read_parallel
from sequst.corpus.formats.read import read_file
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import types_of
from sequst.errors import DataError, Problem, SequstError, UsageError, nearest

PARTS = ("train", "dev", "test")
Reader = Callable[[Path, str], Read | None]
"""(folder of the benchmark, part) -> what its original files hold; None where they are not there."""


class PaperSize(NamedTuple):
    """What the paper's table says: classes with O, sentences as printed."""

    classes: int
    train: str
    test: str


@dataclass(frozen=True)
class Benchmark:
    """One benchmark."""

    name: str
    title: str
    citation: str
    licence: str
    """As its publisher states it."""
    paper: PaperSize
    reader: Reader
    source: str
    """How to get it, in words."""
    fetched_as: str = ""
    """Its entry among the downloads; empty where it may not be downloaded."""
    note: str = ""
    """What to know when its figures stand beside the paper's."""
    parts: tuple[str, ...] = PARTS


class Found(NamedTuple):
    """A part of a benchmark as it lies in a data folder."""

    sentences: list[Sentence]
    problems: list[Problem]
    original: bool
    """Read from the original files."""


def find_benchmark(name: str) -> Benchmark:
    if name not in BENCHMARKS:
        raise UsageError(f"unknown benchmark {name!r}; {nearest(name, BENCHMARKS)}")
    return BENCHMARKS[name]


def find_part(data: Path, name: str, part: str) -> Found | None:
    """What the data folder has of a part; the two-column file, which is all that a dataset of one's own needs, goes before the
    original ones. None where there is neither."""
    plain = data / name / f"{part}.txt.gz"
    if plain.is_file():
        reading = read_file(plain, format="conll")
        return Found(reading.sentences, reading.problems, original=False)
    benchmark = BENCHMARKS.get(name)
    found = benchmark.reader(data / name, part) if benchmark is not None and part in benchmark.parts else None
    return None if found is None else Found(found.sentences, found.problems, original=True)


def read_part(data: Path, name: str, part: str) -> list[Sentence]:
    """The sentences of a part; an error that says how to get them where they are not there."""
    if not data.is_dir():
        raise UsageError(f"no folder {data}; --data (or SEQUST_DATA) must name one with a folder for each benchmark")
    found = find_part(data, name, part)
    if found is None:
        told = f"no {name}/{part}.txt.gz in {data}, which --data (or SEQUST_DATA) names"
        if name not in BENCHMARKS:
            raise UsageError(f"{told}, and no benchmark of that name; {nearest(name, BENCHMARKS)}")
        if part not in BENCHMARKS[name].parts:
            raise UsageError(f"{told}; {BENCHMARKS[name].title} has no {part} part")
        raise UsageError(f"{told}, nor its original files\n{how_to_get(BENCHMARKS[name])}")
    if found.problems:
        raise DataError(found.problems)
    return found.sentences


def how_to_get(benchmark: Benchmark) -> str:
    if benchmark.fetched_as:
        return f"Get it: sequst benchmarks {benchmark.name} --download --data DIR"
    return f"Get it: {benchmark.source}"


def look_at(benchmark: Benchmark, data: Path | None) -> dict[str, Any]:
    """What the data folder has of a benchmark, counted, beside what the paper's table says."""
    problems: list[str] = []
    counts: dict[str, Any] = {}
    types: set[str] = set()
    for part in benchmark.parts if data is not None else ():
        assert data is not None
        try:
            found = find_part(data, benchmark.name, part)
        except SequstError as error:
            problems.append(str(error))
            continue
        if found is None:
            continue
        problems += map(str, found.problems)
        counts[part] = {"sentences": len(found.sentences), "words": count_words(found.sentences), "original": found.original}
        types.update(types_of(s.tags or () for s in found.sentences))
    missing = [part for part in benchmark.parts if part not in counts]
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "citation": benchmark.citation,
        "licence": benchmark.licence,
        "there": bool(counts),
        "parts": counts,
        "types": sorted(types),
        "paper": benchmark.paper._asdict(),
        "notes": [benchmark.note] * bool(benchmark.note) + [f"its {part} part is missing" for part in missing if counts],
        "problems": problems,
        "how_to_get": how_to_get(benchmark),
    }


def _columns(files: Mapping[str, tuple[str, ...]], word: int = 0, tag: int = -1) -> Reader:
    """Column files, under one of several names for each part."""

    def read(folder: Path, part: str) -> Read | None:
        for name in files.get(part, ()):
            for path in (folder / name, folder / f"{name}.gz"):
                if path.is_file():
                    reading = read_file(path, format="conll", word_column=word, tag_column=tag)
                    return Read(reading.sentences, reading.problems)
        return None

    return read


def _parallel(intents: bool) -> Reader:
    """SNIPS: {train,dev,test}/seq.in, seq.out and label."""

    def read(folder: Path, part: str) -> Read | None:
        # both variants are made of the same files, which may lie in one folder
        for place in (folder / part, folder.parent / "snips" / part):
            files = [place / name for name in ("seq.in", "seq.out", "label")]
            if all(path.is_file() for path in files[: 3 if intents else 2]):
                return read_parallel(files[0], files[1], files[2] if intents else None)
        return None

    return read


def _ontonotes(folder: Path, part: str) -> Read | None:
    for name in {"train": ("train",), "dev": ("development", "dev"), "test": ("conll-2012-test", "test")}[part]:
        found = [path for path in sorted(folder.rglob(name)) if path.is_dir() and next(path.rglob("*gold_conll"), None)]
        if found:
            return read_gold_conll(found[0])
    return None


def _multiwoz(folder: Path, part: str) -> Read | None:
    found = [path for path in (folder / "data.json", *sorted(folder.glob("*/data.json"))) if path.is_file()]
    return read_multiwoz(found[0], part) if found else None


_NO_LICENCE = "none stated; published for research by MIT's Spoken Language Systems group"
BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark(
            "snips", "SNIPS", "Coucke et al. 2018", "CC0-1.0", PaperSize(54, "13.6k", "0.7k"), _parallel(intents=False),
            "github.com/sonos/nlu-benchmark, as prepared for slot filling", fetched_as="snips",
            note="39 slot types; the paper's 54 classes are pairs of intent and slot, which `snips_intent` has",
        ),
        Benchmark(
            "snips_intent", "SNIPS, intent and slot", "Coucke et al. 2018", "CC0-1.0", PaperSize(54, "13.6k", "0.7k"),
            _parallel(intents=True), "as SNIPS", fetched_as="snips", note="classes as the paper counts them",
        ),
        Benchmark(
            "multiwoz", "MultiWOZ 2.1", "Budzianowski et al. 2018", "MIT", PaperSize(15, "20.3k", "2.8k"), _multiwoz,
            "data/MultiWOZ_2.1.zip of github.com/budzianowski/multiwoz; unpack it, so that DIR/multiwoz/data.json is there",
            note="user turns with the spans of their dialogue acts; other work tags it otherwise: no figure compares exactly",
        ),
        Benchmark(
            "mit_movie", "MIT Movie (trivia10k13)", "Liu et al. 2013", _NO_LICENCE, PaperSize(13, "7.8k", "2.0k"),
            _columns({"train": ("trivia10k13train.bio",), "test": ("trivia10k13test.bio",)}, word=1, tag=0),
            "groups.csail.mit.edu/sls/downloads/movie", fetched_as="mit_movie", parts=("train", "test"),
        ),
        Benchmark(
            "mit_movie_eng", "MIT Movie (engtrain)", "Liu et al. 2013", _NO_LICENCE, PaperSize(13, "7.8k", "2.0k"),
            _columns({"train": ("train_whole.txt",), "dev": ("valid_whole.txt",), "test": ("test_whole.txt",)}),
            "groups.csail.mit.edu/sls/downloads/movie, as prepared by MetaST", fetched_as="mit_movie_eng",
            note="the other MIT movie corpus; the paper's full-data F1 is of its level",
        ),
        Benchmark(
            "mit_restaurant", "MIT Restaurant", "Liu et al. 2013", _NO_LICENCE, PaperSize(9, "7.7k", "1.5k"),
            _columns({"train": ("restauranttrain.bio",), "test": ("restauranttest.bio",)}, word=1, tag=0),
            "groups.csail.mit.edu/sls/downloads/restaurant", fetched_as="mit_restaurant", parts=("train", "test"),
        ),
        Benchmark(
            "conll03", "CoNLL-03", "Tjong Kim Sang and De Meulder 2003",
            "annotations free for research; the text is Reuters', under an agreement with NIST", PaperSize(5, "14.0k", "3.5k"),
            _columns(
                {
                    "train": ("eng.train", "train.txt"),
                    "dev": ("eng.testa", "eng.dev", "valid.txt", "dev.txt"),
                    "test": ("eng.testb", "eng.test", "test.txt"),
                }
            ),
            "ask NIST for the Reuters Corpora (trec.nist.gov/data/reuters/reuters.html), build the files as "
            "clips.uantwerpen.be/conll2003/ner says, and put eng.train, eng.testa and eng.testb into DIR/conll03",
        ),
        Benchmark(
            "ontonotes", "OntoNotes 5", "Weischedel et al. 2013", "LDC User Agreement (LDC2013T19)",
            PaperSize(19, "60.0k", "8.3k"), _ontonotes,
            "order LDC2013T19, make the *.gold_conll files as github.com/ontonotes/conll-formatted-ontonotes-5.0 says, and put "
            "its folders train, development and test into DIR/ontonotes",
        ),
    )
}  # fmt: skip
