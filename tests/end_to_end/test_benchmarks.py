"""The benchmarks compare what is the same, and can be run: each at a tiny size."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.tagger.tagger import Tagger

REPOSITORY = Path(__file__).parent.parent.parent


def benchmark(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", REPOSITORY / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tagging(tiny_encoder: str) -> None:
    script = benchmark("tagging")
    tagger = Tagger.from_encoder(tiny_encoder, script.LABELS, seed=1)
    tagger.head.linear.weight.data.mul_(30)
    found = script.measure(tagger, generate().test[:40], "cpu", 1, 1)
    assert found["agreement"].pop("ours") == 1.0
    assert all(share >= 0.9 for share in found["agreement"].values())
    assert set(found["ratio"]) == set(found["words_a_second"]) - {"ours"}
    assert script._by_place(Sentence(("Oslo-", "is")), [{"start": s, "entity": str(s)} for s in (0, 4, 6)]) == ["0", "6"]


@pytest.mark.timeout(600)
def test_memory(tmp_path: Path) -> None:
    found = benchmark("memory").measure(tmp_path, 200, 2)
    assert len(found["at_every_tenth_megabytes"]) == 9
    assert found["over_the_model_megabytes"] < 1000


@pytest.mark.timeout(600)
def test_start_up(tmp_path: Path, tiny_encoder: str) -> None:
    seconds = benchmark("start_up").measure(tmp_path, 1, tiny_encoder)["seconds"]
    assert (
        seconds["python"]["median"]
        < seconds["help"]["median"]
        < seconds["transformers"]["median"]
        < seconds["predict"]["median"]
    )
