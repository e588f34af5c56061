"""What the pages on other tools promise."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.formats.columns import write_conll
from sequst.corpus.generated import generate
from sequst.tagger.tagger import Tagger

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (HOW_TO / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def place(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the pages name."""
    (tmp_path / "run").mkdir()
    model.rename(tmp_path / "run" / "model")
    pool = generate(pool=20, test=1).pool
    write_conll(tmp_path / "test.conll", pool)
    (tmp_path / "raw.txt").write_text("".join(" ".join(sentence.words) + "\n" for sentence in pool))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_spacy(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("spacy")
    import sequst.integrations.spacy_pipe  # noqa: F401

    [code] = blocks("use-in-spacy.md", "python")
    names: dict[str, Any] = {}
    exec(code, names)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == len(names["doc"].ents) > 0
    again = names["nlp"](names["doc"].text)
    assert [(span.label_, span.text) for span in again.ents] == [(span.label_, span.text) for span in names["doc"].ents]


def test_onnx(place: Path, capsys: pytest.CaptureFixture[str], sequst: Callable[..., Any]) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    [commands] = blocks("export-to-onnx.md", "sh")
    for line in commands.splitlines()[1:]:
        done = sequst(*line.split()[1:])
        assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 20
    [code] = blocks("export-to-onnx.md", "python")
    exec(code)
    prediction: Any = Tagger.load("run/model", "cpu").predict("Can Sydney conduct The Planets in Verona on Friday?")
    shown = capsys.readouterr().out
    assert all(f"type='{entity.type}', start={entity.start}, end={entity.end}" in shown for entity in prediction.entities)
    assert prediction.entities


def test_the_flags_of_the_tracker(sequst: Callable[..., Any]) -> None:
    help_text = sequst("train", "--help").stdout
    [commands] = blocks("track-runs.md", "sh")
    [line] = [line for line in commands.splitlines() if line.startswith("sequst ")]
    for flag in re.findall(r"--[a-z0-9-]+", line):
        assert flag in help_text
