"""The figures of all pages, made from results/ and benchmarks/results/.

python benchmarks/pages.py    write RESULTS.md and every block between `<!-- figures: NAME -->` and `<!-- /figures -->`,
                              and draw the pictures of docs/images whose data have changed
"""

from __future__ import annotations

import re
from pathlib import Path

import pictures
import run_tables
import speed_tables

BLOCKS = {**run_tables.BLOCKS, **speed_tables.BLOCKS}
BLOCK = re.compile(r"(<!-- figures: (\S+) -->\n)(?:(?!<!--).)*(<!-- /figures -->)", re.DOTALL)


def current(text: str) -> str:
    """A page with all its blocks made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[3]}", text)


def pages() -> dict[Path, str]:
    """{page with blocks: what it should say}."""
    found = [run_tables.ROOT / "README.md", *sorted((run_tables.ROOT / "docs").rglob("*.md"))]
    made = {page: current(text) for page in found if BLOCK.search(text := page.read_text(encoding="utf-8"))}
    return {**made, run_tables.ROOT / "RESULTS.md": run_tables.results_page()}


def main() -> None:
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
    for name in pictures.PICTURES:
        if not pictures.is_current(name):
            pictures.draw(name)


if __name__ == "__main__":
    main()
