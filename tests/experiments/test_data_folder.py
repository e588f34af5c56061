from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import DataError, SequstError, UsageError
from sequst.experiments.benchmarks import BENCHMARKS, fetch, look_at, read_part

COLUMNS = "Anna\tB-PER\nsings\tO\n\nin\tO\nOslo\tB-LOC\n\n"
ORIGINALS: dict[str, dict[str, str]] = {
    "snips": {"train/seq.in": "play x\n", "train/seq.out": "O B-a\n", "train/label": "PlayMusic\n"},
    "snips_intent": {"train/seq.in": "play x\n", "train/seq.out": "O B-a\n", "train/label": "PlayMusic\n"},
    "multiwoz": {
        "data.json": json.dumps({"A": {"log": [{"text": "go north", "span_info": [["i", "Area", "north", 1, 1]]}]}}),
        "valListFile.txt": "B\n", "testListFile.txt": "C\n",
    },
    "mit_movie": {"trivia10k13train.bio": "O\tplay\nB-Actor\tx\n\n"},
    "mit_movie_eng": {"train_whole.txt": "play O\nx B-ACTOR\n\n"},
    "mit_restaurant": {"restauranttrain.bio": "O\tat\nB-Hours\tnoon\n\n"},
    "conll03": {"eng.train": "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n"},
    "ontonotes": {"data/train/a.gold_conll": "x 0 0 in IN * - - - s * -\nx 0 1 Oslo NN * - - - s (GPE) -\n\n"},
}  # fmt: skip


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_original_files_are_read(name: str, tmp_path: Path) -> None:
    put(tmp_path / BENCHMARKS[name].folder, ORIGINALS[name])
    [sentence] = read_part(tmp_path, name, "train")
    assert len(sentence) == 2
    assert sum(tag != "O" for tag in sentence.tags or ()) == 1


def test_both_variants_of_snips_share_their_files(tmp_path: Path) -> None:
    put(tmp_path / "snips", ORIGINALS["snips"])
    assert read_part(tmp_path, "snips", "train")[0].tags == ("O", "B-a")
    assert read_part(tmp_path, "snips_intent", "train")[0].tags == ("O", "B-PlayMusic.a")


def test_two_columns_go_before_original_files(tmp_path: Path) -> None:
    put(tmp_path / "conll03", ORIGINALS["conll03"])
    (tmp_path / "conll03" / "train.txt.gz").write_bytes(gzip.compress(COLUMNS.encode()))
    assert read_part(tmp_path, "conll03", "train")[0].words == ("Anna", "sings")


def test_what_is_not_there_is_told_with_the_way_to_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"eng\.testb into DIR/conll03"):
        read_part(tmp_path, "conll03", "train")
    with pytest.raises(UsageError, match="sequst benchmarks snips --download"):
        read_part(tmp_path, "snips", "test")
    with pytest.raises(UsageError, match="has no dev part"):
        read_part(tmp_path, "mit_movie", "dev")
    with pytest.raises(UsageError, match="did you mean 'conll03'"):
        read_part(tmp_path, "conll3", "train")
    with pytest.raises(UsageError, match="no folder"):
        read_part(tmp_path / "nowhere", "snips", "train")
    assert all(bool(benchmark.download) != bool(benchmark.source) for benchmark in BENCHMARKS.values())


def test_malformed_files(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    put(tmp_path / "snips", {**ORIGINALS["snips"], "train/seq.out": "O\n"})
    with pytest.raises(DataError, match=r"seq\.out:1"):
        read_part(tmp_path, "snips", "train")
    done = sequst("benchmarks", "snips", "--data", tmp_path)
    assert done.returncode == 1
    assert "seq.out:1: found 2 words and 1 tags" in done.stderr
    (tmp_path / "multiwoz").mkdir()
    (tmp_path / "multiwoz" / "data.json").write_text("{}")
    assert "no valListFile.txt" in look_at(BENCHMARKS["multiwoz"], tmp_path)["problems"][0]


def test_the_verb(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    for part in ("train", "test"):
        (tmp_path / "mit_movie").mkdir(exist_ok=True)
        (tmp_path / "mit_movie" / f"{part}.txt.gz").write_bytes(gzip.compress(COLUMNS.encode()))
    done = sequst("benchmarks", "--data", tmp_path)
    assert done.returncode == 0, done.stderr
    [row] = [line.split() for line in done.stdout.splitlines() if line.startswith("mit_movie ")]
    assert row == ["mit_movie", "2", "-", "2", "3", "7.8k", "2.0k", "13"]
    assert "conll03: not there. Get it: ask NIST" in " ".join(done.stderr.split())
    [look] = json.loads(sequst("benchmarks", "mit_movie", "--data", tmp_path, "--json").stdout)
    assert look["parts"]["train"] == {"sentences": 2, "words": 4}
    assert (look["types"], look["paper"]["classes"], look["there"]) == (["LOC", "PER"], 13, True)
    assert sequst("benchmarks", "--data", tmp_path / "no").returncode == 2
    assert "did you mean 'snips'" in sequst("benchmarks", "snip").stderr
    assert sequst("benchmarks").returncode == 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on this machine, and the folder it serves."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", folder
        running.shutdown()


def test_downloads_are_checked_and_not_repeated(server: tuple[str, Path], tmp_path: Path) -> None:
    base, served = server
    content = b"O\tplay\nB-Actor\tx\n\n"
    file = {"trivia10k13train.bio": ["a/b.bio", hashlib.sha256(content).hexdigest()]}
    entry = {"repository": "some/one", "commit": "c0ffee", "files": file}
    place = served / "some" / "one" / "c0ffee" / "a" / "b.bio"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"something else")
    movie, data = dataclasses.replace(BENCHMARKS["mit_movie"], download=entry), tmp_path / "data"
    with pytest.raises(SequstError, match=r"cannot get trivia10k13train\.bio from .*hash"):
        fetch(movie, data, base=base)
    assert not (data / "mit_movie" / "trivia10k13train.bio").exists()
    place.write_bytes(content)
    told: list[str] = []
    fetch(movie, data, told.append, base=base)
    assert told == ["mit_movie/trivia10k13train.bio"]
    assert read_part(data, "mit_movie", "train")[0].words == ("play", "x")
    place.unlink()
    fetch(movie, data, base=base)  # it is there and whole


def test_what_may_not_be_downloaded(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    done = sequst("benchmarks", "ontonotes", "--download", "--data", tmp_path)
    assert done.returncode == 2
    assert "LDC2013T19" in done.stderr
    assert "name it with --data" in sequst("benchmarks", "snips", "--download").stderr


def test_every_download_is_pinned() -> None:
    entries = [benchmark.download for benchmark in BENCHMARKS.values() if benchmark.download]
    assert len(entries) == 5
    for entry in entries:
        assert len(entry["commit"]) == 40
        assert all(len(sha256) == 64 for _, sha256 in entry["files"].values())
