"""Every test is guarded, and its memory is limited. Those that take a `seed` are run with each seed of seeds.txt, or with
those that `make fuzz` asks for, which also asks for what was tried."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.guard import guarded, limited, require_clean, unguarded
from tests.hostile.mutation import Trial

SEEDS = Path(__file__).with_name("seeds.txt")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        asked = os.environ.get("SEQUST_FUZZ") or SEEDS.read_text()
        metafunc.parametrize("seed", [int(seed) for seed in asked.split()])


def _tell(**facts: object) -> None:
    if place := os.environ.get("SEQUST_FUZZ_COUNTS"):
        with unguarded(), Path(place).open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(begun=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _tell(failed=report.nodeid)
    if report.when == "teardown":
        _tell(ended=report.nodeid, tried=dict(report.user_properties).get("tried", {}))


@pytest.fixture(scope="session")
def libraries() -> None:
    """Those that look at the network when they are imported."""
    for name in ("spacy", "datasets"):
        pytest.importorskip(name)


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    trial = Trial()
    yield trial
    counts = {kind: dict(count) for kind, count in trial.counts.items()}  # other processes take no Counter
    request.node.user_properties.append(("tried", counts))


@pytest.fixture(autouse=True)
def nothing_is_executed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is executed, no temporary file is left, and memory is limited."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    with limited(), guarded(tmp_path_factory.getbasetemp()):
        yield
    if folder is not None:
        require_clean(folder)


LABELS = ["O", "B-LOC", "I-LOC"]


@pytest.fixture(scope="session")
def models(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of every architecture and head."""
    from sequst.tagger.encoders.shape import BiLstmShape
    from sequst.tagger.tagger import Tagger

    folder = tmp_path_factory.mktemp("models")
    shape = BiLstmShape(layers=1, hidden=4, word_size=3, character_size=3, filters=2)
    Tagger.from_encoder(tiny_encoder, LABELS).save(folder / "transformer")
    Tagger.from_encoder(tiny_encoder, LABELS, head="crf").save(folder / "crf")
    Tagger.from_encoder("bilstm", LABELS, text=[["We", "play"]], shape=shape, seed=1).save(folder / "bilstm")
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="session")
def exported(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sequst.integrations.onnx.exporting import export
    from sequst.tagger.tagger import Tagger

    folder = tmp_path_factory.mktemp("onnx") / "o"
    export(Tagger.from_encoder(tiny_encoder, LABELS, valid=True), folder)
    return folder


@pytest.fixture(scope="session")
def finished(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose phases are all there, killed before its end."""
    from sequst.api import train
    from sequst.corpus.generated import generate
    from sequst.corpus.sampling import sample

    split, brief = sample(generate().pool, 2), {"min_steps": 2, "max_steps": 2, "batch_size": 4}
    folder = tmp_path_factory.mktemp("run") / "run"
    train(
        split.labeled, folder, unlabeled=split.unlabeled[:20], dev=split.dev, encoder=tiny_encoder, method="sequst",
        max_rounds=1, keep_rounds=True, teacher=brief, student=brief, retune=brief, uncertainty={"passes": 2},
    )  # fmt: skip
    (folder / "summary.json").unlink()
    shutil.rmtree(folder / "model")
    return folder
