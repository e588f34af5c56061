"""The commands of the page about the studio, with a studio that runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.formats.read import read
from sequst.corpus.generated import generate
from sequst.studio.project import FILE
from sequst.studio.types import RESERVED
from tests.end_to_end.test_pages import REPOSITORY, blocks, lines

from .conftest import Process

PAGE = REPOSITORY / "docs" / "how-to" / "label-in-the-studio.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [line for kind, block in blocks(PAGE) if kind == "sh" for line in lines(block)]


def test_flags_are_known(sequst: Callable[..., Any]) -> None:
    shown = sequst("studio", "--help").stdout
    told = re.findall(r"--[a-z-]+", " ".join(each for each in COMMANDS if each.startswith("sequst studio ")))
    told += re.findall(r"`(--(?!json)[a-z-]+)", TEXT)
    assert {"--demo", "--text", "--types", "--labeled", "--encoder", "--host", "--token-file"} <= set(told)
    assert all(re.search(rf"{flag}\b", shown) for flag in told)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page asks with curl")
def test_every_command_that_asks_gets_an_answer(start: Callable[..., Process], tiny_encoder: str, tmp_path: Path) -> None:
    """A session as the page tells it: open, take the next sentence, label, train, export."""
    (tmp_path / "raw.txt").write_text("\n".join(" ".join(sentence.words) for sentence in generate().pool[:40]))
    opened = next(line for line in COMMANDS if "--types" in line)
    project, *flags = opened.removeprefix("sequst studio ").split()
    flags[flags.index("raw.txt")] = str(tmp_path / "raw.txt")
    studio = start(tmp_path / project, *flags, "--encoder", tiny_encoder)
    asked, given = 0, 0
    for line in COMMANDS:
        if not line.startswith("curl"):
            continue
        command = line.replace("localhost:8080", studio.address.removeprefix("http://")).replace("/17/", f"/{given}/")
        done = subprocess.run(["bash", "-c", command.replace("-s", "-sSf", 1)], cwd=tmp_path, check=False, capture_output=True)
        assert done.returncode == 0, (line, done.stderr)
        if line.endswith("/api/next"):
            given = json.loads(done.stdout)["id"]
            assert all(f"`{key}`" in TEXT for key in ("id", "text", "words", "suggestions", "why", "judging"))
        asked += 1
    assert asked == 5
    [sentence] = read(tmp_path / "labeled.conll")
    assert sentence.tags is not None
    assert sentence.tags[:2] == ("B-person", "I-person")
    assert studio.state()["labeled"] == 1
    assert f"`{FILE}`" in TEXT
    assert (tmp_path / project / FILE).is_file()


def test_the_requests_and_the_keys_of_the_page_are_there(start: Callable[..., Process], tmp_path: Path) -> None:
    described = start(tmp_path / "project").http.get("/openapi.json").json()["paths"]
    told = re.findall(r"`(GET|POST|PUT) (/api/[a-z/{}]+)`", TEXT)
    assert len(told) >= 11
    assert all(method.lower() in described.get(path, {}) for method, path in told)
    assert all(f"`{key}`" in TEXT for key in RESERVED)
