"""What the browser tests are made of: projects, a server in a thread, and visits that note what a page complains of."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

pytest.importorskip("playwright", reason="the browser tests need playwright: pip install -e '.[dev]'")
pytest.importorskip("axe_playwright_python", reason="the browser tests need axe: pip install -e '.[dev]'")

from axe_playwright_python.base import AXE_SCRIPT as AXE
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect

from sequst.corpus.sentence import sentence_from_text
from sequst.service.app import guarded
from sequst.service.guard import Tokens
from sequst.studio.app import build_studio
from sequst.studio.project import Project

__all__ = ["Page", "Route", "expect"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXECUTABLE = next(filter(None, map(shutil.which, BROWSERS)), None)
if EXECUTABLE is None:
    WANTED = f"the browser tests need one of {', '.join(BROWSERS)}: apt-get install chromium"
    pytest.skip(WANTED, allow_module_level=True)
PATIENCE = 15_000
"""Milliseconds until something on a page must be so."""
Entity = Sequence[Any]
Marks = list[list[Any]]

expect.set_options(timeout=PATIENCE)


MORE = [f"Sentence {i} waits." for i in "abcdefgh"]
"""They keep the queue full, so that a worker has nothing to choose."""


# Projects


def make(
    folder: Path,
    texts: Sequence[str],
    types: Iterable[str] = ("person", "place"),
    suggested: Mapping[str, Sequence[Entity]] | None = None,
    **settings: Any,
) -> Project:
    """A project that shows the texts in this order, with these suggestions. Nothing is trained, nothing is for judging."""
    project = Project(folder / "project")
    project.add_text([sentence_from_text(text) for text in texts], "texts.txt")
    for name in types:
        project.change_types({"op": "add", "name": name}, "")
    project.change_settings({"train": False, "judging_share": 0.0, **settings}, "")
    numbers, found = ids(project), suggested or {}
    queue = [
        (numbers[text], f"Number {i} of the queue.", [list(each) for each in found.get(text, ())])
        for i, text in enumerate(texts, 1)
    ]
    project.put_in_queue(queue, project.last_event())
    return project


def ids(project: Project) -> dict[str, int]:
    return {row["text"]: row["id"] for row in project.database.reading.execute("SELECT id, text FROM sentences")}


def change(address: str, **op: str) -> None:
    """Change a type, as another person would."""
    assert httpx.post(f"{address}/api/types", json=op).status_code == 200


def saved(project: Project) -> dict[str, Marks]:
    """The labels of each labelled sentence, by its text."""
    rows = project.database.reading.execute("SELECT text, entities FROM sentences WHERE status = 'labels'")
    return {row["text"]: json.loads(row["entities"]) for row in rows}


def skipped(project: Project) -> list[str]:
    return [row["text"] for row in project.database.reading.execute("SELECT text FROM sentences WHERE status = 'skip'")]


def events(project: Project, text: str) -> list[str]:
    """What happened to a sentence."""
    return [each["kind"] for each in project.history(ids(project)[text])]


def strings(project: Project) -> dict[str, list[tuple[str, str]]]:
    """The labels of each labelled sentence, (type, what it marks in the text by the offsets of its words)."""
    found = {}
    for sentence in project.labeled():
        text, offsets = sentence.as_text()
        marks = saved(project)[text]
        found[text] = [(type_, text[offsets[start][0] : offsets[end - 1][1]]) for type_, start, end in marks]
    return found


def f1(value: float, entities: int) -> dict[str, Any]:
    return {"value": value, "low": value - 9, "high": value + 7, "level": 0.9, "sentences": 2, "entities": entities}


JUDGED = ("Ada was born in London.", "Rome is not Paris.")
SUSPECT = "Oslo met Ida in May."
DIFFERENT = "Ada Lovelace wrote from Turin."
UNCERTAIN = "Perhaps Victoria is a station."
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft employs Ada " + "x" * 90 + "."


def lived_in(folder: Path) -> Project:
    """A project with all that a page can show: two people, judged models, a suspect, an uncertain entity, an export."""
    texts = (*JUDGED, SUSPECT, DIFFERENT, "Skip this.", LONG, UNCERTAIN, "Bern is calm.", "Ida likes Nice.")
    project = make(folder, texts, suggested={UNCERTAIN: [["person", 1, 2, 0.41]], LONG: [["person", 2, 3, 0.93]]})
    number = ids(project)
    for text, found in zip(JUDGED, ([["person", 0, 1], ["place", 4, 5]], [["place", 0, 1], ["place", 3, 4]]), strict=True):
        project.label(number[text], "Ada", found)
        project.label(number[text], "Bob", found)
    project.label(number[SUSPECT], "Ada", [["person", 0, 1], ["person", 2, 3]])
    project.label(number[DIFFERENT], "Ada", [["person", 0, 2], ["place", 4, 5]])
    project.label(number[DIFFERENT], "Bob", [["person", 0, 1], ["place", 4, 5]])
    project.skip(number["Skip this."], "Ada")
    now = time.time()
    with project.database.writing() as connection:
        connection.executemany("UPDATE sentences SET judging = 1 WHERE text = ?", [(text,) for text in JUDGED])
        for model, value, second in ((1, 50.0, [["person", 0, 1]]), (2, 75.0, [["place", 0, 1], ["place", 3, 4]])):
            judged = {str(number[JUDGED[0]]): [["person", 0, 1]], str(number[JUDGED[1]]): second}
            types = {"person": {"f1": 80.0, "entities": 1}, "place": {"f1": 60.0, "entities": 3}}
            row = {
                "id": model, "job": model, "at": now - 900 / model, "event": project.last_event(), "kind": "quick",
                "method": "finetune", "labels": 10 * model, "seconds": 31.0, "f1": json.dumps(f1(value, 12 * model)),
                "types": json.dumps(types), "judged": json.dumps(judged),
            }  # fmt: skip
            places = ", ".join(f":{name}" for name in row)
            connection.execute(f"INSERT INTO models ({', '.join(row)}) VALUES ({places})", row)
        suspect = {
            "kind": "wrong type",
            "start": 0,
            "end": 1,
            "given": ["person", 0, 1],
            "alternative": ["place", 0, 1],
            "doubt": 3.2,
        }
        connection.execute(
            "INSERT INTO suspects VALUES (1, ?, ?, ?)", (number[SUSPECT], json.dumps(suspect), project.last_event())
        )
        entity = json.dumps(["person", 1, 2, 0.41])
        connection.execute("INSERT INTO uncertain VALUES (1, ?, ?, ?)", (number[UNCERTAIN], entity, project.last_event()))
    project.keep_fact("suspects", {"at": now, "labels": 4})
    project.keep_fact("forecast", {"quick": 40.0, "default": 300.0, "thorough": 2400.0})
    for model in (1, 2):
        written = project.folder / "models" / f"{model:04d}"
        written.mkdir(parents=True)
        (written / "config.json").write_text("{}")
        (written / "report.html").write_text(f"<!doctype html><title>Report</title><h1>Report of model {model}</h1>")
    exported = project.folder / "exports" / "0002-onnx"
    exported.mkdir(parents=True)
    (exported / "model.onnx").write_bytes(b"a model")
    return project


# The server


class Server:
    """A studio in a thread of the test. It has no worker: nothing is trained, and nothing is chosen."""

    def __init__(self, project: Project) -> None:
        site = build_studio(project, Tokens(None))
        app = guarded(site.app, site.hosted, {"127.0.0.1"}, site.large, site.is_page)
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        options: dict[str, Any] = {"ws": "none", "lifespan": "off", "log_config": None, "timeout_graceful_shutdown": 1}
        self._server = uvicorn.Server(uvicorn.Config(app, access_log=False, **options))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)


# Visits


class Visits:
    """Opens the pages of a test, each in a context of its own, and notes what they complain of."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._expected: list[str] = []
        self.complaints: list[str] = []

    def __call__(self, address: str, **options: Any) -> Page:
        """A page of a new context."""
        context = self._browser.new_context(**{"viewport": {"width": 1200, "height": 800}, "locale": "en-GB", **options})
        context.set_default_timeout(PATIENCE)
        context.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("dialog", lambda dialog: (self.complaints.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        self._contexts.append(context)
        return another(context, address)

    def expect(self, said: str) -> None:
        """A complaint with these words is no fault of the page."""
        self._expected.append(said)

    def end(self) -> None:
        for context in self._contexts:
            context.close()
        faults = [said for said in self.complaints if not any(words in said for words in self._expected)]
        assert not faults


def another(context: BrowserContext, address: str) -> Page:
    """Another tab."""
    page = context.new_page()
    page.goto(address)
    return page


def go(page: Page, place: str) -> None:
    """Follow a link inside the page."""
    page.evaluate("place => { location.hash = place }", place)


# The page Label


def sentence(page: Page) -> Locator:
    return page.locator(".card.sentence .text")


def shows(page: Page, text: str) -> None:
    expect(sentence(page)).to_have_text(re.compile(rf"^{re.escape(text)}$"))


def word(page: Page, number: int) -> Locator:
    return page.locator(".card.sentence .word").nth(number)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def marks(page: Page) -> Marks:
    """[type, start, end] of the entities that the page shows."""
    found: Marks = page.evaluate(
        """() => {
          const words = [...document.querySelectorAll(".card.sentence .word")];
          const tags = [...document.querySelectorAll(".card.sentence .tag b")];
          return [...document.querySelectorAll(".card.sentence .entity")].map((entity, i) => {
            const inside = [...entity.querySelectorAll(".word")].map((word) => words.indexOf(word));
            return [tags[i].textContent, inside[0], inside.at(-1) + 1];
          });
        }"""
    )
    return found


def chosen(page: Page) -> list[str]:
    """The words that are chosen."""
    return page.locator(".card.sentence .word.chosen").all_text_contents()


def cursor(page: Page) -> str:
    """The word that a screen reader is told of."""
    told: str = page.evaluate(
        "() => document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).textContent"
    )
    return told


def middle(page: Page, number: int) -> tuple[float, float]:
    box = word(page, number).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def hover(page: Page, number: int) -> None:
    page.mouse.move(*middle(page, number))


def drag(page: Page, first: int, last: int) -> None:
    hover(page, first)
    page.mouse.down()
    page.mouse.move(*middle(page, last), steps=3)
    page.mouse.up()


def swipe(page: Page, first: int, last: int) -> None:
    """Drag a finger."""
    session = page.context.new_cdp_session(page)
    for kind, number in (("touchStart", first), ("touchMove", last)):
        x, y = middle(page, number)
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(rf"^{re.escape(name)}"))


# Accessibility


def violations(page: Page, *rules: str) -> list[str]:
    """What axe finds, of all of its rules or of these; where a dialog is open, in the dialog."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    options: dict[str, Any] = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("options => axe.run(document.querySelector('dialog:modal') ?? document, options)", options)
    return [
        f"{each['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
