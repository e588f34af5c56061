from __future__ import annotations

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
    assert [str(erratum) for erratum in paper.errata()] == [
        f"{place}: printed {printed}, by the paper's own figures {elsewhere}"
        for place, printed, elsewhere in (
            ("10-shot, seqvat, average", "70.23", "70.25"),
            ("10-shot, seqvat, gain over fine-tuning", "0.44", "0.46"),
            ("50-shot, sst, average", "77.15", "77.17"),
            ("50-shot, cvt, average", "75.83", "77.16"),
            ("50-shot, sst, gain over fine-tuning", "1.36", "1.38"),
            ("50-shot, cvt, gain over fine-tuning", "0.04", "1.37"),
            ("summary of 20, 50 and 100 shots, sequst, multiwoz, 100-shot", "83.36", "84.36"),
            ("summary of 20, 50 and 100 shots, sequst, mit_movie, 100-shot", "84.98", "84.48"),
            ("summary of 20, 50 and 100 shots, sequst, ontonotes, 100-shot", "85.77", "85.27"),
            ("summary of 20, 50 and 100 shots, metast, ontonotes, 20-shot", "80.78", "80.87"),
            ("ablation, sst, mit_movie", "72.25", "71.14"),
        )
    ]
