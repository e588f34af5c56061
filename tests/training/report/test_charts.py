from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.calibration.reliability import Bin
from sequst.training.report.charts import HEIGHT, WIDTH, Series, line_chart, reliability_diagram, ticks

DOT = re.compile(r'<circle class="dot s(\d)" cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"><title>(.*?)</title>')


def dots(drawing: str) -> list[tuple[int, float, float, str]]:
    return [(int(line), float(x), float(y), told) for line, x, y, _, told in DOT.findall(drawing)]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (3, 97, [0, 20, 40, 60, 80, 100]),
        (61.2, 63.9, [61, 62, 63, 64]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (5, 5, [4.4, 4.6, 4.8, 5, 5.2, 5.4, 5.6]),  # a single value gets room on both sides
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_ticks_enclose_the_values(low: float, width: float) -> None:
    found = ticks(low, low + width)
    slack = 1e-8 * max(abs(low), width)
    assert found[0] <= low + slack
    assert found[-1] >= low + width - slack
    assert 2 <= len(found) <= 9
    assert found == sorted(set(found))


def test_points_are_where_they_belong() -> None:
    drawing = line_chart([Series("a & b", [(0, 0.0), (1, 50.0), (2, 100.0)]), Series("c", [(1, 25.0)])], "round", "F1")
    (_, x0, y0, told), (_, x1, y1, _), (_, x2, y2, _), (line, x3, y3, _) = dots(drawing)
    assert told == "a &amp; b: 0 (round 0)"
    assert line == 1
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)  # upwards is less
    assert (x3, y3) == (x1, pytest.approx((y0 + y1) / 2, abs=0.2))
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in ((x0, y0), (x2, y2)))


def test_rounds_are_whole_numbers() -> None:
    drawing = line_chart([Series("f1", [(0, 60.0), (1, 61.0), (2, 61.5)])], "round", "F1")
    below = re.findall(r'<text text-anchor="middle" x="[\d.]+" y="[\d.]+">([^<]*)</text>', drawing)
    assert below == ["0", "1", "2", "round"]


def test_what_has_no_point_is_not_drawn() -> None:
    assert line_chart([Series("a", [])], "x", "y") == ""
    assert reliability_diagram([]) == ""
    assert len(dots(line_chart([Series("one", [(1, 40.0)])], "round", "F1"))) == 1


def test_odd_values() -> None:
    nan, infinite = float("nan"), float("inf")
    assert len(dots(line_chart([Series("a", [(0, 5.0), (1, 5.0 + 1e-13), (2, nan), (3, infinite)])], "step", "loss"))) == 2
    assert line_chart([Series("a", [(0, nan)])], "step", "loss") == ""
    [(_, _, _, told)] = dots(line_chart([Series("a", [(12345, 1.5)])], "step", "loss"))
    assert told == "a: 1.5 (step 12345)"
    many = line_chart([Series(str(i), [(i, i)]) for i in range(8)], "step", "loss")
    assert {line for line, *_ in dots(many)} == set(range(6))  # colours come round again


def test_confidence_that_is_too_high_lies_below_the_diagonal() -> None:
    drawing = reliability_diagram([Bin(0.75, 0.5, 8)])
    [(_, x, y, told)] = dots(drawing)
    diagonal = re.search(r'class="diagonal" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', drawing)
    assert diagonal is not None
    left, bottom, right, top = map(float, diagonal.groups())
    assert told == "8 entities: confidence 75 %, correct 50 %"
    assert (x - left) / (right - left) == pytest.approx(0.75, abs=0.01)
    assert (bottom - y) / (bottom - top) == pytest.approx(0.5, abs=0.01)
