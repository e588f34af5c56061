"""What `sequst serve` does when it is treated badly: a line for each fault, whether it was borne and what was seen.

python benchmarks/serving_faults.py MODEL [--json FILE] [--only GROUP ...] [--lines 200000]

MODEL is the folder of a tagger. Each group starts servers of its own, as processes, on loopback; every fault is bounded in
time. Exits with 1 if any is not borne. Linux alone: memory and descriptors are read from /proc.

- bodies: too large, too slow, cut off, no JSON, ambiguous or broken HTTP. Each is to be refused by one answer of 4xx with
  `{"error": "..."}`, or closed where there is nothing to answer; then a usual request is answered rightly. Memory, at its peak,
  is to grow by less than PEAK_MB.
- connections: idle ones, more than the process may have, pipelined requests, an upgrade that the server does not do
- crowd: 1,000 connections at once, each with a sentence
- hang_up: 200 requests of 50 sentences, dropped after 5 ms
- kill: kill -9 and a new start, three times, while 8 threads ask by `sequst.Client`
- terminate: SIGTERM under load
- reload: SIGHUP and POST /v1/reload under load, with damaged models and with a good one
- slow: clients that ask for 5 MB and do not read them, and one that reads slowly
- stream: --lines lines in one request; clients that stop to read, to send, or to be
- hogs: requests that are as large as may be. Others are to be answered meanwhile.
- label_studio: what somebody can send to the ML backend of Label Studio

That the log tells of no fault of ours is looked at after each group. Answers are right where they are those of `Tagger.predict`
in this process.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import http.client
import itertools
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common

from sequst import Client, SequstError, Tagger
from sequst.corpus.generated import generate
from sequst.service.schemas import MOST_IN_TEXT, MOST_UNCERTAIN
from sequst.tagger.prediction import Prediction

PEAK_MB = 600
"""By which the memory of the server may grow, at its peak, for one bad request."""
GROWTH_MB = 150
"""By which it may have grown after a group."""
STREAM_MB = 50
"""By which it may grow after the first tenth of a long stream."""
TAKEN_MB = 32
"""Of headers that never end; the kernel alone takes some."""
AT_ONCE = 1000
PROMPT = 2.0
"""Seconds for a request of one sentence while others want a lot."""
READY = 90.0
"""Seconds for a server to start, or to load a model."""
TOKEN = "0123456789abcdef0123456789abcdef"
INTERFACE = '<View><Labels name="l" toName="t"><Label value="TYPE"/></Labels><Text name="t" value="$text"/></View>'
JSON = "application/json"
LINES = "application/x-ndjson"


# ---------------------------------------------------------------------------------------------------------------- what is told


@dataclass
class Bench:
    """What is tried with one model, and what was found."""

    model: Path
    folder: Path
    lines: int
    tagger: Tagger
    found: list[dict[str, Any]] = field(default_factory=list)
    group: str = ""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def tell(self, fault: str, passed: bool, seen: str) -> None:
        self.found.append({"group": self.group, "fault": fault, "passed": passed, "seen": seen})
        print(f"{'pass' if passed else 'FAIL'}  {self.group}: {fault}: {seen}", flush=True)

    @contextlib.contextmanager
    def server(self, *options: str, model: Path | None = None, most_files: int | None = None) -> Iterator[Server]:
        """One that is there until the end of the block. Its log is looked at then."""
        log = self.folder / f"{self.group}-{next(self._numbers)}.log"
        server = Server(model or self.model, log, options, most_files)
        try:
            server.start()
            yield server
        finally:
            server.kill()
            told = re.findall(r"^(?:Traceback.*|[\w.]*(?:Error|Exception)\b.*|.*bug in sequst.*)", server.told(), re.MULTILINE)
            self.tell("the log has no fault of ours", not told, f"{len(told)} such lines: {Counter(told).most_common(3)}")

    def texts(self, count: int, seed: int = 0) -> list[str]:
        """Different texts, numbered."""
        sentences = generate(seed=seed, pool=min(count, 300), test=0).pool
        return [f"{' '.join(sentences[n % len(sentences)].words)} ({n})" for n in range(count)]

    def expected(self, texts: Sequence[str], tagger: Tagger | None = None) -> list[Prediction]:
        found = (tagger or self.tagger).predict(list(texts))
        assert isinstance(found, list)
        return found


@dataclass
class Server:
    """`sequst serve` as a process."""

    model: Path
    log: Path
    options: Sequence[str] = ()
    most_files: int | None = None
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    idle: int = 0
    """Sockets that it has when nobody asks."""

    def start(self) -> None:
        """Begin, at the port of before; return when it is ready."""
        command = [sys.executable, "-m", "sequst", "serve", str(self.model), "--port", str(self.port), "--device", "cpu"]

        def limit() -> None:
            if self.most_files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self.most_files, self.most_files))

        before = len(self.told())
        with self.log.open("ab") as log:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.process = subprocess.Popen([*command, *self.options], cwd=self.log.parent, preexec_fn=limit, **streams)
        end = time.monotonic() + READY
        while not (found := re.search(r"^serving .* at http://127\.0\.0\.1:(\d+);", self.told()[before:], re.MULTILINE)):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start: {self.told()[before:]}")
            time.sleep(0.02)
        self.port = int(found[1])
        self.idle = self.sockets()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def told(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def terminate(self, seconds: float) -> int | None:
        """Its exit code, or None where it went on for so long."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None

    def memory(self, name: str = "VmRSS") -> float:
        """MB that are resident, or were most with VmHWM."""
        found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1000 if found else float("nan")

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def sockets(self) -> int:
        """Connections that it has, and the sockets it listens at."""
        count = 0
        for each in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                count += str(each.readlink()).startswith("socket:")
        return count

    def left(self, seconds: float) -> tuple[int, float]:
        """(how many connections there are, after how many seconds): as soon as there are none, or at the end of the time."""
        begun = time.monotonic()
        while (count := self.sockets() - self.idle) > 0 and time.monotonic() - begun < seconds:
            time.sleep(0.1)
        return count, time.monotonic() - begun

    def metric(self, name: str) -> float:
        """A counter; 0 where there is none yet."""
        page = self.ask("/metrics", method="GET").body.decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def ask(self, path: str, body: Any = None, method: str = "POST", seconds: float = 20.0) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        with contextlib.closing(connection):
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": JSON, "Authorization": f"Bearer {TOKEN}"})
            response = connection.getresponse()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())

    def lone(self, text: str = "Anna flew to Oslo .") -> float:
        """Seconds for a request of one sentence."""
        begun = time.perf_counter()
        answer = self.ask("/v1/predict", {"texts": [text]}, seconds=40)
        assert answer.status == 200, answer
        return time.perf_counter() - begun

    def usual(self) -> float:
        """The median of a few."""
        return statistics.median(self.lone() for _ in range(20))


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def records(self) -> list[dict[str, Any]]:
        found = json.loads(self.body)["predictions"]
        assert isinstance(found, list)
        return found

    def error(self) -> str | None:
        """The message, where the body is an error as the service documents it."""
        if self.headers.get("content-type", "").partition(";")[0] != JSON:
            return None
        with contextlib.suppress(ValueError):
            found = json.loads(self.body)
            if isinstance(found, dict) and set(found) == {"error"} and isinstance(found["error"], str):
                return found["error"]
        return None


def right(record: dict[str, Any], expected: Prediction) -> bool:
    """Whether a record is the prediction. Probabilities differ by rounding, which depends on the batch."""
    mine, theirs = expected.to_dict(), record
    if any(theirs[name] != mine[name] for name in ("words", "tags")):
        return False
    pairs = list(zip(theirs["entities"], mine["entities"], strict=False))
    same = all(a[name] == b[name] for a, b in pairs for name in ("type", "start", "end", "start_char", "end_char", "text"))
    close = all(abs(a["confidence"] - b["confidence"]) < 1e-3 for a, b in pairs)
    return len(theirs["entities"]) == len(mine["entities"]) and same and close


def all_right(records: Sequence[dict[str, Any]], expected: Sequence[Prediction]) -> bool:
    return len(records) == len(expected) and all(map(right, records, expected))


def as_usual(bench: Bench, server: Server) -> str:
    """What is wrong with the answer to a usual request; nothing where it is right."""
    texts = bench.texts(3)
    try:
        answer = server.ask("/v1/predict", {"texts": texts}, seconds=10)
        if answer.status != 200:
            return f"a usual request then has {answer.status}"
        return "" if all_right(answer.records(), bench.expected(texts)) else "a usual request then has a wrong answer"
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        return f"a usual request then fails: {type(error).__name__} {error}"


# ----------------------------------------------------------------------------------------------------------------------- wires


def answers_in(data: bytes) -> list[Answer]:
    """Those that are there as a whole."""
    found: list[Answer] = []
    while b"\r\n\r\n" in data:
        head, _, rest = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split(" ")[1])
        if status == 100:
            data = rest
            continue
        if headers.get("transfer-encoding") == "chunked":
            body, whole = b"", False
            while b"\r\n" in rest:
                size, _, after = rest.partition(b"\r\n")
                length = int(size, 16)
                if len(after) < length + 2:
                    break
                body, rest, whole = body + after[:length], after[length + 2 :], length == 0
                if whole:
                    break
        else:
            length = int(headers.get("content-length", 0))
            body, whole, rest = rest[:length], len(rest) >= length, rest[length:]
        if not whole:
            break
        found.append(Answer(status, headers, body))
        data = rest
    return found


@dataclass
class Heard:
    """What a client saw of a connection."""

    answers: list[Answer]
    closed: bool
    seconds: float
    sent: int


def exchange(port: int, pieces: Iterable[bytes], seconds: float, still: float = 0.3, half_close: bool = False) -> Heard:
    """Send and read at the same time, until there is an answer and nothing came for `still` seconds, or the connection is
    closed, or the time is over. An empty piece is a pause. What is left when an answer is there is not sent."""
    begun = last = time.monotonic()
    source, piece, more, sent, closed, data = iter(pieces), b"", True, 0, False, bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as wire:
        wire.setblocking(False)
        answers: list[Answer] = []
        while (now := time.monotonic()) - begun < seconds and not closed:
            if answers and now - last > still:
                break
            if more and not piece and not answers:
                following = next(source, None)
                piece, more = following or b"", following is not None
                if not more and half_close:
                    wire.shutdown(socket.SHUT_WR)
            readable, writable, _ = select.select([wire], [wire] if piece and not answers else [], [], 0.02)
            try:
                if readable:
                    some = wire.recv(1 << 18)
                    closed, last = not some, now
                    data += some
                    answers = answers_in(bytes(data))
                if writable and not closed:
                    count = wire.send(piece)
                    piece, sent = piece[count:], sent + count
            except ConnectionError:
                closed = True
    return Heard(answers, closed, time.monotonic() - begun, sent)


def head(path: str = "/v1/predict", *lines: str, method: str = "POST", kind: str = JSON) -> bytes:
    fixed = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", f"Authorization: Bearer {TOKEN}"]
    return "\r\n".join([*fixed, *lines, "", ""]).encode()


def post(body: bytes | Any, path: str = "/v1/predict", *lines: str, kind: str = JSON) -> bytes:
    """A whole request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(path, f"Content-Length: {len(data)}", *lines, kind=kind) + data


def repeated(piece: bytes, megabytes: float) -> Iterator[bytes]:
    """So much of it, in large pieces."""
    block = piece * max(1, 1_000_000 // len(piece))
    for _ in range(int(megabytes * 1e6 / len(block))):
        yield block


def chunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def slowly(pieces: Iterable[bytes], every: float) -> Iterator[bytes]:
    """One each so many seconds."""
    for piece in pieces:
        yield piece
        until = time.monotonic() + every
        while time.monotonic() < until:
            yield b""


def single(data: bytes) -> Iterator[bytes]:
    return (data[n : n + 1] for n in range(len(data)))


class Unanswered(Exception):
    """The connection was refused, or closed before a byte of an answer."""


class Cut(Exception):
    """The connection was closed within an answer."""


async def connected(port: int) -> socket.socket:
    wire = socket.socket()
    wire.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(wire, ("127.0.0.1", port))
    except OSError as error:
        wire.close()
        raise Unanswered from error
    return wire


async def fetch(wire: socket.socket, data: bytes) -> Answer:
    loop, heard, found = asyncio.get_running_loop(), b"", list[Answer]()
    with contextlib.suppress(ConnectionError):
        await loop.sock_sendall(wire, data)
    with contextlib.suppress(ConnectionError):
        while not found and (piece := await loop.sock_recv(wire, 1 << 18)):
            heard += piece
            found = answers_in(heard)
    if found:
        return found[0]
    raise Cut(heard[-200:]) if heard else Unanswered


# ---------------------------------------------------------------------------------------------------------------------- bodies


@dataclass
class Attack:
    """A request that is to be refused: with one of the statuses, or by closing where that is fine."""

    name: str
    pieces: Callable[[], Iterable[bytes]]
    statuses: Collection[int] = ()
    may_close: bool = False
    seconds: float = 8.0
    half_close: bool = False
    most_sent: float | None = None
    """MB."""


def attacks() -> list[Attack]:
    text, coded, length = b'{"texts": ["Anna flew to Oslo."]}', "Transfer-Encoding: chunked", "Content-Length"
    in_chunks = head("/v1/predict", coded)
    first = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text)
    refused = range(400, 500)

    def long(name: str, start: bytes, rest: Callable[[], Iterable[bytes]], *statuses: int) -> Attack:
        return Attack(name, lambda: itertools.chain([start], rest()), statuses)

    def endless(name: str, start: bytes, rest: bytes, *statuses: int) -> Attack:
        pieces = lambda: itertools.chain([start], repeated(rest, 500))  # noqa: E731
        return Attack(name, pieces, (400, 431, *statuses), may_close=True, seconds=14, most_sent=TAKEN_MB)

    def body(name: str, data: bytes, *statuses: int, lines: Sequence[str] = ()) -> Attack:
        return Attack(name, lambda: [post(data, "/v1/predict", *lines)], statuses)

    def cut(name: str, data: bytes) -> Attack:
        return Attack(name, lambda: [data], refused, may_close=True, half_close=True)

    def raw(name: str, data: bytes) -> Attack:
        return Attack(name, lambda: [data], refused, may_close=True, seconds=14)

    def smuggled(name: str, *lines: str, rest: bytes = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") -> Attack:
        return raw(name, head("/v1/predict", *lines) + rest)

    return [
        long("50 MB with Content-Length", head("/v1/predict", f"{length}: 50000000"), lambda: repeated(b" ", 50), 413),
        long("50 MB in chunks, without Content-Length", in_chunks, lambda: chunked(repeated(b" ", 50)), 413),
        long("50 MB in one chunk", in_chunks + b"%x\r\n" % 50_000_000, lambda: repeated(b" ", 50), 413),
        long("a byte a second", head("/v1/predict", f"{length}: {len(text)}"), lambda: slowly(single(text), 1.0), 408),
        long("a chunk a second", in_chunks, lambda: slowly((b"1\r\n%s\r\n" % one for one in single(text)), 1.0), 408),
        long("no body after Expect", head("/v1/predict", f"{length}: 9", "Expect: 100-continue"), list, 408),
        cut("cut off in the middle", post(text)[:-9]),
        cut("cut off in the middle of a chunk", in_chunks + b'40\r\n{"texts": ['),
        body("not UTF-8", b'{"texts": ["\xff\xfe Oslo"]}', 422),
        body("not JSON", b"Anna flew to Oslo", 422),
        body("empty", b"", 422),
        body("no object", b'["Anna"]', 422),
        body("nested 100,000 deep", b'{"texts": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422),
        body("objects nested 100,000 deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 422),
        body("a gzip bomb", gzip.compress(bytes(50_000_000)), 415, lines=["Content-Encoding: gzip"]),
        body("a gzip bomb that does not say so", gzip.compress(bytes(50_000_000)), 422),
        body("10,001 texts", json.dumps({"texts": ["Oslo"] * 10_001}).encode(), 422),
        body("100,001 words", json.dumps({"sentences": [["a"] * 1000] * 100 + [["a"]]}).encode(), 422),
        body(
            "too many words with uncertainty",
            json.dumps({"sentences": [["a"] * (MOST_UNCERTAIN + 1)], "uncertainty": True}).encode(),
            422,
        ),
        body("a lone surrogate", b'{"texts": ["Oslo \\ud800"]}', 422),
        body("a lone surrogate in a word", b'{"sentences": [["Oslo", "\\udfff"]]}', 422),
        body("NaN", b'{"texts": ["Oslo"], "min_confidence": NaN}', 422),
        body("Infinity", b'{"texts": ["Oslo"], "min_confidence": -Infinity}', 422),
        body("a number of 5,000 digits", b'{"texts": ["Oslo"], "min_confidence": ' + b"9" * 5000 + b"}", 422),
        body("NUL, escaped", b'{"texts": ["Os\\u0000lo"]}', 422),
        body("NUL, as it is", b'{"texts": ["Os\0lo"]}', 422),
        body("1 MB without a space", json.dumps({"texts": ["x" * 1_000_000]}).encode(), 422),
        body("4,900,000 words", b'{"texts": ["' + b"a " * 4_900_000 + b'"]}', 422),
        body("3,200,000 sentences of no words", b'{"sentences": [' + b"[]," * 3_200_000 + b"[]]}", 422),
        body("1 MB without a space, of many scripts", json.dumps({"texts": ["aé中☃" * 250_000]}).encode(), 422),
        Attack("another type", lambda: [post(text).replace(JSON.encode(), b"text/plain")], (415,)),
        Attack("another host", lambda: [post(text).replace(b"localhost", b"evil.example")], (421,)),
        endless("headers that never end, fast", first, b"X-a: " + b"y" * 990 + b"\r\n"),
        endless("a header that never ends, fast", first + b"X-a: ", b"y"),
        endless("a path that never ends, fast", b"GET /", b"y", 414),
        endless("trailers that never end, fast", in_chunks + b"0\r\n", b"X-a: " + b"y" * 990 + b"\r\n", 408, 413),
        Attack("headers that never end, slowly", lambda: slowly([first, *[b"X-a: b\r\n"] * 20], 1.0), refused, True, 14),
        raw("a header of 64 KB", post(text, "/v1/predict", "X-a: " + "y" * 65_536)),
        raw("5,000 headers", post(text, "/v1/predict", *(f"X-{n}: {'y' * 20}" for n in range(5000)))),
        raw("no HTTP", b"\x00\x01\x02 what is this\r\n\r\n"),
        raw("TLS", bytes.fromhex("16030100c8010000c40303") + b"\x5a" * 200),
        raw("another version", b"GET /healthz HTTP/7.3\r\nHost: localhost\r\n\r\n"),
        raw("no host", b"GET /v1/model HTTP/1.1\r\n\r\n"),
        raw("a target without a path", b"GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        raw("a target that is no ASCII", b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        raw("NUL in a header", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-a: a\0b\r\n\r\n"),
        raw("a space before the colon", b"GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n"),
        raw("CONNECT", b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        smuggled("Content-Length and Transfer-Encoding", f"{length}: {len(chunks)}", coded, rest=chunks),
        smuggled("Transfer-Encoding and Content-Length", coded, f"{length}: 4"),
        smuggled("two Content-Lengths", f"{length}: 5", f"{length}: 46"),
        smuggled("a list of Content-Lengths", f"{length}: 5, 46"),
        smuggled("a Content-Length with a sign", f"{length}: +5"),
        smuggled("a Content-Length that is no number", f"{length}: 0x5"),
        smuggled("a Content-Length beyond all numbers", f"{length}: {'9' * 26}"),
        smuggled("a negative Content-Length", f"{length}: -5"),
        smuggled("an unknown Transfer-Encoding", "Transfer-Encoding: xchunked"),
        smuggled("chunked, and then something else", f"{coded}, identity"),
        smuggled("two Transfer-Encodings", coded, "Transfer-Encoding: identity"),
        smuggled("a space before the colon of Transfer-Encoding", "Transfer-Encoding : chunked"),
        smuggled("a chunk whose size is no number", coded, rest=b"zz\r\n" + chunks),
        smuggled("a chunk whose size is beyond all numbers", coded, rest=b"f" * 17 + b"\r\n" + chunks),
        smuggled("a chunk that is longer than it says", coded, rest=b"1\r\n" + text + b"\r\n0\r\n\r\n"),
    ]


def bodies(bench: Bench) -> None:
    with bench.server("--timeout", "3") as server:
        as_usual(bench, server)
        for attack in attacks():
            attacked(bench, server, attack)
        lenient(bench, server)
        by_client(bench, server)
        wrong = [bench.texts(1)[0]] * 2
        answer = server.ask("/v1/predict", {"texts": wrong})
        bench.tell("after all of them", all_right(answer.records(), bench.expected(wrong)), f"{server.memory():.0f} MB")


def attacked(bench: Bench, server: Server, attack: Attack) -> None:
    server.forget_peak()
    before = server.memory()
    heard = exchange(server.port, attack.pieces(), attack.seconds, half_close=attack.half_close)
    wrong = as_usual(bench, server)
    grown = server.memory("VmHWM") - before
    problems = [wrong] if wrong else []
    if heard.answers:
        answer = heard.answers[0]
        seen = f"{answer.status} {answer.body[:80].decode('utf-8', 'replace')!r}"
        if answer.status not in attack.statuses:
            problems.append("another status was expected")
        if answer.error() is None:
            problems.append("the answer is no JSON error")
        if len(heard.answers) > 1:
            problems.append(f"{len(heard.answers)} answers")
    else:
        seen = "closed" if heard.closed else "neither answered nor closed"
        if not (heard.closed and attack.may_close):
            problems.append("an answer was expected")
    if attack.most_sent is not None and heard.sent > attack.most_sent * 1e6:
        problems.append(f"more than {attack.most_sent:.0f} MB were taken")
    if grown > PEAK_MB:
        problems.append(f"more than {PEAK_MB} MB of memory")
    figures = f"{heard.seconds:.1f} s, {heard.sent / 1e6:.1f} MB sent, {grown:+.0f} MB"
    bench.tell(attack.name, not problems, "; ".join([f"{seen}, {figures}", *problems]))


def lenient(bench: Bench, server: Server) -> None:
    """What may be refused, and may be read as it is meant."""
    text = bench.texts(1)
    plain = post({"texts": text})
    odd = {
        "a header on two lines (obs-fold)": post({"texts": text}, "/v1/predict", "X-a: b\r\n c"),
        "line ends without CR": plain.replace(b"\r\n", b"\n"),
        "an empty line before the request": b"\r\n" + plain,
        "Content-Length twice, the same": post({"texts": text}, "/v1/predict", plain.split(b"\r\n")[4].decode()),
    }
    for name, request in odd.items():
        heard = exchange(server.port, [request], 14)
        answer = heard.answers[0] if len(heard.answers) == 1 else None
        fine = heard.closed and not heard.answers
        if answer is not None:
            fine = all_right(answer.records(), bench.expected(text)) if answer.status == 200 else answer.error() is not None
        wrong = as_usual(bench, server)
        seen = f"{answer.status} {answer.body[:60]!r}" if answer else f"{len(heard.answers)} answers, closed: {heard.closed}"
        bench.tell(name, fine and not wrong, f"{seen} {wrong}")


def by_client(bench: Bench, server: Server) -> None:
    """A client that sends all before it reads is to hear why it is refused, too."""
    client = Client(f"http://127.0.0.1:{server.port}", retries=0)
    begun = time.monotonic()
    try:
        client.predict([[f"{'x' * 900}"] * 55_000])
        seen = "an answer"
    except SequstError as error:
        seen = f"{type(error).__name__}: {str(error)[:120]}"
    wrong = as_usual(bench, server)
    fine = seen.startswith("UsageError") and "answers 413" in seen and not wrong
    bench.tell("50 MB by sequst.Client", fine, f"{seen}, {time.monotonic() - begun:.1f} s {wrong}")


# ----------------------------------------------------------------------------------------------------------------- connections


def connections(bench: Bench) -> None:
    with bench.server("--timeout", "3") as server:
        healthz = head("/healthz", method="GET")
        idle: dict[str, Callable[[], Iterable[bytes]]] = {
            "one that says nothing": list,
            "half a request": lambda: [healthz[:20]],
            "an empty line after an answer": lambda: [healthz],
            "an empty line each second after an answer": lambda: [healthz],
            "the rest of a body that nobody reads": lambda: [head("/v1/predict", "Content-Length: 50000000")],
        }
        after: dict[str, Callable[[], Iterable[bytes]]] = {
            "an empty line after an answer": lambda: [b"\r\n"],
            "an empty line each second after an answer": lambda: slowly(itertools.repeat(b"\r\n"), 1.0),
            "the rest of a body that nobody reads": lambda: slowly(itertools.repeat(b" "), 1.0),
        }
        found: dict[str, tuple[bool, float]] = {}

        def hold(name: str) -> None:
            begun = time.monotonic()
            found[name] = held(server.port, idle[name](), after.get(name, list)(), 18), time.monotonic() - begun

        threads = [threading.Thread(target=hold, args=(name,)) for name in idle]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, (closed, seconds) in found.items():
            bench.tell(f"idle: {name}", closed, f"{'closed' if closed else 'still open'} after {seconds:.1f} s")
        pipelined(bench, server)
        upgraded(bench, server)
        broken_off(bench, server)
    with bench.server("--timeout", "3", most_files=128) as server:
        wires = []
        for _ in range(300):
            wire = socket.socket()
            wire.setblocking(False)
            wire.connect_ex(("127.0.0.1", server.port))
            wires.append(wire)
        time.sleep(3)
        for wire in wires:
            wire.close()
        begun, wrong = time.monotonic(), "no answer"
        while wrong and time.monotonic() - begun < 15:
            wrong = as_usual(bench, server)
        seen = wrong or f"as usual {time.monotonic() - begun:.1f} s after"
        bench.tell("300 connections where 128 files may be open", not wrong, seen)


def held(port: int, first: Iterable[bytes], then: Iterable[bytes], seconds: float) -> bool:
    """Whether the server closes a connection on which this is sent, and that after the first answer."""
    end, source, turned = time.monotonic() + seconds, iter(first), False
    with socket.create_connection(("127.0.0.1", port)) as wire:
        wire.settimeout(0.05)
        while time.monotonic() < end:
            try:
                if piece := next(source, b""):
                    wire.sendall(piece)
                with contextlib.suppress(TimeoutError):
                    if not wire.recv(65_536):
                        return True
                    if not turned:
                        source, turned = iter(then), True
            except ConnectionError:
                return True
    return False


def pipelined(bench: Bench, server: Server) -> None:
    texts = bench.texts(20)
    heard = exchange(server.port, [b"".join(post({"texts": [text]}) for text in texts)], 20, still=2.0)
    records = [record for answer in heard.answers for record in (answer.records() if answer.status == 200 else [])]
    bench.tell("20 pipelined requests", all_right(records, bench.expected(texts)), f"{len(records)} answers, in order")
    many = 3000
    data = head("/healthz", method="GET") * many + head("/healthz?last", "Connection: close", method="GET")
    taken = bytearray()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as wire:

        def send() -> None:
            with contextlib.suppress(OSError):
                wire.sendall(data)

        sender = threading.Thread(target=send)
        sender.start()
        with contextlib.suppress(OSError):
            while some := wire.recv(1 << 18):
                taken += some
        sender.join()
    answers = Counter(answer.status for answer in answers_in(bytes(taken)))
    bench.tell(f"{many:,} pipelined requests at once", answers == {200: many + 1}, f"answers by status: {dict(answers)}")


def broken_off(bench: Bench, server: Server) -> None:
    """Requests under way, and then no HTTP: answers as a whole, and then one of 400, or the connection is closed."""
    long = post({"texts": bench.texts(150)})
    heard = exchange(server.port, [long + head("/healthz", method="GET") + b"\x00 no HTTP\r\n\r\n"], 8, still=2.0)
    seen = [answer.status for answer in heard.answers]
    wrong = as_usual(bench, server)
    fine = seen in ([], [400], [200, 400], [200, 200, 400]) and (heard.closed or bool(seen)) and not wrong
    bench.tell("no HTTP after two requests", fine, f"answers {seen}, closed: {heard.closed} {wrong}")


def upgraded(bench: Bench, server: Server) -> None:
    """`curl --http2` and the client of Java ask for that; a server that does not know it answers as if they had not."""
    text = bench.texts(1)
    settings = base64.urlsafe_b64encode(b"\0\3\0\0\0\x64").decode()
    lines = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", f"HTTP2-Settings: {settings}")
    heard = exchange(server.port, [post({"texts": text}, "/v1/predict", *lines)], 8)
    answer = heard.answers[0] if heard.answers else Answer(0, {}, b"")
    fine = answer.status == 200 and all_right(answer.records(), bench.expected(text))
    bench.tell("Upgrade: h2c with a body", fine, f"{answer.status} {answer.body[:90]!r}")


# ----------------------------------------------------------------------------------------------------------------------- crowd


def crowd(bench: Bench) -> None:
    texts = bench.texts(AT_ONCE)
    expected = bench.expected(texts)
    with bench.server() as server:
        usual, memory, begun = server.usual(), server.memory(), time.monotonic()
        seen = asyncio.run(crowded(server.port, texts, expected))
        seconds = time.monotonic() - begun
        fine = set(seen) <= {"right", "503 with Retry-After"} and sum(seen.values()) == AT_ONCE and seen["right"] > 0
        bench.tell(f"{AT_ONCE} connections at once", fine, f"{dict(seen)} in {seconds:.1f} s")
        recovered(bench, server, usual, memory)


async def crowded(port: int, texts: Sequence[str], expected: Sequence[Prediction]) -> Counter[str]:
    begin = asyncio.Event()

    async def one(number: int) -> str:
        try:
            wire = await connected(port)
            with wire:
                await begin.wait()
                async with asyncio.timeout(60):
                    answer = await fetch(wire, post({"texts": [texts[number]]}))
        except (Unanswered, Cut, TimeoutError) as error:
            return type(error).__name__
        if answer.status == 503:
            return "503 with Retry-After" if answer.headers.get("retry-after", "").isdigit() else "503 without Retry-After"
        if answer.status != 200:
            return str(answer.status)
        return "right" if all_right(answer.records(), expected[number : number + 1]) else "wrong"

    tasks = [asyncio.create_task(one(number)) for number in range(len(texts))]
    await asyncio.sleep(1)
    begin.set()
    return Counter(await asyncio.gather(*tasks))


def recovered(bench: Bench, server: Server, usual: float, memory: float) -> None:
    """Soon a lone request takes as long as before, no connection is left, and no more memory."""
    begun = time.monotonic()
    while (now := statistics.median(server.lone() for _ in range(3))) > max(3 * usual, usual + 0.05):
        if time.monotonic() - begun > 5:
            break
    seconds = time.monotonic() - begun
    told = f"{now * 1000:.0f} ms, {usual * 1000:.0f} ms before, {seconds:.1f} s after"
    bench.tell("a lone request is as fast as before", seconds <= 5, told)
    count, seconds = server.left(8)
    bench.tell("no connection is left", count <= 0, f"{count} after {seconds:.1f} s")
    grown = server.memory() - memory
    bench.tell(f"memory has grown by less than {GROWTH_MB} MB", grown < GROWTH_MB, f"{grown:+.0f} MB")
    wrong = as_usual(bench, server)
    bench.tell("a usual request", not wrong, wrong or "right")


# --------------------------------------------------------------------------------------------------------------------- hang_up


def hang_up(bench: Bench) -> None:
    request = post({"texts": bench.texts(50)})
    with bench.server() as server:
        usual, memory, before = server.usual(), server.memory(), server.metric("sequst_sentences_total")
        asyncio.run(dropped(server.port, request, 200))
        time.sleep(0.5)
        recovered(bench, server, usual, memory)
        done = server.metric("sequst_sentences_total") - before
        bench.tell("the work of the dropped is left", done < 2000, f"{done:,.0f} of 10,000 sentences were tagged")
        waiting = server.metric("sequst_queue_requests")
        bench.tell("none of them waits", waiting == 0, f"{waiting:.0f} wait")
        failed = server.metric('sequst_requests_total{path="/v1/predict",status="500"}')
        bench.tell("none counts as a fault of the server", failed == 0, f"{failed:.0f} of them count as status 500")


async def dropped(port: int, request: bytes, count: int) -> None:
    async def one(number: int) -> None:
        wire = await connected(port)
        if number % 2:  # with a reset, or by the book
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with wire:
            await asyncio.get_running_loop().sock_sendall(wire, request)
            await asyncio.sleep(0.005)

    await asyncio.gather(*(one(number) for number in range(count)))


# ------------------------------------------------------------------------------------------------------------------------ kill


def kill(bench: Bench) -> None:
    """The server is killed when a quarter, a half and three quarters of the requests have been answered."""
    texts = bench.texts(2400)
    expected = bench.expected(texts)
    answered: list[list[Prediction]] = [[] for _ in texts]
    failed: list[str] = []
    numbers, lock = itertools.count(), threading.Lock()
    with bench.server() as server:
        client = Client(f"http://127.0.0.1:{server.port}", retries=20)

        def ask() -> None:
            while True:
                with lock:
                    number = next(numbers)
                if number >= len(texts):
                    return
                try:
                    found = client.predict(texts[number])
                except Exception as error:
                    failed.append(f"{type(error).__name__}: {error}")
                    continue
                assert isinstance(found, Prediction)
                with lock:
                    answered[number].append(found)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        kills = 0
        while any(thread.is_alive() for thread in threads):
            done = sum(map(len, answered))
            if kills < 3 and done >= len(texts) * (kills + 1) // 4:
                server.kill()
                server.start()
                kills += 1
            time.sleep(0.01)
        seconds = time.monotonic() - begun
    lost, double = sum(not found for found in answered), sum(len(found) > 1 for found in answered)
    wrong = sum(
        found.tags != one.tags
        or found.words != one.words
        or [entity[:4] for entity in found.entities] != [entity[:4] for entity in one.entities]
        or max((abs(a - b) for a, b in zip(found.confidences, one.confidences, strict=True)), default=0) > 1e-3
        for some, one in zip(answered, expected, strict=True)
        for found in some
    )
    told = f"{len(texts)} requests, {kills} kills, {seconds:.0f} s: {lost} lost, {double} double, {wrong} wrong, {failed[:2]}"
    bench.tell("kill -9 under load", kills == 3 and not (lost or double or wrong or failed), told)


# ------------------------------------------------------------------------------------------------------------------- terminate


def terminate(bench: Bench) -> None:
    texts = bench.texts(400)
    expected = bench.expected(texts)
    with bench.server("--timeout", "8") as server:
        seen, code, seconds = asyncio.run(terminated(server, texts, expected))
        bench.tell("SIGTERM: requests", set(seen) <= {"right", "refused"} and seen["right"] > 0, f"{dict(seen)}")
        bench.tell("SIGTERM: the process", code == 0 and seconds < 10, f"exit code {code} after {seconds:.1f} s, --timeout 8")
    hard: dict[str, bytes] = {
        "an idle connection": head("/healthz", method="GET"),
        "a model that is being loaded": head("/healthz", method="GET"),
        "a body that does not come": head("/v1/predict", "Content-Length: 9"),
        "a stream that goes on": begin_stream(b'{"text": "In Oslo."}\n'),
        "a batch that takes long": post({"sentences": [["a"] * 50] * (MOST_UNCERTAIN // 50), "uncertainty": True}),
    }
    for name, data in hard.items():
        with bench.server("--timeout", "3") as server, socket.create_connection(("127.0.0.1", server.port)) as wire:
            wire.sendall(data)
            time.sleep(1)
            if name == "a model that is being loaded":
                os.kill(server.pid, signal.SIGHUP)
                time.sleep(0.1)
            begun = time.monotonic()
            exit_code = server.terminate(20)
            seconds = time.monotonic() - begun
            told = f"exit code {exit_code} after {seconds:.1f} s, --timeout 3"
            bench.tell(f"SIGTERM, {name}", exit_code == 0 and seconds < 6, told)


async def terminated(
    server: Server, texts: Sequence[str], expected: Sequence[Prediction]
) -> tuple[Counter[str], int | None, float]:
    """(what became of each request, exit code, seconds until it ended)."""
    seen = Counter[str]()

    async def worker(number: int) -> None:
        at = number * 20
        while True:
            size = (1, 3, 40)[number % 3]
            at = (at + size) % (len(texts) - 40)
            try:
                wire = await connected(server.port)
            except Unanswered:
                seen["refused"] += 1
                return
            with wire:
                while True:
                    try:
                        async with asyncio.timeout(30):
                            answer = await fetch(wire, post({"texts": texts[at : at + size]}))
                    except (Unanswered, Cut, TimeoutError) as error:
                        seen["refused" if isinstance(error, Unanswered) else type(error).__name__] += 1
                        break
                    good = answer.status == 200 and all_right(answer.records(), expected[at : at + size])
                    seen["right" if good else str(answer.status)] += 1
                    if answer.headers.get("connection") == "close":
                        break

    async def streamer() -> None:
        """A stream that was begun is answered to its end."""
        wire = await connected(server.port)
        lines = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)
        with wire:
            try:
                answer = await fetch(wire, post(lines, "/v1/stream", kind=LINES))
            except (Unanswered, Cut) as error:
                seen[f"{type(error).__name__} stream"] += 1
                return
        good = all_right([json.loads(line) for line in answer.body.splitlines()], expected)
        seen["right" if good else "wrong stream"] += 1

    workers = [asyncio.create_task(worker(number)) for number in range(12)]
    await asyncio.sleep(2)
    workers.append(asyncio.create_task(streamer()))
    await asyncio.sleep(0.2)
    begun = time.monotonic()
    code = await asyncio.to_thread(server.terminate, 20)
    seconds = time.monotonic() - begun
    await asyncio.gather(*workers)
    return seen, code, seconds


# ---------------------------------------------------------------------------------------------------------------------- reload


def renamed_types(folder: Path) -> None:
    """Make the model another: its types have other names, and have changed places."""
    config, facts = (json.loads((folder / name).read_text()) for name in ("config.json", "sequst.json"))
    types = sorted({label[2:] for label in config["label2id"] if label != "O"})
    other = {type_: f"new-{types[number - 1]}" for number, type_ in enumerate(types)}
    labels = {label: label[:2] + other[label[2:]] for label in config["label2id"] if label != "O"}

    def renamed(value: Any, names: Mapping[str, str]) -> Any:
        if isinstance(value, dict):
            return {names.get(name, name): renamed(each, other if name == "types" else names) for name, each in value.items()}
        if isinstance(value, list):
            return [renamed(each, names) for each in value]
        return names.get(value, value) if isinstance(value, str) else value

    for name, found in (("config.json", config), ("sequst.json", facts)):
        (folder / name).write_text(json.dumps(renamed(found, labels)))


def damaged(folder: Path) -> dict[str, Callable[[], object]]:
    weights, config = folder / "model.safetensors", folder / "config.json"

    def cut() -> None:
        os.truncate(weights, weights.stat().st_size // 2)

    def noise() -> None:
        with weights.open("r+b") as file:
            file.write(b"\xff" * 64)

    def empty() -> None:
        for each in folder.iterdir():
            each.unlink()

    def relabel(change: Callable[[list[str]], list[str]]) -> None:
        found, facts = json.loads(config.read_text()), json.loads((folder / "sequst.json").read_text())
        facts["labels"] = change([label for _, label in sorted(found["id2label"].items(), key=lambda each: int(each[0]))])
        found["id2label"] = {str(number): label for number, label in enumerate(facts["labels"])}
        found["label2id"] = {label: number for number, label in enumerate(facts["labels"])}
        config.write_text(json.dumps(found))
        (folder / "sequst.json").write_text(json.dumps(facts))

    return {
        "truncated weights": cut,
        "weights with a broken head": noise,
        "no weights": weights.unlink,
        "no config": config.unlink,
        "a config that is no JSON": lambda: config.write_text('{"model_type": '),
        "a label too few": lambda: relabel(lambda labels: labels[:-1]),
        "labels that are no tags": lambda: relabel(lambda labels: [f"LABEL_{number}" for number in range(len(labels))]),
        "labels of another file": lambda: config.write_text(config.read_text().replace('"B-', '"B-other-')),
        "an empty folder": empty,
    }


class Load:
    """Threads that ask for 40 sentences at a time. Not one request may fail, and each answer is wholly of one model."""

    def __init__(self, server: Server, texts: Sequence[str], models: dict[str, list[Prediction]]) -> None:
        self.seen: Counter[str] = Counter()
        """Answers by model."""
        self.failed: list[str] = []
        self.order: list[tuple[float, float, str]] = []
        """(begun, ended, model)."""
        self._texts, self._models, self._stopping = texts, models, threading.Event()
        self._client = Client(f"http://127.0.0.1:{server.port}", TOKEN, retries=0)
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(4)]
        for thread in self._threads:
            thread.start()

    def _ask(self, at: int) -> None:
        while not self._stopping.is_set():
            at = (at + 7) % (len(self._texts) - 40)
            begun = time.monotonic()
            try:
                found = self._client.predict(list(self._texts[at : at + 40]))
            except Exception as error:
                self.failed.append(f"{type(error).__name__}: {str(error)[:200]}")
                continue
            assert isinstance(found, list)
            records = [each.to_dict() for each in found]
            plain = {name: [one.to_dict()["tags"] for one in some[at : at + 40]] for name, some in self._models.items()}
            names = [name for name, tags in plain.items() if tags == [record["tags"] for record in records]]
            name = names[0] if names else "neither"
            self.seen[name] += 1
            self.order.append((begun, time.monotonic(), name))

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()


def reload(bench: Bench) -> None:
    place, good, new = bench.folder / "served", bench.folder / "good", bench.folder / "new"
    for folder in (good, new):
        shutil.copytree(bench.model, folder)
    renamed_types(new)
    texts = bench.texts(400)
    models = {"old": bench.expected(texts), "new": bench.expected(texts, Tagger.load(new, "cpu"))}
    token = bench.folder / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    good.rename(place)
    with bench.server("--token-file", str(token), model=place) as server:
        version = json.loads(server.ask("/v1/model", method="GET").body)["model_version"]
        for name in damaged(place):
            broken = bench.folder / "broken"
            shutil.copytree(bench.model, broken)
            damaged(broken)[name]()
            load = Load(server, texts, models)
            place.rename(good)
            broken.rename(place)
            before, failures = len(server.told()), server.metric('sequst_reloads_total{result="failed"}')
            os.kill(server.pid, signal.SIGHUP)
            waited = until(lambda: server.metric('sequst_reloads_total{result="failed"}') > failures, READY)  # noqa: B023
            by_http = server.ask("/v1/reload", seconds=READY)
            time.sleep(0.5)
            load.stop()
            shutil.rmtree(place)
            good.rename(place)
            told = server.told()[before:]
            why = re.search(r"the old model stays: (.{10,})", told)
            now = json.loads(server.ask("/v1/model", method="GET").body)["model_version"]
            fine = (
                waited and why is not None and "Traceback" not in told and set(load.seen) == {"old"} and not load.failed
                and by_http.status == 409 and by_http.error() is not None and now == version
            )  # fmt: skip
            seen = f"{dict(load.seen)}, {len(load.failed)} failed {load.failed[:1]}; by HTTP {by_http.status}; "
            bench.tell(f"reload with {name}", fine, seen + (f"the log: {why[1][:160]}" if why else f"the log: {told[:300]!r}"))
        load = Load(server, texts, models)
        time.sleep(1)
        place.rename(good)
        new.rename(place)
        os.kill(server.pid, signal.SIGHUP)
        switched = until(lambda: server.metric('sequst_reloads_total{result="loaded"}') > 0, READY)
        at = time.monotonic()
        time.sleep(1.5)
        load.stop()
        late = Counter(name for begun, _, name in load.order if begun > at)
        fine = switched and set(load.seen) == {"old", "new"} and not load.failed and set(late) == {"new"}
        slowest = max(ended - begun for begun, ended, _ in load.order)
        told = f"{dict(load.seen)}, then {dict(late)}, {len(load.failed)} failed {load.failed[:1]}, slowest {slowest:.2f} s"
        bench.tell("reload with another model", fine, told)
        reloaded_often(bench, server, Load(server, texts, {"new": models["new"]}))
        load = Load(server, texts, {"new": models["new"]})
        for each in place.iterdir():
            os.truncate(each, 0)
        time.sleep(1)
        load.stop()
        alive = server.process is not None and server.process.poll() is None
        fine = alive and set(load.seen) == {"new"} and not load.failed
        bench.tell(
            "the files of the model are emptied", fine, f"{dict(load.seen)}, {len(load.failed)} failed {load.failed[:1]}"
        )


def reloaded_often(bench: Bench, server: Server, load: Load) -> None:
    """Old models are forgotten; signals that come while one is loaded do no harm."""
    loaded, memory = 'sequst_reloads_total{result="loaded"}', list[float]()
    for _ in range(8):
        before = server.metric(loaded)
        for _ in range(5):
            os.kill(server.pid, signal.SIGHUP)
        until(lambda: server.metric(loaded) > before, READY)  # noqa: B023
        memory.append(server.memory())
    load.stop()
    grown = memory[-1] - memory[1]
    fine = set(load.seen) == {"new"} and not load.failed and grown < GROWTH_MB
    told = f"{dict(load.seen)}, {len(load.failed)} failed {load.failed[:1]}; {grown:+.0f} MB from the second to the last"
    bench.tell("8 times, by 40 signals", fine, told)


def until(holds: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


# ------------------------------------------------------------------------------------------------------------------------ slow


def slow(bench: Bench) -> None:
    sentences = [["\1" * 900] * 20] * 24  # of which JSON makes six characters each
    request = post({"sentences": sentences})
    with bench.server("--timeout", "3") as server:
        whole = server.ask("/v1/predict", {"sentences": sentences})
        size = len(whole.body)
        bench.tell("an answer of 5 MB", whole.status == 200 and size > 5_000_000, f"{whole.status}, {size:,} bytes")
        usual, memory = server.usual(), server.memory()
        wires = []
        for _ in range(6):
            wire = socket.socket()
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            wire.connect(("127.0.0.1", server.port))
            wire.sendall(request)
            select.select([wire], [], [], 10)
            wires.append(wire)
        most = server.memory() - memory
        count, seconds = server.left(10)
        told = f"{most:+.0f} MB; {count} of them are left after {seconds:.1f} s, --timeout 3"
        bench.tell(f"6 clients that read nothing of {size / 1e6:.0f} MB", count <= 0, told)
        for wire in wires:
            wire.close()
        recovered(bench, server, usual, memory)
        wires = []
        for count in range(1, 25):  # of some of them the kernel takes all but a little
            wire = socket.socket()
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            wire.connect(("127.0.0.1", server.port))
            wire.sendall(post({"sentences": [["\1" * 160] * 20] * (90 + 2 * count)}))
            select.select([wire], [], [], 10)
            wires.append(wire)
        count, seconds = server.left(12)
        told = f"{count} of them are left after {seconds:.1f} s, --timeout 3"
        bench.tell("24 clients that read nothing of 1.9 to 2.8 MB", count <= 0, told)
        for wire in wires:
            wire.close()
        taken, seconds = read_slowly(server.port, request, size, 500_000)
        told = f"{taken:,} of {size:,} bytes in {seconds:.1f} s"
        bench.tell("a client that reads 0.5 MB a second has it all", taken >= size, told)


def read_slowly(port: int, request: bytes, size: int, rate: float) -> tuple[int, float]:
    begun, taken = time.monotonic(), 0
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        wire.connect(("127.0.0.1", port))
        wire.settimeout(10)
        wire.sendall(request)
        with contextlib.suppress(OSError):
            while taken < size and (some := wire.recv(50_000)):
                taken += len(some)
                time.sleep(len(some) / rate)
    return taken, time.monotonic() - begun


# ---------------------------------------------------------------------------------------------------------------------- stream


def stream(bench: Bench) -> None:
    texts = bench.texts(50)
    expected = bench.expected(texts)
    with bench.server("--timeout", "3") as server:
        problems, seconds, memory = asyncio.run(streamed(server, bench.lines, texts, expected))
        calm = memory[len(memory) // 10 :] or memory
        grown = max(calm) - calm[0]
        told = f"{seconds:.0f} s, {bench.lines / seconds:,.0f} lines a second, {calm[0]:.0f} MB, {grown:+.0f} MB at most"
        bench.tell(f"{bench.lines:,} lines", not problems and grown < STREAM_MB, f"{told} {'; '.join(problems)}")
        for name, act in {"stops to read": unread, "stops to send": unsent, "is gone": gone}.items():
            fine, told, wire = act(server)
            count, seconds = server.left(10)
            wrong = as_usual(bench, server)
            told += f"; {count} connections are left after {seconds:.1f} s, --timeout 3 {wrong}"
            bench.tell(f"a client that {name}", fine and count <= 0 and not wrong, told)
            wire.close()


def line_of(number: int, texts: Sequence[str]) -> bytes:
    """One in 20 has a sentence; one in 1,000 is no JSON; the others have no words, which costs the model nothing."""
    if number % 1000 == 999:
        return b'{"text": \n'
    if number % 20 == 0:
        return json.dumps({"text": texts[number // 20 % len(texts)], "id": number}).encode() + b"\n"
    return b'{"words": [], "id": %d, "note": "%s"}\n' % (number, b"x" * 200)


async def streamed(
    server: Server, count: int, texts: Sequence[str], expected: Sequence[Prediction]
) -> tuple[list[str], float, list[float]]:
    """(what is wrong with the answers, seconds, MB of the server meanwhile)."""
    problems, memory, begun, done = list[str](), list[float](), time.monotonic(), asyncio.Event()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 22)

    async def send() -> None:
        writer.write(head("/v1/stream", "Transfer-Encoding: chunked", kind=LINES))
        for start in range(0, count, 200):
            data = b"".join(line_of(number, texts) for number in range(start, min(count, start + 200)))
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def read() -> None:
        top = await reader.readuntil(b"\r\n\r\n")
        if not top.startswith(b"HTTP/1.1 200"):
            problems.append(f"{top[:60]!r}")
            return
        number, rest = 0, b""
        while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
            *lines, rest = (rest + (await reader.readexactly(size + 2))[:-2]).split(b"\n")
            for line in lines:
                found = json.loads(line)
                if number % 1000 == 999:
                    fine = found.get("line") == number + 1 and "error" in found
                elif number % 20 == 0:
                    fine = found["id"] == number and right(found, expected[number // 20 % len(texts)])
                else:
                    fine = found["id"] == number and found["tags"] == []
                if not fine and len(problems) < 3:
                    problems.append(f"line {number}: {line[:100]!r}")
                number += 1
        if number != count or rest:
            problems.append(f"{number:,} answers")

    async def watch() -> None:
        while not done.is_set():
            memory.append(server.memory())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), 0.1)

    watching = asyncio.create_task(watch())
    try:
        async with asyncio.timeout(600):
            await asyncio.gather(send(), read())
    except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
        problems.append(f"{type(error).__name__}: {error}")
    done.set()
    await watching
    writer.close()
    return problems, time.monotonic() - begun, memory


def begin_stream(lines: bytes) -> bytes:
    return head("/v1/stream", "Transfer-Encoding: chunked", kind=LINES) + b"%x\r\n%s\r\n" % (len(lines), lines)


def begun_stream(server: Server, lines: bytes) -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", server.port), timeout=15)
    wire.sendall(begin_stream(lines))
    return wire


def unread(server: Server) -> tuple[bool, str, socket.socket]:
    """It sends until nothing more is taken, and reads nothing."""
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    wire.connect(("127.0.0.1", server.port))
    wire.settimeout(1.0)
    block, sent = b'{"words": [], "id": "%s"}\n' % (b"x" * 500) * 500, 0
    wire.sendall(begin_stream(block))
    with contextlib.suppress(OSError):
        while sent < 200_000_000:
            wire.sendall(b"%x\r\n%s\r\n" % (len(block), block))
            sent += len(block)
    return sent < 100_000_000, f"{sent / 1e6:.0f} MB were taken", wire


def unsent(server: Server) -> tuple[bool, str, socket.socket]:
    """It sends 100 lines and half a line, and then nothing; it is to have 100 answers, and the end."""
    begun, data = time.monotonic(), b""
    wire = begun_stream(server, b'{"text": "In Oslo."}\n' * 100 + b'{"text": ')
    with contextlib.suppress(OSError):
        while not data.endswith(b"\r\n0\r\n\r\n") and (some := wire.recv(65_536)):
            data += some
    seconds = time.monotonic() - begun
    lines = [json.loads(line) for answer in answers_in(data) for line in answer.body.splitlines()]
    told = f"{len(lines)} lines after {seconds:.1f} s, the last: {str(lines[-1:])[:120]}"
    return len(lines) == 101 and "error" in lines[-1] and seconds < 6, told, wire


def gone(server: Server) -> tuple[bool, str, socket.socket]:
    """It closes the connection in the middle."""
    wire = begun_stream(server, b'{"text": "In Oslo."}\n' * 2000)
    wire.recv(100)
    wire.close()
    return True, "closed after the first answers", wire


# ------------------------------------------------------------------------------------------------------------------------ hogs


def hogs(bench: Bench) -> None:
    """While one client wants as much as it may, or more, a small request of another is answered within PROMPT."""
    words = ["Anna", "flew", "to", "Oslo", "on", "Friday", "."] * 20_000
    long, hundred = words[:2000], words[:MOST_IN_TEXT]
    uncertain = post((json.dumps({"words": long}) + "\n").encode() * 128, "/v1/stream?uncertainty=true", kind=LINES)
    line = [b'{"text": "', *repeated(b"a ", 9.9), b'"}\n']
    wanted: dict[str, Iterable[bytes]] = {
        "10,000 sentences of 10 words": [post({"sentences": [words[:10]] * 10_000})],
        f"a sentence of {MOST_IN_TEXT:,} words": [post({"sentences": [hundred]})],
        f"{MOST_UNCERTAIN:,} words with uncertainty": [
            post({"sentences": [words[:25]] * (MOST_UNCERTAIN // 25), "uncertainty": True})
        ],
        "a stream with uncertainty, 128 lines of 2,000 words": [uncertain],
        f"a line of {MOST_IN_TEXT:,} words in a stream": [
            post(json.dumps({"words": hundred}).encode() + b"\n", "/v1/stream", kind=LINES)
        ],
        "3 lines of 9 MB in a stream": [begin_stream(line[0]), *itertools.islice(chunked(line * 3), 1, None)],
    }
    for name, pieces in wanted.items():
        with bench.server() as server:
            hogged(bench, server, name, pieces)


def hogged(bench: Bench, server: Server, name: str, pieces: Iterable[bytes]) -> None:
    """10 seconds of small requests beside a large one; then its client is gone, and soon so is its work."""
    usual, stop = server.usual(), threading.Event()

    def hog() -> None:
        with socket.create_connection(("127.0.0.1", server.port)) as wire, contextlib.suppress(OSError):
            wire.settimeout(0.2)
            for piece in pieces:
                while piece and not stop.is_set():
                    with contextlib.suppress(TimeoutError):
                        piece = piece[wire.send(piece) :]
            stop.wait()

    thread = threading.Thread(target=hog)
    thread.start()
    time.sleep(0.5)
    taken, end = [], time.monotonic() + 10
    while time.monotonic() < end:
        taken.append(prompt(server, 12))
    stop.set()
    thread.join()
    time.sleep(1)
    afterwards = prompt(server, 12)
    told = f"others meanwhile {statistics.median(taken):.2f} s, at most {max(taken):.2f} s; after it {afterwards:.2f} s"
    bench.tell(name, max(taken) < PROMPT and afterwards < PROMPT, f"{told}; {usual:.2f} s before")


def prompt(server: Server, seconds: float) -> float:
    """Seconds of a small request, which has so many."""
    begun = time.monotonic()
    try:
        answer = server.ask("/v1/predict", {"texts": ["Anna flew to Oslo ."]}, seconds=seconds)
        return time.monotonic() - begun if answer.status == 200 else seconds
    except (OSError, http.client.HTTPException):
        return seconds


# ---------------------------------------------------------------------------------------------------------------- label_studio


def label_studio(bench: Bench) -> None:
    interface = INTERFACE.replace("TYPE", bench.tagger.types[0])

    def options(name: str) -> tuple[str, ...]:
        return "--timeout", "8", "--label-studio", "--labels", str(bench.folder / name)

    with bench.server(*options("labels")) as server:
        server.ask("/webhook", created(1, 1))
        for name, body in odd_events().items():
            refused(bench, server, f"an event with {name}", "/webhook", body)
        hidden = interface.replace("<View>", "<View>&b;", 1)
        declared = f'<?x <!-- ?><!DOCTYPE View [<!ENTITY b "declared">]>{hidden}<?y --> ?>'
        refused(bench, server, "an interface that hides its document type", "/setup", {"schema": declared})
        refused(bench, server, "an interface nested 300,000 deep", "/setup", {"schema": "<a>" * 300_000})
        grown: list[float] = []
        for number in range(12):
            padded = interface.replace("<View>", f"<View><!-- {number} -->" + " " * 9_000_000)
            server.ask("/setup", {"schema": padded})
            grown.append(server.memory() - grown[1] if len(grown) > 1 else server.memory())
        bench.tell("12 interfaces of 9 MB are not kept", grown[-1] < 50, f"{grown[-1]:+.0f} MB after the second")
    for number, (name, event) in enumerate(poison().items()):
        with bench.server(*options(f"labels-{number}")) as server:
            poisoned(bench, server, bench.folder / f"labels-{number}", name, event)
    many = {"label_config": interface, "tasks": [{"id": 1, "data": {"text": "Anna flew to Oslo . " * 100_000}}]}
    tasks = {"label_config": interface, "tasks": [{"id": number, "data": {"text": "Anna"}} for number in range(100_000)]}
    large: dict[str, tuple[str, Any]] = {
        "an interface of <!-- without end": ("/setup", {"schema": "<!--" * 30_000}),
        "a task of 500,000 words": ("/predict", many),
        "100,000 tasks": ("/predict", tasks),
    }
    for name, (path, body) in large.items():
        with bench.server(*options("labels")) as server:
            hogged(bench, server, name, [post(body, path)])
    with bench.server(*options("labels")) as server:
        server.forget_peak()
        before, written = server.memory(), len(server.told())
        body = b'{"label_config": %s, "tasks": [%s{}]}' % (json.dumps(interface).encode(), b"{}," * 3_000_000)
        heard = exchange(server.port, [post(body, "/predict")], 30)
        peak, written = server.memory("VmHWM") - before, len(server.told()) - written
        seen = f"{heard.answers[0].status if heard.answers else 'no answer'} after {heard.seconds:.1f} s"
        wrong = as_usual(bench, server)
        fine = bool(heard.answers) and heard.answers[0].status < 500 and peak < PEAK_MB and written < 1_000_000 and not wrong
        told = f"{seen}, {peak:+.0f} MB of memory, {written / 1e6:.1f} MB of log {wrong}"
        bench.tell("9 MB of tasks without data", fine, told)


def created(project: int, number: int, **changes: Any) -> dict[str, Any]:
    annotation = {"id": 1, "task": number, "result": []}
    event = {"action": "ANNOTATION_CREATED", "project": {"id": project}, "task": {"id": number, "data": {"text": "Oslo"}}}
    return {**event, "annotation": annotation, **changes}


def odd_events() -> dict[str, Any]:
    data = {"text": "Oslo"}
    return {
        "a task whose number is a list": created(1, 1, task={"id": [1], "data": data}),
        "an annotation whose task is a list": created(1, 1, annotation={"id": 1, "task": [1], "result": []}),
        "an annotation whose result is a number": created(1, 1, annotation={"id": 1, "task": 1, "result": 5}),
        "regions that are no objects": created(1, 1, annotation={"id": 1, "task": 1, "result": ["a", None]}),
        "deleted annotations whose number is a list": {
            "action": "ANNOTATIONS_DELETED", "project": {"id": 1}, "annotations": [{"id": []}],
        },
        "deleted tasks whose number is an object": {"action": "TASKS_DELETED", "project": {"id": 1}, "tasks": [{"id": {}}]},
    }  # fmt: skip


def poison() -> dict[str, Any]:
    """What cannot be written must not be kept, else nothing is written after it."""
    region = {"value": {"start": float("inf")}}
    return {
        "a project of a number of 400 digits": created(-(10**400), 1),
        "NaN in the data of a task": created(2, 1, task={"id": 1, "data": {"text": "Oslo", "meta": [float("nan")]}}),
        "infinity in a region": created(3, 1, annotation={"id": 1, "task": 1, "result": [region]}),
    }


def poisoned(bench: Bench, server: Server, folder: Path, name: str, event: Any) -> None:
    """An event that cannot be written is refused, or changed until it can; the next is written in any case."""
    answer = server.ask("/webhook", event)
    after = server.ask("/webhook", created(7, 1))
    strict, problems = json.JSONDecoder(parse_constant=lambda constant: 1 / 0), list[str]()
    for file in folder.glob("project-*.json"):
        try:
            strict.decode(file.read_text())
        except (ValueError, ZeroDivisionError) as error:
            problems.append(f"{file.name} is no JSON: {error}")
    if not (400 <= answer.status < 500 or answer.status == 200):
        problems.append("the event is neither taken nor refused")
    if answer.status == 200 and not (folder / f"project-{event['project']['id']}.json").is_file():
        problems.append("the event is taken, and not written")
    if after.status != 200 or not (folder / "project-7.json").is_file():
        problems.append(f"the labels of another project are not written then: {after.status} {after.body[:110]!r}")
    bench.tell(f"an event with {name}", not problems, "; ".join([f"{answer.status} {answer.body[:110]!r}", *problems]))


def refused(bench: Bench, server: Server, name: str, path: str, body: Any) -> None:
    """Answered with 4xx, or taken if it can be; not by a fault of ours."""
    begun = time.monotonic()
    try:
        answer = server.ask(path, body, seconds=8)
    except (OSError, http.client.HTTPException) as error:
        bench.tell(name, False, f"{type(error).__name__} after {time.monotonic() - begun:.1f} s")
        return
    fine = 400 <= answer.status < 500 and answer.error() is not None
    wrong = as_usual(bench, server)
    bench.tell(name, fine and not wrong, f"{answer.status} {answer.body[:110]!r} {wrong}")


GROUPS: dict[str, Callable[[Bench], None]] = {
    group.__name__: group
    for group in (bodies, connections, crowd, hang_up, kill, terminate, reload, slow, stream, hogs, label_studio)
}


def main() -> None:
    parser = common.parser(__doc__, lines=200_000)
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model.absolute()
        bench = Bench(model, Path(folder), options.lines, Tagger.load(model, "cpu"))
        for bench.group in options.only:
            started = time.monotonic()
            try:
                GROUPS[bench.group](bench)
            except Exception as error:
                bench.tell("the group was tried to its end", False, f"{type(error).__name__}: {error}")
            print(f"      {bench.group}: {time.monotonic() - started:.0f} s", flush=True)
    failed = [each for each in bench.found if not each["passed"]]
    seconds = time.monotonic() - begun
    print(f"{len(bench.found)} faults, {len(failed)} not borne, {seconds:.0f} s")
    if options.json is not None:
        told = {"faults": bench.found, "failed": len(failed), "seconds": seconds, **common.machine("cpu")}
        options.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
