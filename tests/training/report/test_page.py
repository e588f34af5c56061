from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.methods.test_self_training import OPTIONS, QUICK

from sequst.api import Result, train
from sequst.corpus.sampling import Split
from sequst.corpus.sentence import Sentence
from sequst.training.seeds import derive
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import SampledWords, WeighedOfEachClass

VOID = {"meta", "br", "link", "img"}


class Page(HTMLParser):
    """A page, its tags checked for being closed in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text: list[str] = []
        self.marked: list[tuple[set[str], str]] = []
        """(classes, title) of every word of a pseudo-labelled sentence."""
        self.outside: list[str] = []
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.outside += [f"{tag} {name}" for name in ("src", "href") if name in found] + ([tag] if tag == "script" else [])
        if "word" in (found.get("class") or "").split() and found.get("title"):
            self.marked.append((set((found["class"] or "").split()), found["title"] or ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data.strip())


@pytest.fixture(scope="module")
def result(split: Split, tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Result:
    hostile = Sentence(("<script>alert(1)</script>", "&amp;", "Jordan", *["word"] * 100), None, 1)
    path = tmp_path_factory.mktemp("report") / "run"
    return train(
        split.labeled, path, unlabeled=[*split.unlabeled[:5], hostile], dev=split.dev, test=split.unlabeled[60:90],
        encoder=tiny_encoder, method="sequst", keep_rounds=True, selection={"selector": "sampled", "power": 1.0}, **OPTIONS,
    )  # fmt: skip


def test_the_page_stands_alone_and_is_well_formed(result: Result) -> None:
    page = Page(result.path / "report.html")
    assert page.outside == []
    source = (result.path / "report.html").read_text()
    assert "://" not in source
    assert "@import" not in source
    assert "&lt;script&gt;alert(1)" in source


def test_the_page_has_the_run_s_figures(result: Result) -> None:
    text = Page(result.path / "report.html").text
    test = result.summary["test"]
    assert f"{test['f1']:.2f}" in text
    assert f"{result.summary['dev_f1']:.2f}" in text
    assert f"{test['ece']:.1f}" in text
    for type_, scores in test["types"].items():
        assert text[text.index(type_) : text.index(type_) + 8].count(f"{scores['precision']:.1f}") >= 1
    for line in result.summary["history"][1:]:
        assert f"{line['agreement']:.1f}" in text if line["agreement"] is not None else True
        assert f"{line['student_f1']:.1f}" in text
    for title in ("Dev F1 over the rounds", "Drawn at random", "student.min_steps"):
        assert title in text
    assert "Pseudo-label error over the rounds" not in text  # one sentence has no tags


def test_words_are_marked_as_they_were_selected(result: Result) -> None:
    last = result.summary["rounds"]
    beliefs = Beliefs.from_file(result.path / "rounds" / str(last) / "beliefs" / "beliefs.npz")
    page = Page(result.path / "report.html")
    random, doubtful = np.array_split(np.arange(len(page.marked)), 2)  # all six sentences are in both
    shown = len(beliefs) - (103 - 60) + 1  # the long sentence is cut, which an ellipsis says
    assert len(random) == len(doubtful) == shown
    chosen = np.array(["chosen" in classes for classes, _ in page.marked])
    # the run's own draw again
    selected = SampledWords().select(beliefs, np.random.default_rng(derive(12, last, "selection")))
    short = [i for i in random if i < beliefs.starts[5]]
    assert chosen[short].tolist() == selected[short].tolist()
    assert 0 < selected[short].sum() < len(short)
    entities = {i for i in short if "entity" in page.marked[i][0]}
    names = result.tagger.labels
    assert entities == {i for i in short if names[beliefs.labels[i]] != "O"}
    for i in short:
        assert f"confidence {beliefs.confidence[i]:.0%}" in page.marked[i][1]


def test_the_less_a_word_counted_the_paler_it_is(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    run = train(
        split.labeled, tmp_path / "run", unlabeled=split.unlabeled[:5], dev=split.dev, encoder=tiny_encoder, method="sequst",
        keep_rounds=True, **{**OPTIONS, "max_rounds": 1},
    )  # fmt: skip
    source = (run.path / "report.html").read_text(encoding="utf-8")
    beliefs = Beliefs.from_file(run.path / "rounds" / "1" / "beliefs" / "beliefs.npz")
    weights = WeighedOfEachClass().select(beliefs, np.random.default_rng(0))
    shown = re.findall(r'class="word chosen[^"]*" title="[^"]*, weight ([\d.]+)[^"]*" style="[^"]*opacity: ([\d.]+)"', source)
    assert [float(weight) for weight, _ in shown[: len(weights)]] == pytest.approx(weights.tolist(), abs=0.006)
    pale = 0.25 + 0.75 * np.minimum(1.0, weights / np.quantile(weights, 0.95))
    assert [float(opacity) for _, opacity in shown[: len(weights)]] == pytest.approx(pale.tolist(), abs=0.006)
    assert "low weight" in source
    assert "were selected" not in source


def test_a_run_without_rounds_dev_or_test(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    run = train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=QUICK, seed=3)
    text = Page(run.path / "report.html").text
    assert "Loss while training" in text
    assert "Dev F1 over the rounds" not in text
    assert not any("by type" in each for each in text)
    assert "seed" in text
    assert re.search(r"sequst predict \S+/run/model raw.txt", " ".join(text))


def test_what_was_not_measured_is_not_told(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    long = Sentence(("x" * 5000, "\u202eevil", "Paris"), None, 1)
    run = train(
        split.labeled, tmp_path / "run", unlabeled=[*split.unlabeled[:5], long], encoder=tiny_encoder, method="sst",
        **{**OPTIONS, "max_rounds": 1},
    )  # fmt: skip
    page = Page(run.path / "report.html")
    assert not any("information gain" in told for _, told in page.marked)
    source = (run.path / "report.html").read_text()
    assert "x" * 81 not in source
    assert "<bdi>\u202eevil</bdi>" in source
    assert "The tagger of\nround 1 is kept." in source


def test_a_page_that_cannot_be_made_is_not_worth_the_run(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("no page")

    monkeypatch.setattr("sequst.api.write_report", broken)
    run = train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=QUICK)
    assert (run.path / "summary.json").is_file()
    assert not (run.path / "report.html").exists()
