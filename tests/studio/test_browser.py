"""The studio in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the browser tests need playwright: pip install -e '.[dev]'")
pytest.importorskip("axe_playwright_python", reason="the browser tests need axe: pip install -e '.[dev]'")

from playwright.sync_api import Browser, Page, expect, sync_playwright

from sequst.studio.project import Project

from .browser import (
    NAMES, Server, Visits, another, button, chosen, cursor, drag, events, executable, go, hover, make, marks, press, saved,
    shows, skipped, strings, violations, word,
)  # fmt: skip
from .conftest import Process

if executable() is None:
    pytest.skip(
        f"the browser tests need a browser, one of {', '.join(NAMES)}: apt-get install chromium", allow_module_level=True
    )

MORE = [f"Sentence {i} waits." for i in "abcdefgh"]
"""They keep the queue full, so that the worker has nothing to choose."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the session: while it is there, no other test of this process can run an event loop."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable(), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Project], str]]:
    """Serves a project, and returns its address."""
    servers: list[Server] = []

    def begin(project: Project) -> str:
        servers.append(Server(project))
        return servers[-1].address

    yield begin
    for each in servers:
        each.stop()


@pytest.fixture
def visit(browser: Browser, serve: Callable[[Project], str]) -> Iterator[Visits]:
    """Opens a page. No page may complain on its console."""
    visits = Visits(browser)
    yield visits
    visits.end()


Start = Callable[..., Process]
Serve = Callable[[Project], str]


# Labelling


def test_a_session_by_keyboard(start: Start, visit: Visits, tmp_path: Path) -> None:
    flew, twice, met, nothing, called = (
        "Ada flew to Oslo.", "Oslo is not Oslo, says Ada Lovelace.", "Ida met Ada in Rome.", "Nothing is here.", "Rome called Ida.",
    )  # fmt: skip
    suggested = {
        met: [["person", 0, 1, 0.97], ["person", 2, 3, 0.9], ["place", 4, 5, 0.84]],
        nothing: [["place", 0, 1, 0.4]],
        called: [["person", 0, 1, 0.7]],
    }
    project = make(tmp_path, [flew, twice, met, nothing, called, "Skip me.", *MORE], suggested=suggested)
    page = visit(start(project.folder).address)
    shows(page, flew)
    press(page, "1", "ArrowRight", "ArrowRight", "ArrowRight", "2")
    assert marks(page) == [["person", 0, 1], ["place", 3, 4]]
    press(page, "?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    press(page, "x", "Escape")  # no key reaches the sentence behind the dialog
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert marks(page) == [["person", 0, 1], ["place", 3, 4]]
    press(page, "Enter")
    shows(page, twice)
    press(page, "2", "a", "End", "ArrowLeft", "Shift+ArrowLeft")
    assert chosen(page) == ["Ada", "Lovelace"]
    press(page, "1")
    assert marks(page) == [["place", 0, 1], ["place", 3, 4], ["person", 6, 8]]
    press(page, "Enter")
    shows(page, met)
    assert marks(page) == [["person", 0, 1], ["person", 2, 3], ["place", 4, 5]]
    press(page, "Enter")
    shows(page, nothing)
    press(page, "x", "Enter")
    shows(page, called)
    press(page, "2")  # another type for the entity, whose confidence is the lowest: the cursor is there
    assert marks(page) == [["place", 0, 1]]
    press(page, "End", "ArrowLeft", "1", "1")  # the same key again removes it
    assert marks(page) == [["place", 0, 1]]
    press(page, "u")
    assert marks(page) == [["place", 0, 1], ["person", 2, 3]]
    press(page, "Enter")
    shows(page, "Skip me.")
    press(page, "Backspace")
    shows(page, MORE[0])
    assert skipped(project) == ["Skip me."]
    press(page, "u")
    shows(page, "Skip me.")
    press(page, "u")
    shows(page, called)
    assert marks(page) == [["place", 0, 1], ["person", 2, 3]]
    assert called not in saved(project)
    press(page, "Home", "Delete", "Enter")
    shows(page, "Skip me.")
    press(page, "Backspace")
    shows(page, MORE[0])
    assert saved(project) == {
        flew: [["person", 0, 1], ["place", 3, 4]],
        twice: [["place", 0, 1], ["place", 3, 4], ["person", 6, 8]],
        met: [["person", 0, 1], ["person", 2, 3], ["place", 4, 5]],
        nothing: [],
        called: [["person", 2, 3]],
    }
    assert skipped(project) == ["Skip me."]
    assert events(project, called) == ["labels", "undo", "labels"]
    expect(page.locator(".counters")).to_contain_text("5labelled")


def test_a_session_by_mouse(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    first, second, third = "Ada Lovelace flew to New York.", "Ida met Ada.", "Rome is old."
    project = make(tmp_path, [first, second, third, *MORE])
    page = visit(serve(project))
    shows(page, first)
    hover(page, 0)
    press(page, "2")
    assert marks(page) == [["place", 0, 1]]
    drag(page, 1, 0)  # from right to left
    assert chosen(page) == ["Ada", "Lovelace"]
    press(page, "1")
    drag(page, 4, 5)
    button(page, "place").click()
    assert marks(page) == [["person", 0, 2], ["place", 4, 6]]
    button(page, "Accept").click()
    shows(page, second)
    word(page, 2).dblclick()
    assert chosen(page) == ["Ada"]
    button(page, "person").click()
    word(page, 2).click()
    button(page, "place").click()  # another type
    assert marks(page) == [["place", 2, 3]]
    word(page, 2).click()
    button(page, "place").click()  # the same type removes it
    assert marks(page) == []
    button(page, "Undo").click()
    assert marks(page) == [["place", 2, 3]]
    button(page, "Keys").click()
    button(page, "Close").click()
    button(page, "Accept").click()
    shows(page, third)
    button(page, "Skip").click()
    shows(page, MORE[0])
    button(page, "Undo").click()
    shows(page, third)
    press(page, "Enter")  # the sentence has the focus again, not the button
    shows(page, MORE[0])
    assert saved(project) == {first: [["person", 0, 2], ["place", 4, 6]], second: [["place", 2, 3]], third: []}
    assert events(project, third) == ["skip", "undo", "labels"]


def test_the_word_under_a_mouse_at_rest_is_not_meant(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, ["Ada flew to Oslo.", "Ida met Ada in Rome.", *MORE])
    page = visit(serve(project))
    shows(page, "Ada flew to Oslo.")
    hover(page, 3)
    press(page, "2", "Enter")
    shows(page, "Ida met Ada in Rome.")
    press(page, "1", "Enter")
    shows(page, MORE[0])
    assert saved(project)["Ida met Ada in Rome."] == [["person", 0, 1]]


def test_suggestions_that_are_right_cost_one_key(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    suggested = {"Ada flew to Oslo.": [["person", 0, 1, 0.99], ["place", 3, 4, 0.55]], "Ida met Ada.": [["person", 0, 1, 0.6]]}
    project = make(tmp_path, [*suggested, *MORE], suggested=suggested)
    page = visit(serve(project))
    for text in suggested:
        shows(page, text)
        press(page, "Enter")
    shows(page, MORE[0])
    assert saved(project) == {text: [list(each[:3]) for each in found] for text, found in suggested.items()}


def test_a_key_held_down_accepts_once(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, ["Ada flew to Oslo.", *MORE])
    page = visit(serve(project))
    shows(page, "Ada flew to Oslo.")
    for _ in range(5):
        page.keyboard.down("Enter")
    shows(page, MORE[0])
    for _ in range(5):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    press(page, "Enter")
    shows(page, MORE[1])
    assert list(saved(project)) == ["Ada flew to Oslo.", MORE[0]]


def test_two_quick_enters_accept_one_sentence(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    """The second one comes before the next sentence, which nobody has seen yet."""
    project = make(tmp_path, ["Ada flew to Oslo.", *MORE])
    page = visit(serve(project))
    shows(page, "Ada flew to Oslo.")
    page.route("**/api/next", lambda route: page.wait_for_timeout(300) or route.continue_())
    press(page, "Enter", "Enter", "1")
    shows(page, MORE[0])
    assert list(saved(project)) == ["Ada flew to Oslo."]
    assert marks(page) == []


def test_a_sentence_for_judging_comes_without_suggestions(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    texts = ["Ada flew to Oslo.", "Ida met Ada.", "Ada is in Rome."]
    project = make(tmp_path, texts, suggested={text: [["person", 0, 1, 0.9]] for text in texts}, judging_share=0.9)
    page = visit(serve(project))
    expect(page.locator(".judging")).to_contain_text("For judging")
    expect(page.locator(".card.sentence")).to_have_class("card sentence for-judging")
    assert marks(page) == []
    press(page, "2", "Enter")
    expect(page.locator(".counters")).to_contain_text("1labelled")
    assert list(saved(project).values()) == [[["place", 0, 1]]]
    assert project.counts()["judging"] == 1
