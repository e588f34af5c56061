"""The command line: one file a verb. Parses, calls, prints; everything else is the library's."""

from __future__ import annotations

import errno
import io
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
    is_closed = sys.stdout is None
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
        getattr(sys, name).reconfigure(errors="backslashreplace")  # a terminal may know fewer letters than the data has
    if is_closed:
        fail("standard output is closed; send it to a file or to /dev/null", 2)
    try:
        make_app(named or VERBS)(args=arguments, prog_name="sequst")
    except Exception as error:
        if debug:
            raise
        if isinstance(error, SequstError):
            fail(str(error), error.exit_code)
        if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            fail(f"cannot write to standard output: {(error.strerror or 'it fails').lower()}", 1)
        fail(f"{type(error).__name__}: {error}\nThis is a bug in sequst; --debug shows where. Please report it.", 1)
