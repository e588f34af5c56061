"""The command line: one file a verb. Parses, calls, prints; everything else is the library's."""

from __future__ import annotations

import logging
import sys


class LogHandler(logging.Handler):
    """The library's log, in the voice of our notes."""

    def emit(self, record: logging.LogRecord) -> None:
        from sequst.cli.console import note

        note(f"{record.levelname.lower()}: {self.format(record)}" if record.levelno > logging.INFO else self.format(record))


def main() -> None:
    """Run `sequst`; errors that a user can mend come out as a message of a line or two, without a traceback."""
    from sequst.cli.app import app

    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    logger = logging.getLogger("sequst")
    logger.handlers = [LogHandler()]
    logger.setLevel(logging.DEBUG if debug else logging.INFO)
    try:
        app(args=[a for a in arguments if a != "--debug"], prog_name="sequst")
    except Exception as error:
        from sequst.cli.console import fail
        from sequst.errors import SequstError

        if debug:
            raise
        if isinstance(error, SequstError):
            fail(str(error), error.exit_code)
        fail(f"{type(error).__name__}: {error}\nThis is a bug in sequst; --debug shows where. Please report it.", 1)
