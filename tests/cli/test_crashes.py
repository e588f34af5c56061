"""Verbs that write a file or a folder: killed or without room on the disk, they leave what was there, and run again."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.test_api import KILLER

from sequst.corpus.formats.columns import write_conll
from sequst.corpus.generated import generate
from sequst.tagger.tagger import Tagger, labels_of

VERBS: dict[str, tuple[list[str], str]] = {
    "predict": (["predict", "m", "l.conll", "--output", "out.jsonl"], "out.jsonl"),
    "next": (["next", "m", "l.conll", "--output", "out.jsonl"], "out.jsonl"),
    "convert": (["convert", "l.conll", "out.jsonl"], "out.jsonl"),
    "convert to a folder": (["convert", "l.conll", "out", "--to", "brat"], "out"),
    "sample": (["sample", "l.conll", "--shots", "5", "--output", "out"], "out"),
    "check": (["check", "--labeled", "l.conll", "--encoder", "none", "--output", "out"], "out"),
    "export": (["export", "m", "--output", "out"], "out"),
}


@pytest.fixture(scope="module")
def material(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("material")
    sentences = generate().pool[:80]
    write_conll(folder / "l.conll", sentences)
    Tagger.from_encoder(tiny_encoder, labels_of(sentences)).save(folder / "m")
    return folder


@pytest.fixture
def place(material: Path, tmp_path: Path) -> Path:
    for each in material.iterdir():
        (tmp_path / each.name).symlink_to(each)
    return tmp_path


def contents(path: Path) -> dict[str, bytes]:
    """Of a file, or of the files of a folder."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in files}


def needed_for(verb: str) -> None:
    if verb == "export":
        pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_leaves_what_was_there(verb: str, place: Path, sequst_process: Callable[..., Any]) -> None:
    """A limit on the size of files stands in for the disk."""
    needed_for(verb)
    command, name = VERBS[verb]
    if name == "out.jsonl":
        (place / name).write_text("before")
    before = {path.name for path in place.iterdir()}

    def limit() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        most = 3000 if verb == "export" else 50
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    done = sequst_process(*command, cwd=place, preexec_fn=limit)
    assert done.returncode == 1
    told = rf"cannot write \S*{name}\S*: the disk is full or a quota is reached; nothing half-written was left behind"
    assert re.search(told, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in place.iterdir()} == before
    if name == "out.jsonl":
        assert (place / name).read_text() == "before"


def stopper(stop: signal.Signals) -> str:
    """A program that stops itself so. A shell's background jobs ignore SIGINT, and what they start does."""
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return heard + KILLER.replace("SIGKILL", stop.name)


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda stop: stop.name)
@pytest.mark.parametrize("verb", VERBS)
def test_a_process_that_is_stopped_while_it_writes(
    verb: str, stop: signal.Signals, place: Path, sequst: Callable[..., Any]
) -> None:
    """All is written but not yet in its place. What was there is there, and the same command then does its work."""
    needed_for(verb)
    command, name = VERBS[verb]
    if name == "out.jsonl":
        (place / name).write_text("before")
    killer = [sys.executable, "-c", stopper(stop), "sequst.files:_sync", "1", "", *command]
    killed = subprocess.run(killer, cwd=place, capture_output=True, check=False)
    assert killed.returncode in (-stop, 128 + stop), killed.stderr.decode()
    assert (contents(place / name) == {".": b"before"}) if name == "out.jsonl" else not (place / name).exists()
    again = sequst(*command, cwd=place)
    assert again.returncode == 0, again.stderr
    (place / "whole").mkdir()
    for each in ("l.conll", "m"):
        (place / "whole" / each).symlink_to(place / each)
    whole = sequst(*command, cwd=place / "whole")
    assert whole.returncode == 0, whole.stderr
    assert contents(place / name) == contents(place / "whole" / name) != {}
    assert {path.name for path in place.iterdir()} == {"l.conll", "m", "whole", name}


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT], ids=lambda stop: stop.name)
def test_training_that_is_stopped_continues(
    stop: signal.Signals, place: Path, tiny_encoder: str, sequst: Callable[..., Any]
) -> None:
    """Killed at once it is tested with the weights that come of it."""
    short = [f"--set=teacher.{each}" for each in ("min_steps=6", "epochs=1", "max_steps=6")] + [f"--encoder={tiny_encoder}"]
    killer = [sys.executable, "-c", stopper(stop), "sequst.training.loop:_set_rate", "3", ""]
    command = ["train", "--labeled", "l.conll", "--output", "run", *short]
    killed = subprocess.run([*killer, *command], cwd=place, capture_output=True, check=False)
    assert killed.returncode in (-stop, 130), killed.stderr.decode()
    if stop == signal.SIGINT:
        assert b"stopped; continue with: sequst train --resume run" in killed.stderr
    assert not (place / "run" / "model").exists()
    done = sequst("train", "--resume", "run", cwd=place)
    assert done.returncode == 0, done.stderr
    assert (place / "run" / "summary.json").is_file()
