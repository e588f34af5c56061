from __future__ import annotations

import base64
import csv
import html.parser
import io
import json
import re
import xml.etree.ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.experiments import figures, paper
from sequst.experiments.figures import Figure, figures_of
from sequst.experiments.report import write_experiment_report
from sequst.experiments.results import KEYS, Results


def line(dataset: str, method: str, seed: int, f1: float, shots: int | None = 10) -> dict[str, Any]:
    facts = {
        "experiment": "t", "recipe": "default", "encoder": "mpnet", "head": "softmax", "pool": 4000, "settings_hash": "h",
        "device": "cpu", "commit": "c", "seconds": 36.0,
    }  # fmt: skip
    facts |= {"dataset": dataset, "method": method, "seed": seed, "f1": f1, "shots": shots}
    return {**dict.fromkeys(KEYS, 0), **facts}


LINES = [
    line("conll03", "finetune", 12, 90.0, shots=None),
    *(line("conll03", method, seed, 60.0 + seed) for method in ("finetune", "sequst") for seed in (12, 21)),
    line("conll03", "sequst", 42, 76.5),
    line("snips", "sequst", 12, 80.0),
]
CELLS = {(each["dataset"], each["method"], each["seed"]): each for each in LINES if each["shots"]}


def found(dataset: str, method: str, seed: int, **more: Any) -> dict[str, Any]:
    return {**{name: value for name, value in CELLS[dataset, method, seed].items() if name != "f1"}, **more}


BINS = [{"confidence": 0.5, "accuracy": 0.25, "count": 1}, {"confidence": 0.9, "accuracy": 0.8, "count": 2}]
MORE = [{"confidence": 0.6, "accuracy": 0.55, "count": 3}, {"confidence": 0.96, "accuracy": 0.95, "count": 4}]
RESULTS = Results.of(
    LINES,
    rounds=[
        *(found("conll03", "sequst", 12, round=n, f1=f1) for n, f1 in enumerate((50.0, 54.0))),
        *(found("conll03", "sequst", 21, round=n, f1=f1) for n, f1 in enumerate((40.0, 50.0))),
    ],
    reliability=[
        found("conll03", "sequst", 12, ece=1.0, bins=BINS),
        found("conll03", "sequst", 21, ece=3.0, bins=MORE),
        found("conll03", "sequst", 42, ece=3.0, bins=MORE[:1]),
        found("snips", "sequst", 12, ece=None, bins=[]),
    ],
)


@pytest.fixture(scope="module")
def made() -> dict[str, Figure]:
    return {figure.name.partition("-")[0]: figure for figure in figures_of(RESULTS)}


def rows(figure: Figure) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(figure.csv().decode())))


def test_the_data_beside_a_figure_by_hand(made: dict[str, Figure]) -> None:
    assert list(made) == ["scores", "rounds", "reliability"]
    score = next(row for row in rows(made["scores"]) if (row["dataset"], row["method"]) == ("conll03", "sequst"))
    printed = paper.figure("conll03", "sequst")
    assert printed is not None
    assert (float(score["f1"]), float(score["paper"]), float(score["full_data"])) == (76.5, printed.f1, 90.0)
    assert [(row["round"], float(row["f1"]), row["runs"]) for row in rows(made["rounds"])] == [("0", 45, "2"), ("1", 52, "2")]
    first, second = rows(made["reliability"])
    assert [float(first[name]) for name in ("confidence", "accuracy", "entities")] == pytest.approx([0.575, 0.475, 4])
    assert float(second["confidence"]) == pytest.approx((2 * 0.9 + 4 * 0.96) / 6)
    assert second["runs"] == "2"  # the third run has too few bins


@pytest.mark.parametrize("name", ["scores", "rounds", "reliability"])
def test_every_figure_is_drawn_the_same_twice(made: dict[str, Figure], name: str) -> None:
    svg = made[name].svg()
    assert svg == made[name].svg()
    assert xml.etree.ElementTree.fromstring(svg).tag.endswith("svg")
    assert made[name].png().startswith(b"\x89PNG")


def test_series_differ_without_colour() -> None:
    looks = list(figures._looks([str(number) for number in range(42)]).values())
    assert len({look["marker"] for look in looks[:7]}) == len({str(look["linestyle"]) for look in looks[:7]}) == 7
    assert len({(look["color"], look["marker"]) for look in looks}) == 42


class Page(html.parser.HTMLParser):
    """Which tags are open at the end, which ids there are and which are pointed to, what is fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "xlink:href") and (value or "").startswith("#"):
                self.targets.add((value or "")[1:])
            elif name in ("href", "src", "xlink:href") and not (value or "").startswith("data:"):
                self.fetched.append(value or "")
            self.targets |= set(re.findall(r"url\(#([^)]+)\)", value or ""))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in ("meta", "link", "img", "br"):
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_experiment_report(RESULTS, path)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert page.fetched == []
    assert "@import" not in text
    assert len(page.ids) == len(set(page.ids))
    assert page.targets <= set(page.ids)
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
    assert "76.50 ± 4.50 (3)" in text
    drawn = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    assert len(drawn) == 3
    assert all(xml.etree.ElementTree.fromstring(base64.b64decode(each)).tag.endswith("svg") for each in drawn)


def test_names_of_others_cannot_become_code_or_paths(tmp_path: Path) -> None:
    evil = 'x"><script>alert(1)</script>/../y'
    cells = [{**line(evil, "sequst", 12, 50.0), "encoder": evil}]
    results = Results.of(cells, reliability=[{**cells[0], "ece": None, "bins": BINS}])
    write_experiment_report(results, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert Page(text).open == []
    for path in figures.write_figures(figures_of(results), tmp_path / "figures"):
        assert path.parent == tmp_path / "figures"
        assert path.is_file()


def test_the_verbs(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in LINES))
    rounds = RESULTS.findings["rounds"]
    (tmp_path / "results.rounds.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rounds))
    failed = [line("conll03", "sst", 12, 0.0), line("conll03", "sequst", 12, 0.0)]  # the second was done later
    (tmp_path / "results.failures.jsonl").write_text(
        "".join(json.dumps({**each, "error": "no <b>luck"}) + "\n" for each in failed)
    )
    done = sequst("experiment", "figures", tmp_path)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"{kind}-10shot-mpnet-softmax.{end}" for kind in ("scores", "rounds") for end in ("svg", "png", "csv")}
    done = sequst("experiment", "report", tmp_path, "--output", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("no &lt;b&gt;luck") == 1
    assert "t, conll03, sst, default, mpnet, softmax, 10 shots, seed 12" in page
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "results.jsonl").write_text("")
    for verb in ("figures", "report"):
        done = sequst("experiment", verb, tmp_path / "empty")
        assert done.returncode == 1
        assert "is scored on test" in done.stderr
    done = sequst("experiment", "report", tmp_path, "--output", tmp_path / "nowhere" / "page.html")
    assert "there is no folder" in done.stderr


def test_without_matplotlib_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from sequst.errors import UsageError

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"needs matplotlib .* pip install 'sequst\[figures\]'"):
        figures_of(RESULTS)[0].svg()
