"""What serving costs: requests a second and how long they take, ours and the ways it is usually done, in one run.

python benchmarks/serving.py [--json FILE] [--encoder minilm] [--sentences N] [--seconds 10] [--repeats 3] [--minutes 30]

Every server runs in a process of its own on loopback and is asked for one sentence of CoNLL-03's training set at a time (of the
generated corpus without SEQUST_DATA). The clients are of this process.

- pipeline: FastAPI, and transformers' `pipeline("token-classification")` for each request, in FastAPI's threads (`def`)
- pipeline, async: the same in the event loop (`async def`), one request at a time
- naive batching: FastAPI, and a queue whose requests of 10 ms, 32 at most, are one call of the pipeline
- ours: `sequst serve`; and with `--precision bf16` on a CPU that has it

throughput: CLIENTS clients, each sends its next request when it has its answer; turn by turn, REPEATS times
lone: one client; beside it `Tagger.predict` of the same sentences in this process
steady: requests that come by chance, at 70 % of our highest throughput
cold start: seconds from nothing until /readyz answers, and until a process that only loads the model has it
soak: CLIENTS clients for `--minutes`, memory of the server each 10 seconds; 0 minutes leave it out

Before time is taken the answers of `ours` are compared with those of `Tagger.predict`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common
import numpy as np
import pydantic

CLIENTS = 32
STEADY = 0.7
BATCH, WAIT = 32, 0.01


class Text(pydantic.BaseModel):
    text: str


def rival(kind: str, model: str, port: int) -> None:
    """Serve as is usual; called in a process of its own."""
    import uvicorn
    from fastapi import FastAPI
    from transformers import pipeline

    tagger: Any = pipeline("token-classification", model=model, aggregation_strategy="simple", device="cpu")
    queue = asyncio.Queue[tuple[str, asyncio.Future[Any]]]()

    def plain(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**entity, "score": float(entity["score"])} for entity in found]

    async def batches() -> None:
        while True:
            asked = [await queue.get()]
            end = time.monotonic() + WAIT
            with contextlib.suppress(TimeoutError):
                while len(asked) < BATCH:
                    asked.append(await asyncio.wait_for(queue.get(), end - time.monotonic()))
            texts = [text for text, _ in asked]
            found = await asyncio.to_thread(tagger, texts, batch_size=len(texts))
            for (_, future), entities in zip(asked, found, strict=True):
                if not future.done():
                    future.set_result(entities)

    async def batched(asked: Text) -> list[dict[str, Any]]:
        future = asyncio.get_running_loop().create_future()
        await queue.put((asked.text, future))
        return plain(await future)

    async def in_loop(asked: Text) -> list[dict[str, Any]]:
        return plain(tagger(asked.text))

    def in_threads(asked: Text) -> list[dict[str, Any]]:
        return plain(tagger(asked.text))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(batches())
        yield
        task.cancel()

    app = FastAPI(lifespan=lifespan)
    route = {"pipeline": in_threads, "pipeline, async": in_loop, "naive batching": batched}[kind]
    app.post("/predict", response_model=None)(route)
    app.get("/readyz", response_model=None)(lambda: {"status": "ready"})
    uvicorn.run(app, port=port, log_level="error")


@dataclass
class Server:
    """A process that answers at a port."""

    command: list[str]
    path: str
    body: Callable[[str], Any]
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Seconds until it is ready."""
        self.port = free_port()
        begun = time.perf_counter()
        command = [part.replace("PORT", str(self.port)) for part in self.command]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                    return time.perf_counter() - begun
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"{' '.join(command)} ended") from None
                time.sleep(0.01)

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def request(self, text: str) -> bytes:
        body = json.dumps(self.body(text)).encode()
        head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    @property
    def megabytes(self) -> float:
        """What it has in memory."""
        assert self.process is not None
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def servers(model: str) -> dict[str, Server]:
    own = [sys.executable, "-m", "sequst", "serve", model, "--port", "PORT", "--timeout", "120", "--device", "cpu"]

    def ours(text: str) -> Any:
        return {"texts": [text]}

    found = {
        kind: Server(
            [sys.executable, __file__, "--rival", kind, "--model", model, "--port", "PORT"],
            "/predict",
            lambda text: {"text": text},
        )
        for kind in ("pipeline", "pipeline, async", "naive batching")
    }
    found["ours"] = Server(own, "/v1/predict", ours)
    import torch

    from sequst.tagger.precision import has_bf16

    if has_bf16(torch.device("cpu")):
        found["ours, bf16"] = Server([*own, "--precision", "bf16"], "/v1/predict", ours)
    return found


class Connection(asyncio.Protocol):
    """Sends a request and waits for its answer."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.data, self.length = transport, b"", -1
        self.answer: asyncio.Future[tuple[int, bytes]] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.answer

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if found and self.length < 0:
            self.length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if found and len(body) >= self.length and self.answer is not None:
            status = int(head[9:12])
            self.data, self.length = b"", -1
            self.answer.set_result((status, body))

    @property
    def is_open(self) -> bool:
        """Servers close connections that nobody uses."""
        return not self.transport.is_closing()

    def connection_lost(self, error: Exception | None) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionError("the server hung up"))


async def connected(server: Server) -> Connection:
    _, found = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", server.port)
    return found


@dataclass
class Load:
    """What clients saw."""

    milliseconds: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0

    async def ask(self, connection: Connection, request: bytes, begun: float) -> None:
        try:
            status, _ = await connection.ask(request)
        except OSError:
            status = 0
        self.errors += status != 200
        self.milliseconds.append((time.perf_counter() - begun) * 1000)

    def told(self) -> dict[str, float]:
        p50, p99 = np.percentile(self.milliseconds, [50, 99])
        rate = len(self.milliseconds) / self.seconds
        return {"requests_a_second": rate, "p50": float(p50), "p99": float(p99), "errors": self.errors}


async def closed(
    server: Server, requests: Sequence[bytes], clients: int, seconds: float, watch: Callable[[], None] = lambda: None
) -> Load:
    """Clients that ask again once they are answered. `watch` is called each 10 seconds."""
    load, end, begun = Load(), time.perf_counter() + seconds, time.perf_counter()

    async def client(number: int) -> None:
        connection, at = await connected(server), number * 997
        while time.perf_counter() < end:
            await load.ask(connection, requests[at % len(requests)], time.perf_counter())
            at += 1
        connection.transport.close()

    async def watching() -> None:
        while True:
            watch()
            await asyncio.sleep(10)

    watcher = asyncio.create_task(watching())
    await asyncio.gather(*(client(number) for number in range(clients)))
    watcher.cancel()
    load.seconds = time.perf_counter() - begun
    return load


async def by_chance(server: Server, requests: Sequence[bytes], rate: float, seconds: float) -> Load:
    """Requests at chance intervals, each from when it should be sent."""
    load, rng, free = Load(), random.Random(12), list[Connection]()
    tasks: list[asyncio.Task[None]] = []

    async def one(request: bytes, begun: float) -> None:
        while free and not free[-1].is_open:
            free.pop()
        connection = free.pop() if free else await connected(server)
        await load.ask(connection, request, begun)
        free.append(connection)

    begun = at = time.perf_counter()
    while at < begun + seconds:
        at += rng.expovariate(rate)
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        tasks.append(asyncio.create_task(one(requests[len(tasks) % len(requests)], at)))
    await asyncio.gather(*tasks)
    load.seconds = time.perf_counter() - begun
    for connection in free:
        connection.transport.close()
    return load


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


def warm(server: Server, requests: Sequence[bytes]) -> None:
    asyncio.run(closed(server, requests, CLIENTS, 3))
    asyncio.run(closed(server, requests, 1, 1))


def throughput(found: dict[str, Server], texts: list[str], seconds: float, repeats: int) -> dict[str, Any]:
    """All servers run, one is asked: what waits costs nothing."""
    loads: dict[str, list[dict[str, float]]] = {name: [] for name in found}
    with contextlib.ExitStack() as stack:
        for server in found.values():
            stack.enter_context(running(server))
            warm(server, [server.request(text) for text in texts])
        for _ in range(repeats):
            for name, server in found.items():
                requests = [server.request(text) for text in texts]
                loads[name].append(asyncio.run(closed(server, requests, CLIENTS, seconds)).told())
    return {name: {key: statistics.median(load[key] for load in some) for key in some[0]} | {
        "least": min(load["requests_a_second"] for load in some), "most": max(load["requests_a_second"] for load in some),
    } for name, some in loads.items()}  # fmt: skip


def lone(server: Server, tagger: Any, texts: list[str]) -> dict[str, float]:
    """Milliseconds, the median, turn by turn; answers are compared first."""
    times: dict[str, list[float]] = {"http": [], "in process": []}

    async def main() -> None:
        connection = await connected(server)
        for text in texts[:200]:
            _, body = await connection.ask(server.request(text))
            wanted, [given] = tagger.predict(text).to_dict(), json.loads(body)["predictions"]
            assert given["tags"] == wanted["tags"], text
        for _ in range(3):
            for text in texts[:200]:
                begun = time.perf_counter()
                await connection.ask(server.request(text))
                times["http"].append(time.perf_counter() - begun)
            for text in texts[:200]:
                begun = time.perf_counter()
                tagger.predict(text)
                times["in process"].append(time.perf_counter() - begun)
        connection.transport.close()

    asyncio.run(main())
    found = {name: statistics.median(some) * 1000 for name, some in times.items()}
    return {**found, "more": found["http"] - found["in process"]}


LOADING = "import sys; from sequst.tagger.tagger import Tagger; Tagger.load(sys.argv[1], 'cpu'); print('loaded', flush=True)"


def cold_start(server: Server, model: str, repeats: int) -> dict[str, float]:
    """Seconds, the median of starts in turn; the first of each does not count."""
    times: dict[str, list[float]] = {"ready": [], "loaded": []}
    for _ in range(repeats + 1):
        times["ready"].append(server.start())
        server.stop()
        begun = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-c", LOADING, model], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as loading:
            assert loading.stdout is not None
            assert loading.stdout.readline() == b"loaded\n"
            times["loaded"].append(time.perf_counter() - begun)
    found = {name: statistics.median(some[1:]) for name, some in times.items()}
    return {**found, "more": found["ready"] - found["loaded"]}


def soak(server: Server, texts: list[str], minutes: float) -> dict[str, Any]:
    """Memory after the first two minutes, which fill what is kept, and at its most later."""
    seen: list[tuple[float, float]] = []
    begun = time.perf_counter()
    with running(server):
        requests = [server.request(text) for text in texts]
        load = asyncio.run(
            closed(
                server, requests, CLIENTS, minutes * 60, lambda: seen.append((time.perf_counter() - begun, server.megabytes))
            )
        )
    settled = [megabytes for second, megabytes in seen if second > min(120, minutes * 30)]
    last = statistics.median(settled[-6:])
    return {
        "minutes": minutes, "requests": len(load.milliseconds), "errors": load.errors, "megabytes_then": settled[0],
        "megabytes_most": max(settled), "megabytes_last": last, "growth_percent": 100 * (last / settled[0] - 1),
    }  # fmt: skip


def main() -> None:
    parser = common.parser(
        __doc__, encoder="minilm", sentences=2000, seconds=10.0, repeats=3, minutes=30.0, threads=0, rival="", model="", port=0
    )
    options = parser.parse_args()
    if options.rival:
        rival(options.rival, options.model, options.port)
        return
    from sequst.tagger.tagger import Tagger

    name, sentences = common.sentences(options.sentences)
    texts = [" ".join(sentence.words) for sentence in sentences]
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        Tagger.from_encoder(common.encoder(options.encoder, Path(folder)), common.LABELS, seed=1).save(model)
        every = servers(model)
        ours = every["ours"]
        found: dict[str, Any] = {"throughput": throughput(every, texts, options.seconds, options.repeats)}
        found["ratio"] = {
            name: found["throughput"]["ours"]["requests_a_second"] / rates["requests_a_second"]
            for name, rates in found["throughput"].items()
        }
        with running(ours):
            requests = [ours.request(text) for text in texts]
            warm(ours, requests)
            found["lone"] = lone(ours, Tagger.load(model, "cpu"), texts)
            rate = STEADY * found["throughput"]["ours"]["requests_a_second"]
            found["steady"] = asyncio.run(by_chance(ours, requests, rate, 3 * options.seconds)).told()
            found["steady"]["p99_over_p50"] = found["steady"]["p99"] / found["steady"]["p50"]
        found["cold_start"] = cold_start(ours, model, options.repeats)
        asked = common.asked(options, "encoder", "sentences", "seconds", "repeats")
        found |= {"clients": CLIENTS, "share": STEADY, "data": name, **asked, **common.machine("cpu")}
        if options.minutes:
            common.tell(found, options.json)  # what there is, for the rest takes long
            found["soak"] = soak(ours, texts, options.minutes)
    common.tell(found, options.json)


if __name__ == "__main__":
    main()
