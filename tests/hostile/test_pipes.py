"""A pipe, a socket or a device in the place of a file: an error that names it, and no waiting. One that the user names as data
is read as it comes."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sequst.api import resume
from sequst.corpus.formats.read import read
from sequst.corpus.formats.write import write_sentences
from sequst.corpus.generated import generate
from sequst.errors import SequstError
from sequst.experiments.recipe import load_cells
from sequst.files import lock
from sequst.integrations.annotator import load_annotator
from sequst.tagger.encoders.pretrained import load_model, load_tokenizer
from sequst.tagger.encoders.vectors import load_vectors
from sequst.tagger.tagger import Tagger
from sequst.training.configure import load_settings
from tests.hostile.conftest import LABELS
from tests.hostile.guard import unguarded

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("libraries")]


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened, unguarded(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)  # the name of a socket may only be short
        opened.bind(path.name)


NODES: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": bound,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture(params=NODES)
def replace(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.unlink(missing_ok=True)
        NODES[request.param](path)

    return put


def each_file(folder: Path, replace: Callable[[Path], None], more: tuple[str, ...] = ()) -> Iterator[Path]:
    """Every file of the folder in turn, replaced, and put back afterwards; and some that are not there."""
    for path in [*(path for path in folder.rglob("*") if path.is_file()), *(folder / name for name in more)]:
        data = path.read_bytes() if path.exists() else None
        replace(path)
        yield path
        path.unlink()
        if data is not None:
            path.write_bytes(data)


@pytest.mark.parametrize("architecture", ["transformer", "crf", "bilstm"])
def test_in_a_model(architecture: str, models: dict[str, Path], tmp_path: Path, replace: Callable[[Path], None]) -> None:
    folder = Path(shutil.copytree(models[architecture], tmp_path / "m"))
    for path in each_file(folder, replace, ("evil.py", "tokenizer.model")):
        for load in (Tagger.load, load_annotator):
            with pytest.raises(SequstError, match=rf"{path.name}: not a regular file"):
                load(folder)
        if architecture == "transformer":
            for load_encoder in (load_tokenizer, lambda name: load_model(name, LABELS)):
                with pytest.raises(SequstError, match=rf"{path.name}: not a regular file"):
                    load_encoder(str(folder))
    load_annotator(folder)


def test_in_an_export(exported: Path, tmp_path: Path, replace: Callable[[Path], None]) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "o"))
    for path in each_file(folder, replace):
        with pytest.raises(SequstError, match=rf"{path.name}: not a regular file"):
            load_annotator(folder)
    load_annotator(folder)


def test_in_a_run(finished: Path, tmp_path: Path, replace: Callable[[Path], None]) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    for path in each_file(folder, replace, (".lock", "summary.json", "report.html", "rounds/1/student/state.pt")):
        with pytest.raises(SequstError, match=rf"{path.name}: not a regular file"):
            resume(folder)


def test_in_a_folder_of_data(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    for format in ("brat", "datasets"):
        write_sentences(tmp_path / format, format, generate().pool[:3])
        for _ in each_file(tmp_path / format, replace):
            with pytest.raises(SequstError, match=r"regular file|cannot be opened"):
                read(tmp_path / format, format=format)
        assert len(read(tmp_path / format, format=format)) == 3


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("a.yaml", load_settings),
        ("a.yaml", lambda path: load_cells(str(path))),
        ("a.jsonl", lambda path: load_cells(str(path))),
        ("a.txt", lambda path: load_vectors(str(path))),
        ("a.ann", read),
        ("a.lock", lambda path: lock(path, "taken")),
    ],
    ids=["settings", "recipe", "results", "vectors", "brat", "lock"],
)
def test_in_the_place_of_a_file(
    name: str, load: Callable[[Path], Any], tmp_path: Path, replace: Callable[[Path], None]
) -> None:
    replace(tmp_path / name)
    with pytest.raises(SequstError, match=name.replace(".", r"\.")):
        load(tmp_path / name)


def test_in_the_place_of_the_data_of_a_run(tmp_path: Path, tiny_encoder: str, replace: Callable[[Path], None]) -> None:
    from sequst.api import train

    write_sentences(tmp_path / "l.conll", "conll", generate().pool[:8])
    train(tmp_path / "l.conll", tmp_path / "run", encoder=tiny_encoder, teacher={"min_steps": 1, "max_steps": 1})
    (tmp_path / "run" / "summary.json").unlink()
    replace(tmp_path / "l.conll")
    with pytest.raises(SequstError, match=r"l\.conll"):
        resume(tmp_path / "run")


@pytest.mark.parametrize("verb", ["predict", "next", "check", "convert", "sample", "evaluate", "train"])
def test_a_pipe_that_is_named_is_read(
    verb: str,
    models: dict[str, Path],
    tiny_encoder: str,
    tmp_path: Path,
    sequst: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_sentences(tmp_path / "whole.conll", "conll", generate().pool[:40])
    pipe, model, short = tmp_path / "pipe", models["transformer"], ["--set", "teacher.min_steps=1", "--set", "teacher.epochs=1"]
    os.mkfifo(pipe)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    writer = threading.Thread(target=lambda: pipe.write_bytes((tmp_path / "whole.conll").read_bytes()), daemon=True)
    writer.start()
    done = {
        "predict": lambda: sequst("predict", model, pipe),
        "next": lambda: sequst("next", model, pipe, "--output", tmp_path / "o.jsonl"),
        "check": lambda: sequst("check", "--labeled", pipe),
        "convert": lambda: sequst("convert", pipe, tmp_path / "o.jsonl"),
        "sample": lambda: sequst("sample", pipe, "--shots", 1, "--output", tmp_path / "s"),
        "evaluate": lambda: sequst("evaluate", model, pipe),
        "train": lambda: sequst("train", "--labeled", pipe, "--encoder", tiny_encoder, *short, "--output", tmp_path / "run"),
    }[verb]()
    assert done.returncode == 0, done.stderr
    writer.join(10)
    assert not writer.is_alive()
