"""The files of the page about systemd and nginx, with an nginx that runs."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.test_pages import REPOSITORY, blocks, lines
from tests.service.conftest import Process

from sequst import Client
from sequst.corpus.generated import generate

PAGE = REPOSITORY / "docs" / "how-to" / "serve-behind-nginx.md"
TOKEN = "0123456789abcdef"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/sbin")
needs_nginx = pytest.mark.skipif(not (NGINX and shutil.which("openssl")), reason="needs nginx and openssl")
AROUND = """
daemon off; master_process off; pid nginx.pid; error_log error.log;
events {}
http {
    access_log off;
    client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;
    include site.conf;
}
"""
"""What Debian's nginx.conf has around a file of conf.d, for a user without rights."""


def of_page(kind: str) -> str:
    """The block of this kind."""
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def replaced(text: str, changes: dict[str, object]) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, str(new))
    return text


def setting(name: str, text: str) -> float:
    """The number behind a setting or a flag."""
    found = re.search(rf"{name}[ =]*(\d+)", text)
    assert found, name
    return float(found[1])


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json", self.body
        return json.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str]:
        return self.status, self.json["error"]


@dataclass
class Site:
    """An nginx, the server behind it, and a folder with both their files."""

    server: Process
    folder: Path
    port: int

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "cert.pem"))

    def connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.trust)

    def ask(self, path: str, body: bytes | None = None, token: str | None = TOKEN) -> Answer:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        with contextlib.closing(self.connection()) as connection:
            connection.request("GET" if body is None else "POST", path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def start_nginx(folder: Path, server_port: int) -> tuple[subprocess.Popen[bytes], int]:
    """With the block of the page; its port. Another port is tried where that was taken meanwhile."""
    assert NGINX
    (folder / "nginx.conf").write_text(AROUND)
    for _ in range(5):
        port = free_port()
        changes: dict[str, object] = {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "127.0.0.1:8000": f"127.0.0.1:{server_port}",
            "/etc/ssl/sequst/fullchain.pem": folder / "cert.pem",
            "/etc/ssl/sequst/privkey.pem": folder / "key.pem",
        }
        (folder / "site.conf").write_text(replaced(of_page("nginx"), changes))
        command = [NGINX, "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"]
        nginx = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while nginx.poll() is None:
            if is_open(port):
                return nginx, port
            time.sleep(0.05)
    raise AssertionError((folder / "error.log").read_text())


@contextlib.contextmanager
def running(model: Path, folder: Path) -> Iterator[Site]:
    """The server as the unit starts it, and nginx in front."""
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    names = "subjectAltName=DNS:sequst.example.org,IP:127.0.0.1"
    key: list[str | Path] = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        folder / "key.pem",
    ]
    made: list[str | Path] = [
        "openssl",
        "req",
        "-x509",
        *key,
        "-out",
        folder / "cert.pem",
        "-days",
        "2",
        "-subj",
        "/CN=test",
        "-addext",
        names,
    ]
    subprocess.run(made, check=True, capture_output=True)
    command = re.search(r"^ExecStart=/opt/sequst/bin/sequst serve /srv/sequst/model (.*)$", of_page("ini"), re.MULTILINE)
    assert command
    server = Process(model, *shlex.split(replaced(command[1], {"${CREDENTIALS_DIRECTORY}": folder})), token=TOKEN)
    try:
        nginx, port = start_nginx(folder, server.port)
        try:
            yield Site(server, folder, port)
        finally:
            nginx.terminate()
            nginx.wait(30)
    finally:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="module")
def site(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(model, tmp_path_factory.mktemp("site")) as found:
        yield found


def test_the_limits_of_both_files_fit() -> None:
    unit, nginx = of_page("ini"), of_page("nginx")
    assert setting("client_max_body_size", nginx) == setting("--max-body-mb", unit) * 10**6
    assert setting("--timeout", unit) < setting("TimeoutStopSec", unit)
    assert setting("--timeout", unit) < setting("proxy_read_timeout", nginx)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    (tmp_path / "sequst.service").write_text(replaced(of_page("ini"), {"/opt/sequst/bin/sequst": sys.executable}))
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "sequst.service")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "sequst.service" not in done.stderr  # a warning: an unknown setting


@needs_nginx
def test_answers_pass_unchanged(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [sentence.without_tags() for sentence in generate().test[:300]]
    monkeypatch.setenv("SSL_CERT_FILE", str(site.folder / "cert.pem"))
    client = Client(f"https://127.0.0.1:{site.port}", TOKEN)
    found, direct = list(client.annotate(sentences)), list(site.server.client.annotate(sentences))
    assert [each.tags for each in found] == [each.tags for each in direct]
    for one, other in zip(found, direct, strict=True):
        assert one.confidences == pytest.approx(other.confidences, abs=1e-4)
    assert client.model() == site.server.client.model()
    status, error = site.ask("/v1/predict", b'{"texts": 1}').refusal
    assert (status, "texts" in error) == (422, True)


@needs_nginx
def test_only_what_the_page_names_comes_through(site: Site) -> None:
    for path in ("/metrics", "/v1/reload", "/healthz", "/webhook", "/v1/stream/", "/docsx", "/"):
        assert site.ask(path).refusal == (404, "unknown path")
    assert site.ask("/v1/reload", b"{}").refusal == (404, "unknown path")
    assert site.ask("/readyz", token=None).json == {"status": "ready"}
    assert site.ask("/openapi.json", token=None).json["info"]["title"] == "sequst"
    assert site.ask("/docs", token=None).status == 200
    large = b" " * 9_000_000
    for token in (None, "another token 123"):
        for body in (b"{}", large):
            status, error = site.ask("/v1/predict", body, token).refusal
            assert (status, "a token is needed" in error) == (401, True)
        assert site.ask("/v1/stream", b"{}", token).status == 401
        assert site.ask("/v1/model", token=token).status == 401
    assert site.ask("/v1/predict", large + b" " * 1_000_001).refusal == (413, "more than 10 MB; send less at once")


def line(number: int, more: bytes = b"") -> bytes:
    return json.dumps({"id": number, "text": "Can Sydney conduct The Planets in Verona on Friday?"}).encode() + more + b"\n"


async def ids(reader: asyncio.StreamReader) -> AsyncIterator[int]:
    """Of the records of a chunked answer, as they come."""
    rest = b""
    while size := int(await reader.readline(), 16):
        rest += await reader.readexactly(size)
        await reader.readexactly(2)
        *whole, rest = rest.split(b"\n")
        for each in whole:
            yield json.loads(each)["id"]
    assert not rest


@needs_nginx
def test_lines_are_answered_while_others_are_sent(site: Site) -> None:
    """More bytes than `client_max_body_size` of other paths, and never many ahead of the answers."""
    rounds, share = 12, 50

    async def stream() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=site.trust)

        async def send(piece: bytes) -> None:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()

        headers = ["Host: a", f"Authorization: Bearer {TOKEN}", "Transfer-Encoding: chunked"]
        writer.write("\r\n".join(["POST /v1/stream HTTP/1.1", *headers, "", ""]).encode())
        blank, asked, answered = b" " * 10**6 + b"\n", 0, 0
        await send(blank + line(0))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"application/x-ndjson" in head
        found = ids(reader)
        assert await anext(found) == 0
        for _ in range(rounds):
            await send(blank + b"".join(line(asked + 1 + each) for each in range(share)))
            asked += share
            while answered < asked:
                answered += 1
                assert await anext(found) == answered

        async def send_rest() -> None:
            for each in range(0, 3000, 100):
                await send(b"".join(line(asked + 1 + each + more) for more in range(100)))
            writer.write(b"0\r\n\r\n")
            await writer.drain()

        sending = asyncio.create_task(send_rest())
        async for number in found:
            answered += 1
            assert number == answered
        await sending
        writer.close()
        return answered

    assert asyncio.run(asyncio.wait_for(stream(), 60)) == rounds * share + 3000


@needs_nginx
def test_work_ends_when_the_client_hangs_up(site: Site) -> None:
    body = json.dumps({"sentences": [["Oslo"] * 10] * 10_000}).encode()

    def given_up() -> int:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", site.server.port, timeout=30)) as direct:
            direct.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
            counters = direct.getresponse().read().decode()
        found = re.search(r'sequst_requests_total{path="/v1/predict",status="499"} (\d+)', counters)
        return int(found[1]) if found else 0

    for _ in range(5):  # a machine may answer before the client is gone
        connection = site.connection()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        connection.request("POST", "/v1/predict", body, headers)
        time.sleep(0.3)
        connection.close()
        for _ in range(50):
            if given_up():
                return
            time.sleep(0.1)
    raise AssertionError("no request was given up")


@needs_nginx
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page asks with curl")
def test_the_commands_of_the_page_get_answers(site: Site, tmp_path: Path) -> None:
    places = {"sequst.example.org:443": site.port, "127.0.0.1:8000": site.server.port}
    settings = [f'connect-to = "{place}:127.0.0.1:{port}"' for place, port in places.items()]
    (tmp_path / ".curlrc").write_text("\n".join([f'cacert = "{site.folder / "cert.pem"}"', *settings]))
    (tmp_path / "tagme.jsonl").write_bytes(b"".join(line(number, b" " * 1000) for number in range(1, 2501)))
    commands = [each for kind, block in blocks(PAGE) if kind == "sh" for each in lines(block) if "curl" in each]
    told: list[str] = []
    for command in commands:
        shell = ["bash", "-c", command.replace("/etc/sequst/token", str(site.folder / "token"))]
        options: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "CURL_HOME": str(tmp_path)}}
        done = subprocess.run(shell, check=False, capture_output=True, text=True, timeout=60, **options)
        assert done.returncode == 0, (command, done.stderr)
        told.append(done.stdout)
    ready, same, predicted, none = told
    assert (json.loads(ready), ready, none) == ({"status": "ready"}, same, "")
    assert json.loads(predicted)["predictions"][0]["words"] == ["Is", "ACME", "in", "Oslo", "?"]
    answers = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert [json.loads(each)["id"] for each in answers] == list(range(1, 2501))


@needs_nginx
def test_too_many_requests_and_a_server_that_stops(model: Path, tmp_path: Path) -> None:
    with running(model, tmp_path) as site:
        statuses = set()
        with contextlib.closing(site.connection()) as connection:
            for _ in range(200):
                connection.request("GET", "/readyz")
                response = connection.getresponse()
                answer = Answer(response.status, response.headers, response.read())
                statuses.add(answer.status)
                if answer.status == 503:
                    assert "too many requests" in answer.json["error"]
                    assert answer.headers["retry-after"] == "2"
        assert statuses == {200, 503}
        time.sleep(1)  # the limit forgets
        body = json.dumps({"texts": ["Is ACME in Oslo?"]}).encode()
        assert site.ask("/v1/predict", body).status == 200
        begun = time.monotonic()
        assert site.server.stop() == 0
        gone = site.ask("/v1/predict", body)
        assert (gone.status, gone.headers["retry-after"]) == (503, "2")
        assert "restarts" in gone.json["error"]
        assert site.ask("/v1/stream", body).status == 503
        assert time.monotonic() - begun < 20
