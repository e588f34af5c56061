"""What a display says of a running phase, and of the run."""

from __future__ import annotations

import pytest

from sequst.training.progress import Counted, Planned, duration

PLAN = [Planned("teacher", 10.0), Planned("round 1: beliefs", 20.0), Planned("round 1: student", 70.0)]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    return clock


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (89, "89 s"), (91, "2 min"), (3600, "60 min"), (7800, "2 h 10 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_without_a_plan_the_time_left_is_that_of_the_phase(clock: Clock) -> None:
    shown = Counted()
    shown.begin("teacher", 40)
    assert shown.status() == "0 of 40 steps, 0 s"
    clock.now += 10
    shown.advance(10, loss=0.25)
    assert shown.status() == "10 of 40 steps, 10 s, 30 s left, loss 0.25"


def test_with_a_plan_it_is_that_of_the_run(clock: Clock) -> None:
    shown = Counted()
    shown.expect(PLAN)
    shown.begin("teacher", 40)
    assert shown.seconds_left() == pytest.approx(100 * 10 / 10)
    clock.now += 5
    shown.advance(20)
    assert shown.seconds_left() == pytest.approx(95)  # as planned
    assert shown.status() == "20 of 40 steps, 5 s; 2 min left"


def test_a_plan_is_corrected_by_what_passed(clock: Clock) -> None:
    """Twice as slow as planned: what is left takes nearly twice as long."""
    shown = Counted()
    shown.expect(PLAN)
    shown.begin("teacher", 40)
    clock.now += 60
    shown.begin("round 1: student", 100)
    assert shown.seconds_left() == pytest.approx(70 * (60 + 10) / (30 + 10))
    shown.advance(100)
    assert shown.seconds_left() == 0.0
    assert "left" not in shown.status()


def test_a_resumed_phase_begins_in_its_middle(clock: Clock) -> None:
    shown = Counted()
    shown.expect(PLAN[2:])
    shown.begin("round 1: student", 100, done=40)
    assert shown.seconds_left() == pytest.approx(42)
    clock.now += 35
    shown.advance(50)
    assert shown.seconds_left() == pytest.approx(7)
    shown.begin("an unknown phase", 10)
    assert shown.seconds_left() is None
