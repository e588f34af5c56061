from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sequst.corpus.generated import generate
from sequst.corpus.writing import write_conll
from sequst.experiments import findings
from sequst.experiments.cells import Cell, run_cell
from sequst.experiments.grouping import first_teachers, variant_of
from sequst.experiments.results import Results, append_lines, key_of, read_findings
from sequst.tagger.tagger import Tagger

BRIEF = (
    "teacher.min_steps=80 teacher.learning_rate=1e-3 teacher.head_learning_rate=1e-2 student.min_steps=40 student.epochs=0.1 "
    "student.learning_rate=1e-3 student.head_learning_rate=1e-2 retune.min_steps=10 retune.epochs=0.1 max_rounds=2 "
    "uncertainty.passes=4 selection.share=0.4"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "ours").mkdir()
    corpus = generate()
    write_conll(folder / "ours" / "train.txt.gz", corpus.pool)
    write_conll(folder / "ours" / "test.txt.gz", corpus.test[:150])
    return folder


@pytest.fixture(scope="module")
def found(data: Path, tiny_encoder: str) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    cell = Cell(
        "t", "ours", 1, "sequst", BRIEF, tiny_encoder, shots=5, pool=120, keep=("cases", "words")
    )  # fmt: skip
    return run_cell(cell, data, "abc", "cpu")


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
    [teacher] = first_teachers(Results.of([found[0]], rounds=found[1]["rounds"]))
    assert (teacher["f1"], variant_of(teacher)) == (line["f1"], variant_of(line))


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


def test_cases_are_one_good_and_one_bad(found: Found) -> None:
    _, kinds = found
    assert [case["kind"] for case in kinds["cases"]] == ["wrong words are left out", "wrong words are selected"]
    pool = {sentence.words: sentence.tags for sentence in generate().pool}
    for case in kinds["cases"]:
        assert pool[tuple(case["words"])] == tuple(case["tags"])
        wrong = [ours != theirs for ours, theirs in zip(case["labels"], case["tags"], strict=True)]
        assert any(wrong)
        taken = any(both for both in map(min, wrong, case["selected"]))
        assert taken == (case["kind"] == "wrong words are selected")
        assert len({len(case[name]) for name in ("words", "tags", "labels", "selected", "confidence")}) == 1


def test_words_are_drawn_evenly_and_placed(found: Found) -> None:
    _, kinds = found
    [placed] = kinds["words"]
    sizes = {type_: placed["types"].count(type_) for type_ in set(placed["types"])}
    truth = [tag if tag == "O" else tag[2:] for sentence in generate().test[:150] for tag in sentence.tags or ()]
    assert sizes == {type_: min(findings.WORDS_OF_CLASS, truth.count(type_)) for type_ in set(truth)}
    assert len(placed["x"]) == len(placed["y"]) == len(placed["words"])
    assert -1 <= placed["silhouette"] <= 1


def test_hidden_states_are_in_the_order_of_the_words(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], max_length=12, overlap=4)
    sentences = generate().test[:9]
    together = findings.hidden_states(tagger, sentences)
    alone = np.concatenate([findings.hidden_states(tagger, [sentence]) for sentence in sentences])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_of_a_cell_that_was_cut_off_and_run_again_the_last_lines_count(tmp_path: Path) -> None:
    facts = {**dataclasses.asdict(Cell("t", "ours", 1)), "settings_hash": "h"}
    results = tmp_path / "r.jsonl"
    append_lines(tmp_path / "r.rounds.jsonl", [{**facts, "round": number, "f1": 1} for number in (0, 1)])
    append_lines(tmp_path / "r.rounds.jsonl", [{**facts, "seed": 2, "round": 0, "f1": 3}])
    assert read_findings(results, "rounds") == []
    append_lines(tmp_path / "r.rounds.jsonl", [{**facts, "round": number, "f1": 2} for number in (0, 1)])
    append_lines(results, [facts])
    assert [(line["round"], line["f1"]) for line in read_findings(results, "rounds")] == [(0, 2), (1, 2)]
    assert read_findings(results, "words") == []
