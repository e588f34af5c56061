"""Make files that nobody meant: bytes or parts of JSON are changed, and a trial counts what becomes of them."""

from __future__ import annotations

import copy
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from sequst.errors import SequstError

T = TypeVar("T")

LONGEST = 10.0
"""Seconds of processor time that one input may take."""
WRONG: list[Any] = [
    None, True, -1, 0, 1, 7, 2**31, 10**12, 10**400, -0.5, 1e308, math.nan, math.inf, "", "x" * 5000, "../../etc/passwd",
    "\ud800", [], [[[]]], {}, {"a": 1}, [1, 2, 3],
]  # fmt: skip
PIECES = [
    b"", b"\0", b"\r", b"\n\n", b"\t", b" ", b'"', b"{", b"\xc2\x85", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xff" * 8, b"\x1b]0;", b"[" * 2000, b"9" * 5000, b"-1", b"1e999", b"NaN", b"null", b"*a", b"\0\0\x80",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all parts of a JSON value; of long lists and objects the first and last few."""
    yield path
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for key, part in items if len(items) < 40 else [*items[:2], *items[-2:]]:
        yield from places(part, (*path, key))


def with_part(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    if not path:
        return part
    changed = copy.copy(value)
    changed[path[0]] = with_part(value[path[0]], path[1:], part)
    return changed


def tampered(value: Any, rng: random.Random) -> bytes:
    """The JSON of a value, one part of it replaced by something else."""
    return json.dumps(with_part(value, rng.choice(list(places(value))), rng.choice(WRONG))).encode()


def _header(data: bytes) -> Any:
    """(the header of a file of safetensors, its weights); an error if it is none."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut out, put in, doubled; where a line or a header is JSON also a part of it."""
    if rng.random() < 0.4:
        try:
            header, weights = _header(data)
        except ValueError:
            pass
        else:
            header = tampered(header, rng)
            return len(header).to_bytes(8, "little") + header + weights
        lines = data.split(b"\n")
        number = rng.randrange(len(lines))
        try:
            lines[number] = tampered(json.loads(lines[number] if len(lines) > 1 and lines[1:] != [b""] else data), rng)
        except (ValueError, RecursionError):
            pass
        else:
            return b"\n".join(lines)
    for _ in range(rng.choice((1, 1, 1, 2, 6))):
        place, length, other = rng.randrange(len(data) + 1), rng.choice((0, 1, 1, 1, 4, 30)), rng.randrange(len(data) + 1)
        flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in data[place : place + 1])
        elsewhere = data[other : other + rng.choice((1, 4, 30, 200))]
        middle = rng.choice((rng.randbytes(length), rng.choice(PIECES), flipped, 2 * data[place : place + length], elsewhere))
        data = data[:place] + middle + data[place + length :]
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data


class Trial:
    """Reads inputs and counts what becomes of them, by kind. What is neither refused nor accepted is a finding."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, int]] = {}

    def __call__(self, kind: str, read: Callable[[], T]) -> tuple[T | None, str]:
        """(what is read, or the message of its error). It may take as long as `LONGEST`."""
        counts, begun = self.counts.setdefault(kind, dict.fromkeys(("tried", "accepted", "refused"), 0)), time.process_time()
        counts["tried"] += 1
        try:
            found, error = read(), ""
        except SequstError as caught:
            found, error = None, str(caught)
            assert 0 < len(error) < 2000
        took = time.process_time() - begun
        assert took < LONGEST, f"{kind} took {took:.0f} s"
        counts["refused" if error else "accepted"] += 1
        return found, error

    def refused(self, kind: str) -> int:
        return self.counts[kind]["refused"]
