"""What data says never reaches the terminal as commands to it, nor a model card as markup."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import UsageError
from sequst.tagger.encoders.pretrained import load_tokenizer
from sequst.tagger.model_card import model_card
from tests.hostile.guard import unguarded

ESCAPE = "\x1b]0;owned\x07"


def controls(text: str) -> list[str]:
    return [character for character in text if character not in "\n\t" and not character.isprintable()]


@pytest.mark.parametrize("verb", ["check", "sample", "evaluate", "convert", "train"])
def test_control_characters_of_data_are_not_shown(
    verb: str, tiny_encoder: str, tmp_path: Path, sequst: Callable[..., Any]
) -> None:
    rows = "".join(f"Oslo{i}{ESCAPE} B-LOC{ESCAPE}\nsleeps O\n\n" for i in range(8))
    (tmp_path / f"l{ESCAPE}.conll").write_text(rows)
    (tmp_path / "bad.conll").write_text(rows + f"odd{ESCAPE} X-{ESCAPE}\n")
    data = tmp_path / f"l{ESCAPE}.conll"
    short = ["--encoder", tiny_encoder, "--set", "teacher.min_steps=2", "--set", "teacher.epochs=1"]
    done = {
        "check": lambda: sequst("check", "--labeled", tmp_path / "bad.conll", "--dev", data, "--encoder", tiny_encoder),
        "sample": lambda: sequst("sample", data, "--shots", 2, "--output", tmp_path / "s"),
        "convert": lambda: sequst("convert", tmp_path / "bad.conll", tmp_path / "o.jsonl"),
        "train": lambda: sequst("train", "--labeled", data, "--test", data, *short, "--output", tmp_path / "run"),
        "evaluate": lambda: (
            sequst("train", "--labeled", data, *short, "--output", tmp_path / "run"),
            sequst("evaluate", tmp_path / "run" / "model", data),
        )[1],
    }[verb]()
    assert not controls(done.stdout + done.stderr), repr(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


def test_a_type_is_text_in_a_model_card() -> None:
    card = model_card(["a|b", "<script>alert(1)</script>", "[x](http://y)", f"z{ESCAPE}"], {"sequst": "1", "architecture": "t"})
    assert "<script>" not in card
    assert "](http" not in card
    assert "a|b" not in card
    assert not controls(card)


@pytest.mark.parametrize("name", ["/no/such/folder", "./nowhere", "../x", "~/encoder", "a/b/c", "", "x y", "a\\b"])
def test_an_encoder_that_can_only_be_a_folder(name: str) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        load_tokenizer(name)


def test_a_file_without_a_name(sequst: Callable[..., Any]) -> None:
    done = sequst("check", "--labeled", "")
    assert done.returncode == 2
    assert "a file without a name" in done.stderr


def test_a_grid_without_its_encoder_does_not_begin(tmp_path: Path) -> None:
    from sequst.experiments.cells import Cell
    from sequst.experiments.grid import run_grid

    cells = [Cell("g", "conll03", seed, encoder="/no/such/folder") for seed in range(30)]
    with pytest.raises(UsageError, match="there is no such folder"):
        run_grid(cells, tmp_path, tmp_path / "results.jsonl", commit="0")
    assert not (tmp_path / "results.jsonl").exists()


@pytest.mark.parametrize("verb", [["settings"], ["methods"], ["--help"], ["predict", "nowhere", "-"]])
def test_an_output_that_takes_nothing(verb: list[str]) -> None:
    """A full device or a closed output: a message, and no traceback."""
    for output in (">&-", "> /dev/full"):
        command = f"{shlex.join([sys.executable, '-m', 'sequst', *verb])} {output} < /dev/null"
        with unguarded():
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode in (1, 2), (command, done.stderr)
        assert done.stderr.startswith("error: "), (command, done.stderr)
        assert "bug in sequst" not in done.stderr
        assert "Traceback" not in done.stderr


def test_a_terminal_that_knows_ascii_alone(tmp_path: Path) -> None:
    (tmp_path / "l.conll").write_text("Z\u00fcrich B-\u00d6RT\nx O\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    command = [sys.executable, "-m", "sequst", "sample", "l.conll", "--shots", "1", "--output", "s"]
    with unguarded():
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
