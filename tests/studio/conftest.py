"""A project with a few sentences; requests without a server; a studio in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from starlette.testclient import TestClient

from sequst.corpus.sentence import sentence_from_text
from sequst.service.app import guarded
from sequst.service.guard import Tokens
from sequst.studio.app import build_studio
from sequst.studio.project import Project
from tests.heard import Heard

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from .browser import Server, Visits

TEXTS = (
    "Ada flew to Oslo.",
    "Oslo is cold, says Ada.",
    "Ida met Ada in Rome.",
    "nothing is here",
    "👩‍🚀 Ida went to Nice 🇫🇷!",
    "שלום Oslo ולהתראות",
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Six sentences, two types."""
    made = Project(tmp_path / "project")
    made.add_text([sentence_from_text(text) for text in TEXTS], "texts.txt")
    for name in ("person", "place"):
        made.change_types({"op": "add", "name": name}, "")
    return made


def ids(project: Project) -> dict[str, int]:
    """The number of each sentence, by its text."""
    return {row["text"]: row["id"] for row in project.database.reading.execute("SELECT id, text FROM sentences")}


@pytest.fixture
def client(project: Project) -> TestClient:
    """Asks the studio, without its worker."""
    return ask(project)


def ask(project: Project, token_file: Path | None = None) -> TestClient:
    site = build_studio(project, Tokens(None if token_file is None else str(token_file)))
    hosts = None if token_file else {"127.0.0.1", "localhost"}
    return TestClient(guarded(site.app, site.hosted, hosts, site.large, site.is_page), base_url="http://127.0.0.1:8080")


class Process(Heard):
    """A studio."""

    def __init__(self, folder: Path, *arguments: str, port: int = 0) -> None:
        super().__init__("studio", str(folder), "--no-browser", "--port", str(port), *arguments)
        self.address = self.wait_for("the studio is at ").partition(" at ")[2].partition(";")[0]
        self.http = httpx.Client(base_url=self.address, timeout=30)

    def state(self) -> Any:
        return self.http.get("/api/state").json()

    def wait_until(self, true: Callable[[Any], bool], seconds: float = 120) -> Any:
        """The state, when it is so."""
        end = time.monotonic() + seconds
        while not true(state := self.state()):
            assert time.monotonic() < end, state
            time.sleep(0.1)
        return state

    def worker(self) -> list[int]:
        """The processes that the studio has started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="utf-8")
        return [int(child) for child in children.split()]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Process] = []

    def begin(folder: Path, *arguments: str, **options: Any) -> Process:
        started.append(Process(folder, *arguments, **options))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


def entities(*found: Sequence[Any]) -> dict[str, Any]:
    return {"entities": [dict(zip(("type", "start", "end"), each, strict=True)) for each in found]}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not of the session: while it is open, no other test of this process can run an event loop."""
    from playwright.sync_api import sync_playwright

    from .browser import EXECUTABLE

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        yield opened
        opened.close()


Serve = Callable[[Project], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves a project in a thread, and returns its address."""
    from .browser import Server

    servers: list[Server] = []

    def begin(project: Project) -> str:
        servers.append(Server(project))
        return servers[-1].address

    yield begin
    for each in servers:
        each.stop()


@pytest.fixture
def visit(browser: Browser, serve: Serve) -> Iterator[Visits]:
    """Opens a page. No page may complain on its console."""
    from .browser import Visits

    visits = Visits(browser)
    yield visits
    visits.end()
