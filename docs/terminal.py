"""Draw what a command shows in a terminal: python docs/terminal.py docs/images/terminal-check.svg sequst check --labeled ...

Needs pyte (pip install pyte), an emulator of a terminal.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import sys

import pyte
from rich.console import Console
from rich.text import Text

WIDTH, HEIGHT = 88, 200


def colour_of(name: str) -> str:
    """The name that rich has for a colour of pyte."""
    return {"default": "", "brown": "yellow"}.get(name, f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else name)


def screen_of(command: list[str]) -> list[Text]:
    """The lines that are left on the screen when the command has ended."""
    screen = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.ByteStream(screen)

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 4096)
        stream.feed(data)
        return data

    os.environ.update(COLUMNS=str(WIDTH), LINES="40", TERM="xterm-256color")
    pty.spawn(command, read)
    lines = []
    for row in range(screen.cursor.y + 1):
        line = Text()
        for column in range(WIDTH):
            cell = screen.buffer[row][column]
            front, back = (colour_of(name) for name in (cell.fg, cell.bg))
            style = f"{'bold ' if cell.bold else ''}{front}{f' on {back}' if back else ''}"
            line.append(cell.data, style.strip())
        line.rstrip()
        lines.append(line)
    return lines


def main() -> None:
    target, *command = sys.argv[1:]
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text(f"$ {shlex.join(command)}", "bold"))
    for line in screen_of(command):
        console.print(line)
    console.save_svg(target, title="", font_aspect_ratio=0.61)


if __name__ == "__main__":
    main()
