from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sequst.cli import experiment
from sequst.errors import SequstError, UsageError
from sequst.experiments.mps import CONTROL, PIPE, side_by_side

SERVER = """#!/bin/sh
echo "$@ $(cat) in $CUDA_MPS_PIPE_DIRECTORY$CUDA_VISIBLE_DEVICES" >> "$TOLD"
test -d "$CUDA_MPS_PIPE_DIRECTORY" && test -d "$CUDA_MPS_LOG_DIRECTORY" || exit 3
"""
STUBBORN = """
(while test ! -e "$TOLD.end"; do mkdir -p "$CUDA_MPS_LOG_DIRECTORY"; done) &
test "$1" || exit 0
sleep 9
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A control program that writes down what it is told, and a GPU."""
    program, told = tmp_path / "bin" / CONTROL, tmp_path / "told"
    program.parent.mkdir()
    program.write_text(SERVER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TOLD", str(told))
    monkeypatch.delenv(PIPE, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # a server that goes on writing leaves something behind
    return told


def test_a_server_lives_as_long_as_the_work(server: Path) -> None:
    def work() -> None:
        with side_by_side("auto", "local"):
            place.append(os.environ[PIPE])
            assert server.read_text() == f"-d  in {place[0]}\n"
            raise KeyboardInterrupt

    place: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        work()
    assert server.read_text().splitlines()[1:] == [f" quit -t 10 in {place[0]}"]
    assert PIPE not in os.environ
    assert not Path(place[0]).exists()


def test_what_is_wrong_is_told_before_the_work(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(match: str, device: str = "auto", engine: str = "local", kind: type[Exception] = UsageError) -> None:
        with pytest.raises(kind, match=match), side_by_side(device, engine):
            raise AssertionError

    refused("none is used here", device="cpu")
    refused("on every machine", engine="ray")
    with monkeypatch.context() as patch:
        patch.setenv(PIPE, "/somewhere")
        refused("is there already")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        refused(f"needs {CONTROL}")
    program = server.parent / "bin" / CONTROL
    program.write_text("#!/bin/sh\necho 'An instance of this daemon is already running' >&2; exit 1\n")
    refused("does not work .An instance of this daemon is already running.; leave --mps out", kind=SequstError)
    with monkeypatch.context() as patch:
        patch.setattr("torch.cuda.is_available", lambda: False)
        refused("none is used here")
    assert not server.exists()


def test_a_server_that_was_started_all_the_same_is_ended(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose control program does not come back, and which goes on writing."""
    monkeypatch.setattr("sequst.experiments.mps._PATIENCE", 0.5)
    program = server.parent / "bin" / CONTROL
    program.write_text(SERVER + STUBBORN)
    with pytest.raises(SequstError, match="timed out"), side_by_side("auto", "local"):
        raise AssertionError
    Path(f"{server}.end").touch()
    assert server.read_text().splitlines()[-1].startswith(" quit -t 10 in ")
    assert PIPE not in os.environ


def test_the_command_runs_its_cells_within(
    server: Path, tmp_path: Path, make_benchmark: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str | None, object]] = []

    def run_grid(*_: object, **options: object) -> None:
        seen.append((os.environ.get(PIPE), options["device"]))
        raise SequstError("enough")

    monkeypatch.setattr("sequst.experiments.grid.run_grid", run_grid)
    data = make_benchmark("mit_restaurant", test=20)
    command = ["run", "best-10shot", "--dataset=mit_restaurant", f"--data={data}", "--commit=c"]
    for extra in ([], ["--mps"]):
        found = CliRunner().invoke(experiment.experiment, [*command, f"--output={tmp_path / 'out'}", *extra])
        assert str(found.exception) == "enough"
    assert seen[0] == (None, "auto")
    assert seen[1][0] is not None
    assert seen[1][1] == "cuda"  # a process that sees no GPU through the server is not to go on without one
    assert len(server.read_text().splitlines()) == 2
