"""The command line: one file a verb. Parses, calls, prints; everything else is the library's."""

from __future__ import annotations

import logging
import sys


def main() -> None:
    """Run `sequst`. An error that a user can fix is shown as a message, without a traceback."""
    from sequst.cli.app import VERBS, make_app
    from sequst.cli.console import LogHandler, fail
    from sequst.errors import SequstError

    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    debug = "--debug" in sys.argv
    logger = logging.getLogger("sequst")
    logger.handlers = [LogHandler()]
    logger.setLevel(logging.DEBUG if debug else logging.INFO)
    named = [word for word in arguments[:1] if word in VERBS]
    try:
        make_app(named or VERBS)(args=arguments, prog_name="sequst")
    except Exception as error:
        if debug:
            raise
        if isinstance(error, SequstError):
            fail(str(error), error.exit_code)
        fail(f"{type(error).__name__}: {error}\nThis is a bug in sequst; --debug shows where. Please report it.", 1)
