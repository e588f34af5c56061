from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import SequstError
from sequst.experiments import findings
from sequst.experiments.cells import Cell, run_cell
from sequst.experiments.results import FINDINGS, Results, append_lines, key_of, read_results

BRIEF = (
    "teacher.min_steps=80 teacher.learning_rate=1e-3 head_rate=10 student.min_steps=40 student.epochs=0.1 "
    "student.learning_rate=1e-3 retune.min_steps=10 retune.epochs=0.1 max_rounds=2 "
    "uncertainty.passes=4 selection.selector=sampled selection.share=0.4 adapt=false ensemble.teachers=1"
)


@pytest.fixture(scope="module")
def data(make_benchmark: Callable[..., Path]) -> Path:
    return make_benchmark("ours", test=150)


@pytest.fixture(scope="module")
def found(data: Path, tiny_encoder: str) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    return run_cell(Cell("t", "ours", 1, "sequst", BRIEF, tiny_encoder, shots=5, pool=120), data, "abc", "cpu")


Found = tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]


def test_the_round_that_is_kept_has_the_score_of_the_cell(found: Found) -> None:
    line, kinds = found
    rounds = kinds["rounds"]
    assert [each["round"] for each in rounds] == list(range(line["rounds"] + 1))
    best = max(each["teacher_f1"] for each in rounds)
    kept = [each for each in rounds if each["teacher_f1"] == best][-1]
    assert kept["f1"] == line["f1"]
    assert len({each["f1"] for each in rounds}) > 1
    assert all(key_of(each) == key_of(line) for lines in kinds.values() for each in lines)


def test_the_first_teacher_is_fine_tuning(found: Found, data: Path, tiny_encoder: str) -> None:
    line, _ = run_cell(Cell("t", "ours", 1, "finetune", BRIEF, tiny_encoder, shots=5), data, "abc", "cpu")
    assert found[1]["rounds"][0]["f1"] == line["f1"]


def test_strategies_are_compared_on_the_words_of_the_first_round(found: Found) -> None:
    _, kinds = found
    first = kinds["rounds"][1]
    by = {line["strategy"]: line for line in kinds["selection"]}
    assert list(by) == ["none", "confidence", "certainty", "both"]
    assert (by["none"]["error"], by["none"]["entity_error"]) == (first["error"], first["entity_error"])
    assert (by["both"]["error"], by["both"]["entity_error"]) == (first["selected_error"], first["selected_entity_error"])
    assert by["none"]["selected"] == by["none"]["selected_of_entity_words"] == 100
    assert by["both"]["selected"] == first["selected"] == pytest.approx(40, abs=4)


def test_bins_count_the_predicted_entities(found: Found) -> None:
    line, kinds = found
    [calibration] = kinds["reliability"]
    bins = calibration["bins"]
    assert sum(each["count"] for each in bins) == line["tp"] + line["fp"]
    assert sum(each["count"] * each["accuracy"] for each in bins) == pytest.approx(line["tp"])
    gap = sum(each["count"] * abs(each["confidence"] - each["accuracy"]) for each in bins) / (line["tp"] + line["fp"])
    assert calibration["ece"] == pytest.approx(100 * gap)


def test_scores_are_compared_as_detectors_of_what_is_wrong(found: Found) -> None:
    _, kinds = found
    first = kinds["rounds"][1]
    by = {(line["of"], line["score"]): line for line in kinds["detection"]}
    assert len(by) == 4 + 2 * 4
    words = by["words", "confidence"]
    assert 100 * words["wrong"] / words["count"] == pytest.approx(first["error"])
    for line in kinds["detection"]:
        assert 0 <= line["auroc"] <= 1
        assert 0 <= line["risk_coverage"] <= 100 * line["wrong"] / line["count"] + 20
    assert by["words", "confidence x certainty"]["auroc"] > 0.6
    counts = {line["count"] for line in kinds["detection"] if line["of"] == "entities"}
    assert len(counts) == 1
    assert 0 < counts.pop() < words["count"]


def test_of_a_cell_that_was_cut_off_and_run_again_the_last_lines_count(tmp_path: Path) -> None:
    facts, results = Cell("t", "ours", 1).facts, tmp_path / "r.jsonl"

    def found(kind: str) -> list[dict[str, Any]]:
        return Results.load([results]).findings[kind]

    append_lines(tmp_path / "r.rounds.jsonl", [{**facts, "number": number, "round": number, "f1": 1} for number in (0, 1)])
    append_lines(tmp_path / "r.rounds.jsonl", [{**facts, "seed": 2, "number": 0, "round": 0, "f1": 3}])
    results.touch()
    assert found("rounds") == []
    append_lines(tmp_path / "r.rounds.jsonl", [{**facts, "number": number, "round": number, "f1": 2} for number in (0, 1)])
    append_lines(results, [facts])
    assert [(line["round"], line["f1"]) for line in found("rounds")] == [(0, 2), (1, 2)]
    assert found("selection") == []


def test_files_that_were_cut_off_are_gone_on_with(tmp_path: Path) -> None:
    facts = Cell("t", "ours", 1).facts
    results, beside = tmp_path / "r.jsonl", tmp_path / "r.reliability.jsonl"
    append_lines(results, [facts])
    results.write_text(results.read_text().rstrip("\n"))  # an editor may leave it so
    append_lines(results, [{**facts, "seed": 2}])
    with results.open("a") as file:
        file.write("\n\n")
    assert [line["seed"] for line in read_results(results)] == [1, 2]
    append_lines(beside, [{**facts, "ece": 1}])
    beside.write_text(beside.read_text() + '{"experiment": "t", "see')
    append_lines(beside, [{**facts, "seed": 2, "ece": 2}])
    assert [line["ece"] for line in Results.load([results]).findings["reliability"]] == [1, 2]
    results.write_bytes(results.read_bytes() + b"\xff\n")
    with pytest.raises(SequstError, match=r"r.jsonl:\d: not a line of results"):
        read_results(results)


def test_lines_that_the_disk_has_no_room_for_leave_no_trace(tmp_path: Path) -> None:
    code = """
import resource, signal, sys
from pathlib import Path
from sequst.errors import SequstError
from sequst.experiments.results import append_lines
path = Path(sys.argv[1])
append_lines(path, [{"a": 1}])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (30, 30))
try:
    append_lines(path, [{"b": "x" * 100}])
except SequstError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "r.jsonl"], capture_output=True, text=True, check=True)
    assert "the disk is full" in done.stdout
    assert (tmp_path / "r.jsonl").read_text() == '{"a": 1}\n'


def test_a_finding_that_fails_does_not_cost_the_cell(
    data: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(run: findings.Finished) -> list[dict[str, Any]]:
        raise ValueError("too few words")

    monkeypatch.setitem(findings.KINDS, "reliability", fails)
    cell = Cell("t", "ours", 1, "finetune", "teacher.min_steps=2 teacher.epochs=0.1", tiny_encoder, shots=2)
    line, kinds = run_cell(cell, data, "abc", "cpu")
    assert line["seed"] == 1
    assert "reliability" not in kinds
    assert "too few words" in caplog.text


def test_every_kind_of_finding_is_known_to_its_readers() -> None:
    assert tuple(findings.KINDS) == FINDINGS
