"""The commands and the Python of the pages about the service, with a server that runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.test_pages import REPOSITORY, blocks, lines
from tests.service.conftest import Process
from tests.service.test_serve import TEXTS, TOKEN

HOW_TO = REPOSITORY / "docs" / "how-to"


def flags_are_known(line: str, sequst: Callable[..., Any]) -> None:
    verb = line.split("sequst ")[1].split()[0]
    shown = sequst(verb, "--help").stdout
    assert all(re.search(rf"{flag}\b", shown) for flag in re.findall(r"--[a-z-]+", line)), line


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page asks with curl")
def test_every_command_that_asks_gets_an_answer(
    serve: Callable[..., Process], model: Path, sequst: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "tagme.jsonl").write_text('{"text": "Can Sydney sing?"}\n' * 500)
    server = serve(model, "--label-studio", "--labels", tmp_path / "labels")
    asked = 0
    for page in ("serve.md", "label-with-label-studio.md"):
        for kind, block in blocks(HOW_TO / page):
            if kind == "python":
                exec(block.replace("http://127.0.0.1:8000", server.client.url), {})
                continue
            for line in lines(block):
                if "label-studio start" in line:
                    assert "localhost:8000/interface" in line  # which is asked below
                elif "curl" in line:
                    command = line.replace("localhost:8000", f"localhost:{server.port}")
                    told = ["bash", "-c", command.replace("-s", "-sSf", 1)]
                    done = subprocess.run(told, cwd=tmp_path, check=False, capture_output=True)
                    assert done.returncode == 0, (line, done.stderr)
                    asked += 1
                elif "sequst " in line and not line.startswith("kill"):
                    flags_are_known(line, sequst)
    assert asked == 3
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 500
    inline = f"http://127.0.0.1:{server.port}/interface"
    assert b"<Labels" in subprocess.run(["curl", "-sf", inline], check=True, capture_output=True).stdout


def test_the_table_of_requests_is_whole(serve: Callable[..., Process], model: Path) -> None:
    server = serve(model)
    page = (HOW_TO / "serve.md").read_text(encoding="utf-8")
    described = server.client._ask("GET", "/openapi.json")
    for path, methods in described["paths"].items():
        for method, facts in methods.items():
            assert f"{method.upper()} {path}" in page
            told = {int(status) for status in facts["responses"]} - {200, 403, 409}
            assert all(f"| {status} |" in page for status in told)
    assert server.client.predict(TEXTS)
