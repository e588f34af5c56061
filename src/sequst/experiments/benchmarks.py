"""The benchmarks of the paper and two variants: what they are, where they come from, how their files are read.

A data folder has a folder for each, by its name, with `train.txt.gz`, `dev.txt.gz` and `test.txt.gz` (a word and its tag a
line) or the original files. Nothing is shipped; `data/benchmarks.yaml` describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from sequst.corpus.counts import count_words
from sequst.corpus.formats.originals import Read, read_gold_conll, read_multiwoz, read_parallel
from sequst.corpus.formats.read import Reading, read_file
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import types_of
from sequst.errors import DataError, SequstError, UsageError, nearest, said, shorten
from sequst.extras import needed
from sequst.files import as_path

RAW = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Benchmark:
    """One benchmark; `data/benchmarks.yaml` says what its fields are."""

    name: str
    title: str
    citation: str
    licence: str
    """As its publisher states it."""
    paper: Mapping[str, Any]
    format: str
    folder: str
    files: Mapping[str, list[str]] = field(default_factory=dict)
    word_column: int = 0
    tag_column: int = -1
    source: str = ""
    download: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    """What to know when its figures stand beside the paper's."""
    parts: tuple[str, ...] = ("train", "dev", "test")

    @property
    def how_to_get(self) -> str:
        return "Get it: " + (f"sequst benchmarks {self.name} --download --data DIR" if self.download else self.source)


def find_benchmark(name: str) -> Benchmark:
    if name not in BENCHMARKS:
        raise UsageError(f"unknown benchmark {shorten(name)}; {nearest(name, BENCHMARKS)}")
    return BENCHMARKS[name]


def find_part(data: Path, name: str, part: str) -> Read | Reading | None:
    """What the data folder has of a part; the two-column file, which is all that a dataset of one's own needs, goes before the
    original ones. None where there is neither."""
    plain = as_path(data / name / f"{part}.txt.gz")
    if plain.is_file():
        return read_file(plain, format="conll")
    return _read_original(BENCHMARKS[name], data / BENCHMARKS[name].folder, part) if name in BENCHMARKS else None


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
        raise UsageError(f"{told}, nor its original files\n{BENCHMARKS[name].how_to_get}")
    if found.problems:
        raise DataError(found.problems)
    return found.sentences


def look_at(benchmark: Benchmark, data: Path | None) -> dict[str, Any]:
    """What the data folder has of a benchmark, counted, beside what the paper's table says."""
    problems: list[str] = []
    counts: dict[str, Any] = {}
    types: set[str] = set()
    for part in benchmark.parts:
        try:
            found = find_part(data, benchmark.name, part) if data is not None else None
        except SequstError as error:
            problems.append(str(error))
            continue
        if found is None:
            continue
        problems += map(str, found.problems)
        counts[part] = {"sentences": len(found.sentences), "words": count_words(found.sentences)}
        types.update(types_of(s.tags or () for s in found.sentences))
    missing = [part for part in benchmark.parts if part not in counts]
    return {
        **{name: getattr(benchmark, name) for name in ("name", "title", "citation", "licence", "paper", "how_to_get")},
        "there": bool(counts),
        "parts": counts,
        "types": sorted(types),
        "notes": [benchmark.note] * bool(benchmark.note) + [f"its {part} part is missing" for part in missing if counts],
        "problems": problems,
    }


def fetch(benchmark: Benchmark, data: Path, told: Callable[[str], None] = lambda line: None, base: str = RAW) -> None:
    """Get the original files of a benchmark into the data folder; files that are there and whole are left alone."""
    if not benchmark.download:
        raise UsageError(f"{benchmark.name} cannot be downloaded ({benchmark.licence})\n{benchmark.how_to_get}")
    pooch = needed("pooch", "benchmarks")
    pooch.get_logger().setLevel("ERROR")
    entry = benchmark.download
    for name, (path, sha256) in entry["files"].items():
        target = data / benchmark.folder / name
        url = f"{base}/{entry['repository']}/{entry['commit']}/{path}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=target.name, path=target.parent)
        except Exception as error:  # of the network, the disk, a changed file: pooch leaves nothing half-written
            reason = said(error)
            raise SequstError(f"{benchmark.name}: cannot get {name} from {url}: {reason}") from None
        told(f"{benchmark.folder}/{name}")


def _read_original(benchmark: Benchmark, folder: Path, part: str) -> Read | Reading | None:
    """What its original files hold; None where they are not there."""
    if benchmark.format == "columns":
        file = _first(folder / given for name in benchmark.files.get(part, ()) for given in (name, f"{name}.gz"))
        word, tag = benchmark.word_column, benchmark.tag_column
        return read_file(file, format="conll", word_column=word, tag_column=tag) if file else None
    if benchmark.format == "multiwoz":
        file = _first([folder / "data.json", *sorted(folder.glob("*/data.json"))])
        return read_multiwoz(file, part) if file else None
    if benchmark.format == "gold_conll":
        return _read_ontonotes(folder, benchmark.files[part])
    files = [folder / part / name for name in ("seq.in", "seq.out", "label")]
    files = files if benchmark.format == "intents and slots" else files[:2]
    return read_parallel(*files) if all(path.is_file() for path in files) else None


def _read_ontonotes(folder: Path, names: Iterable[str]) -> Read | None:
    places = [place for name in names for place in sorted(folder.rglob(name)) if any(place.rglob("*gold_conll"))]
    return read_gold_conll(places[0]) if places else None


def _first(paths: Iterable[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def _load() -> dict[str, Benchmark]:
    text = resources.files("sequst.experiments").joinpath("data/benchmarks.yaml").read_text(encoding="utf-8")
    return {name: Benchmark(name, **{"folder": name, **entry}) for name, entry in yaml.safe_load(text).items()}


BENCHMARKS = _load()
