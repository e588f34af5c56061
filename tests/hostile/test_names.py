"""Names of files that hold NUL, are not UTF-8, are empty, too long or below a file: an error, or a file like any other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import sequst as library
from sequst.cli.app import make_app
from sequst.errors import SequstError
from sequst.tagger.tagger import Tagger

LATIN = os.fsdecode(b"caf\xe9")
"""A name that is not UTF-8."""
NAMES = {
    "NUL": "a\0b", "not UTF-8": LATIN, "empty": "", "too long": "x" * 5000, "below a file": "l.conll/x", "escape": "\x1b[2J",
}  # fmt: skip
ROWS = "Oslo B-LOC\nsleeps O\n\nLima B-LOC\nsings O\n\n"
SHORT = ["--set", "teacher.min_steps=1", "--set", "teacher.epochs=1"]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))
    if not hasattr(command, "commands"):
        yield path, command


def texts() -> list[Any]:
    """(verb, option or argument) for everything that takes a text, which may be a path."""
    found = []
    for path, command in commands(typer.main.get_command(make_app())):
        for parameter in command.params:
            if type(parameter.type).__name__ == "StringParamType":
                found.append(pytest.param(path, parameter, id=f"{' '.join(path)} {parameter.opts[0]}"))
    return found


def base(path: tuple[str, ...], encoder: str) -> dict[str, list[str]]:
    """The least that a verb needs to do something, by parameter."""
    train = {"labeled": ["--labeled", "l.conll"], "encoder": ["--encoder", encoder], "set_": SHORT}
    return {
        ("train",): {**train, "output": ["--output", "new"]},
        ("predict",): {"model": ["m"], "input": ["l.conll"]},
        ("serve",): {"model": ["m"], "host": ["--host", "0.0.0.0"]},  # which is refused without a token
        ("studio",): {"project": ["p"], "host": ["--host", "0.0.0.0"]},  # so is this
        ("evaluate",): {"model": ["m"], "file": ["l.conll"]},
        ("export",): {"model": ["nowhere"], "output": ["--output", "new"]},
        ("next",): {"model": ["m"], "unlabeled": ["l.conll"], "output": ["--output", "new"]},
        ("suspects",): {**train, "labeled": ["l.conll"], "output": ["--output", "new"]},
        ("check",): {"labeled": ["--labeled", "l.conll"], "encoder": ["--encoder", "none"]},
        ("sample",): {"file": ["l.conll"], "shots": ["--shots", "1"], "output": ["--output", "new"]},
        ("convert",): {"input": ["l.conll"], "output": ["new.jsonl"]},
        ("demo",): {"method": ["--method", "none"]},
        ("benchmarks",): {},
        ("settings",): {},
        ("experiment", "run"): {"recipe": ["main-10shot"], "output": ["--output", "new"], "dataset": ["--dataset", "none"]},
        ("experiment", "table"): {"folders": ["results.jsonl"]},
        ("experiment", "figures"): {"folders": ["results.jsonl"]},
        ("experiment", "report"): {"folders": ["results.jsonl"]},
    }[path]


@pytest.fixture(scope="session")
def tiny_model(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "m"
    Tagger.from_encoder(tiny_encoder, ["O", "B-LOC", "I-LOC"]).save(folder)
    return folder


@pytest.fixture
def place(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(tiny_model, tmp_path / "m")
    (tmp_path / "l.conll").write_text(ROWS)
    (tmp_path / "results.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize(("verb", "parameter"), texts())
def test_every_verb_takes_any_name(
    verb: tuple[str, ...], parameter: Any, name: str, place: Path, tiny_encoder: str, sequst: Callable[..., Any]
) -> None:
    given = base(verb, tiny_encoder)
    is_flag = parameter.param_type_name == "option"
    given[parameter.name] = [parameter.opts[0], name] if is_flag else [name]
    done = sequst(*verb, *(word for words in given.values() for word in words))
    assert done.returncode in (0, 1, 2)
    for bad in ("Traceback", "bug in sequst", "\x1b", "\0"):
        assert bad not in done.stderr, done.stderr
    if done.returncode:
        assert "rror" in done.stderr


def test_a_file_whose_name_is_not_utf8_works(place: Path, tiny_encoder: str, sequst: Callable[..., Any]) -> None:
    for name in ("l.conll", "d.conll"):
        (place / f"{LATIN}{name}").write_text(ROWS)
    data = f"{LATIN}l.conll"
    for command in (
        ["check", "--labeled", data, "--encoder", "none", "--json"],
        ["convert", data, f"{LATIN}.jsonl"],
        ["convert", f"{LATIN}.jsonl", LATIN, "--to", "brat"],
        ["sample", data, "--shots", "1", "--output", f"{LATIN}s"],
        ["predict", "m", data, "--output", f"{LATIN}.out"],
        ["predict", "m", data],
        ["evaluate", "m", data],
        ["next", "m", data, "--labeled", f"{LATIN}d.conll", "--output", f"{LATIN}.next"],
        ["train", "--labeled", data, "--test", data, "--encoder", tiny_encoder, *SHORT, "--output", "run"],
        ["train", "--resume", "run"],
    ):
        done = sequst(*command)
        expected = 1 if command[0] == "next" else 0  # all are labelled
        assert done.returncode == expected, (command, done.stderr)
    assert [s.tags for s in library.read(place / LATIN)] == [("B-LOC", "O"), ("B-LOC", "O")]


PYTHON: dict[str, Callable[[str], Any]] = {
    "read": library.read,
    "write_conll": lambda name: library.write_conll(name, []),
    "write_jsonl": lambda name: library.write_jsonl(name, []),
    "sample": lambda name: library.Split([], [], [], 1, "sentences", 12, {}).save(name),
    "load": Tagger.load,
    "save": lambda name: Tagger.load("m").save(name),
    "settings": library.load_settings,
    "resume": library.resume,
    "train": lambda name: library.train(name, "new"),
    "train to": lambda name: library.train("l.conll", name, settings=library.load_settings(None, ["encoder=bilstm"])),
    "labeler": library.Labeler.load,
}


@pytest.mark.parametrize("name", [name for kind, name in NAMES.items() if kind in ("NUL", "empty", "too long")])
@pytest.mark.parametrize("call", PYTHON.values(), ids=PYTHON)
def test_python_takes_any_name(call: Callable[[str], Any], name: str, place: Path) -> None:
    with pytest.raises(SequstError, match=r"NUL|too long|without a name"):
        call(name)
    assert {path.name for path in place.iterdir()} == {"m", "l.conll", "results.jsonl"}


@pytest.mark.parametrize("call", ["load", "save", "train to"])
def test_a_folder_of_a_model_has_a_name_in_utf8(call: str, place: Path) -> None:
    with pytest.raises(SequstError, match="the folder of a model needs a name in UTF-8; rename it"):
        PYTHON[call](LATIN)
    assert not (place / LATIN).exists()
