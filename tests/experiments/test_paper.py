from __future__ import annotations

import itertools
import re
import statistics

import pytest

from sequst.experiments import paper
from sequst.experiments.benchmarks import BENCHMARKS
from sequst.methods.registry import METHODS


def test_figures_are_found_by_what_they_are_of() -> None:
    assert paper.figure("conll03", "sequst") == (79.10, 0.27)
    assert paper.figure("snips", "metast", 100) == (95.10, 0.33)
    assert paper.figure("ontonotes", "finetune", None) == (89.20, None)
    assert paper.figure("mit_movie", "without-gcr") == (77.25, 0.23)
    assert paper.figure("multiwoz", "sequst", encoder="bilstm", head="crf") == (73.92, 0.20)
    assert paper.selection_error("snips", "both") == 17.76


@pytest.mark.parametrize(
    "asked",
    [
        ("conll03", "sequst", 5), ("snips_intent", "sequst", 10), ("multiwoz", "without-gcr", 10), ("conll03", "sst", None),
        ("conll03", "sst", 10, "bilstm", "crf"), ("conll03", "sequst", 20, "bilstm", "crf"),
    ],
)  # fmt: skip
def test_what_the_paper_does_not_print_is_none(asked: tuple[object, ...]) -> None:
    assert paper.figure(*asked) is None  # type: ignore[arg-type]
    assert paper.selection_error("ontonotes", "both") is None


def test_every_cell_is_there() -> None:
    assert set(paper.datasets()) < set(BENCHMARKS)
    compared = ("finetune", "vat", "seqvat", "cvt", "sst", "metast", "sequst")
    assert set(compared) < set(METHODS)
    for dataset in paper.datasets():
        for method in compared:
            for shots in (10, 20, 50, 100):
                found = paper.figure(dataset, method, shots)
                assert found is not None
                assert 50 < found.f1 < 100
                assert found.deviation is not None
                assert 0 < found.deviation < 1


def test_the_gains_that_the_paper_claims() -> None:
    assert paper.average("sequst") - paper.average("finetune") == pytest.approx(7.99, abs=0.005)
    assert paper.average("sequst") - paper.average("sst") == pytest.approx(6.53, abs=0.01)  # the text has 6.36
    assert paper.average("finetune", None) == pytest.approx(88.73, abs=0.005)


def test_where_the_paper_disagrees_with_itself() -> None:
    """Every figure that others contradict is among the errata, and nothing else: recomputed from the tables as printed."""
    tables = paper._tables()
    columns, ablation = tables["columns"], tables["ablation"]
    printed: list[tuple[int, str, str, float, float]] = []
    for shots, table in tables["few_shot"].items():
        for method, average in table["printed_averages"].items():
            printed.append((shots, method, "average", average, paper.average(method, shots)))
            gain = round(paper.average(method, shots), 2) - round(paper.average("finetune", shots), 2)
            printed.append((shots, method, "gain", table["printed_deltas"][method], gain))
    for (method, rows), (i, dataset) in itertools.product(tables["data_efficiency"].items(), enumerate(columns)):
        printed += [(shots, method, dataset, row[i], tables["few_shot"][shots][method][i][0]) for shots, row in rows.items()]
    for method, (i, dataset) in itertools.product(("sst", "sequst"), enumerate(ablation["columns"])):
        large = tables["few_shot"][10][method][columns.index(dataset)][0]
        printed.append((10, method, dataset, ablation[method][i][0], large))
    wrong = {
        (shots, method, what): (f"{f1:.2f}", f"{other:.2f}")
        for shots, method, what, f1, other in printed
        if abs(f1 - other) > 0.0101
    }
    told = {
        (shots, method, re.split(r":| over", text)[0]): tuple(re.findall(r"\d+\.\d\d", text))
        for shots in (10, 20, 50, 100)
        for method, text in paper.errata(shots)
    }
    assert told == wrong
    assert paper.average("finetune", None) == pytest.approx(tables["full_data"]["printed_average"], abs=0.0101)
    for pair, average in tables["base_encoders"]["printed_averages"].items():
        assert statistics.mean(f1 for f1, _ in tables["base_encoders"][pair]) == pytest.approx(average, abs=0.0101)
