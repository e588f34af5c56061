from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sequst.errors import UsageError
from sequst.integrations import notebook
from sequst.integrations.notebook import HtmlProgress, in_notebook


class Screen:
    """What IPython's display would show: lines, of which some change in place."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def HTML(self, text: str) -> str:  # noqa: N802
        return text

    def display(self, text: str, display_id: bool = False) -> Any:
        self.lines.append(text)
        place = len(self.lines) - 1
        return SimpleNamespace(update=lambda new: self.lines.__setitem__(place, new)) if display_id else None


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    screen = Screen()
    monkeypatch.setattr(notebook, "needed", lambda module, extra: screen)
    return screen


def test_a_phase_is_one_line_that_changes(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(notebook.time, "monotonic", lambda: now)
    bars = HtmlProgress()
    bars.begin("round 1: <student>", 10)
    now = 100.2
    bars.advance(1, loss=2.0)
    assert 'value="0"' in screen.lines[0]  # not every step is drawn
    now = 102.0
    bars.advance(3, loss=0.5)
    assert 'value="4" max="10"' in screen.lines[0]
    assert "4 of 10 steps, 2 s, 3 s left, loss 0.5" in screen.lines[0]
    assert "round 1: &lt;student&gt;" in screen.lines[0]
    bars.advance(6)
    bars.end()
    bars.end()
    assert "10 steps, 2 s<" in screen.lines[0]
    bars.note("a < b")
    bars.note("nothing to act on", detail=True)
    assert screen.lines[1:] == ['<div style="opacity:.7;white-space:pre-wrap">a &lt; b</div>']


def test_where_there_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert not in_notebook()
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook()
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(UsageError, match=r"this needs IPython .*sequst\[notebook\]"):
        HtmlProgress()


def test_bars_in_ipython_itself() -> None:
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()
    try:
        with capture_output() as shown:
            bars = HtmlProgress()
            bars.begin("teacher", 10)
            bars.note("a < b")
        lines = [output.data["text/html"] for output in shown.outputs]
        assert 'teacher <progress value="0" max="10">' in lines[0]
        assert "a &lt; b" in lines[1]
    finally:
        InteractiveShell.clear_instance()
