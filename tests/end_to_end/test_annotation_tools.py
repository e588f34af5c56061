"""The page on annotation tools: its commands run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sequst.corpus.formats.read import read
from sequst.corpus.formats.registry import FORMATS

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = (REPOSITORY / "docs/how-to/use-your-annotation-tool.md").read_text(encoding="utf-8")


def test_the_commands_run_as_they_stand(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    script = "set -e\n" + "".join(blocks).replace("\nsequst ", f"\n{sys.executable} -m sequst ")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("labeled.conll", "tasks.json", "prodigy.jsonl", "documents"):
        [sentence] = read(tmp_path / name)
        assert sentence.tags == ("B-PER", "I-PER", "O", "O", "B-LOC", "O")
    assert "overlaps" in done.stderr
    assert (tmp_path / "odd.conll").read_text() == "Anna\tB-PER\nLind\tI-PER\nsings\tO\n\n"


def test_every_format_is_in_the_docs() -> None:
    page = (REPOSITORY / "docs/reference/formats.md").read_text(encoding="utf-8")
    for name in FORMATS:
        assert f"`{name}`" in PAGE
        assert f"`{name}`" in page
