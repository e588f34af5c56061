"""Files of older versions of tools, and files that are annotated further down, lose nothing in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REGION = {"type": "labels", "value": {"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]}}
TASK: dict[str, Any] = {"id": 1, "data": {"text": "Anna sings"}}
OLD_DOCCANO = {"id": 1, "text": "Anna sings", "annotations": [{"label": "PER", "start_offset": 0, "end_offset": 4, "user": 1}]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("completions.json", json.dumps([{**TASK, "completions": [{"result": [REGION]}]}])),
        ("annotations.jsonl", json.dumps(OLD_DOCCANO)),
        ("later.jsonl", '{"id": 7, "text": "Hi"}\n{"id": 8, "text": "Anna sings", "label": [[0, 4, "PER"]]}'),
        ("mark.ann", "\ufeffT1\tPER 0 4\tAnna\n"),
    ],
)
def test_all_that_is_labelled_is_read(name: str, text: str, tmp_path: Path, sequst: Callable[..., Any]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "mark.txt").write_text("\ufeffAnna sings\n", encoding="utf-8")
    done = sequst("convert", name, "out.conll", "--on-conflict", "drop", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.conll").read_text().endswith("Anna\tB-PER\nsings\tO\n\n")


def test_offsets_that_nothing_tells_the_unit_of_are_told(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    text = "\U0001f44d\U0001f44d a b c d"
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": text, "label": [[5, 6, "X"]]}))
    done = sequst("convert", "in.jsonl", "out.conll", cwd=tmp_path)
    assert "in.jsonl: offsets may count code points or UTF-16 code units, and nothing tells which" in done.stderr
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": "\U0001f44d Anna sings", "label": [[2, 6, "X"]]}))
    assert "offsets" not in sequst("convert", "in.jsonl", "out.conll", cwd=tmp_path).stderr


def test_our_own_lines_are_fitted_by_the_same_policies(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    spans = [{"start": 1, "end": 4, "type": "P"}, [5, 10, "a type"], {"start": 5, "end": 10, "type": "Q"}]
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": "Anna sings", "spans": spans}))
    found = {}
    for policy in ("drop", "trim"):
        done = sequst("convert", "in.jsonl", f"{policy}.conll", "--on-conflict", policy, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "P 'nna' cuts 'Anna'" in done.stderr
        found[policy] = (tmp_path / f"{policy}.conll").read_text()
    assert found == {"drop": "Anna\tO\nsings\tB-Q\n\n", "trim": "Anna\tB-P\nsings\tB-a_type\n\n"}
    assert sequst("convert", "in.jsonl", "out.conll", cwd=tmp_path).returncode == 1
    (tmp_path / "in.jsonl").write_text('{"text": "Anna", "spans": [7]}')
    done = sequst("convert", "in.jsonl", "out.conll", "--on-conflict", "drop", cwd=tmp_path)
    assert (done.returncode, "in.jsonl:1" in done.stderr) == (1, True)


def test_a_region_of_another_text_is_an_error(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    moved = {**REGION, "value": {**REGION["value"], "start": 5, "end": 10}}  # type: ignore[dict-item]
    (tmp_path / "in.json").write_text(json.dumps([{**TASK, "annotations": [{"result": [moved]}]}]))
    for policy in ("error", "drop", "trim"):
        done = sequst("convert", "in.json", "out.conll", "--on-conflict", policy, cwd=tmp_path)
        assert done.returncode == 1
        assert "in.json, record 1: found a region of 'Anna' where 'sings' stands" in done.stderr
        assert not (tmp_path / "out.conll").exists()


def test_labels_of_another_tool_among_our_own_lines_are_an_error(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    own = {"text": "Hi there", "spans": []}
    (tmp_path / "in.jsonl").write_text(f'{json.dumps(own)}\n{{"text": "Anna sings", "label": [[0, 4, "PER"]]}}\n')
    done = sequst("convert", "in.jsonl", "out.conll", cwd=tmp_path)
    assert done.returncode == 1
    assert "in.jsonl:2: found the key label; expected spans; or name the tool" in done.stderr
    (tmp_path / "classes.jsonl").write_text(
        '{"text": "Hi there", "spans": [], "label": "greeting"}\n'
    )  # of the text as a whole
    assert sequst("convert", "classes.jsonl", "out.conll", cwd=tmp_path).returncode == 0
