"""JSON that any program can read: no NaN, no infinity, and one place where it is made."""

from __future__ import annotations

import ast
import io
import json
import math
import sys
from pathlib import Path

import pytest

import sequst
from sequst.cli.console import show_json
from sequst.errors import SequstError
from sequst.experiments.results import append_lines
from sequst.files import as_json, write_json
from sequst.inputs import read_json

SOURCE = Path(sequst.__file__).parent
WRITERS = {"dump", "dumps", "JSONEncoder"}


def written_in(code: str) -> list[str]:
    """What the code names of the module json that writes, also under another name."""
    tree = ast.parse(code)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    modules = {name.asname or name.name for node in imported for name in node.names if name.name in ("json", "json.encoder")}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("json", "srsly"):
            found += [name.name for name in node.names if name.name not in ("load", "loads")]
        if isinstance(node, ast.Attribute) and node.attr in WRITERS and ast.unparse(node.value) in modules:
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize(
    "code",
    ["import json\njson.dumps(1)", "import json as j\nj.dump(1, f)", "from json import dumps", "import json\njson.JSONEncoder"],
)
def test_the_search_finds_what_it_is_for(code: str) -> None:
    assert written_in(code)


def test_json_is_made_in_one_place() -> None:
    found = {path.relative_to(SOURCE).as_posix(): written_in(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {"files.py": ["json.JSONEncoder"] * 2}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_know(number: float, tmp_path: Path) -> None:
    value = {"deep": [{"f1": number}]}
    with pytest.raises(SequstError, match="no NaN and no infinity"):
        as_json(value)
    with pytest.raises(SequstError, match=r"a\.json: .*no NaN"):
        write_json(tmp_path / "a.json", value)
    with pytest.raises(SequstError, match="no NaN"):
        append_lines(tmp_path / "a.jsonl", [{"f1": 1.0}, value])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old.json").write_text(json.dumps(value))
    assert repr(read_json(tmp_path / "old.json")) == repr(value)


def test_what_is_shown_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"Ö\x1b\x7f\x9b": ["\udcff", ":cat:", "x" * 500]}
    monkeypatch.setattr(sys, "stdout", shown := io.StringIO())
    show_json(value)
    assert all(" " <= character <= "~" for character in shown.getvalue().removesuffix("\n"))
    assert json.loads(shown.getvalue()) == value
