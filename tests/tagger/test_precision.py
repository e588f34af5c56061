from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_lean import batch_of, model_of

from sequst.corpus.generated import generate
from sequst.errors import UsageError
from sequst.methods.running import train
from sequst.tagger.layers import Layers
from sequst.tagger.lean import Lean
from sequst.tagger.precision import has_bf16, in_precision, require_bf16
from sequst.tagger.predicting import label_words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs

CPU = torch.device("cpu")
has_it = pytest.mark.skipif(not has_bf16(CPU), reason="this CPU has no bf16")


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True)])
def test_a_cpu_has_it_by_its_instructions(flags: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, flag in zip(("_is_avx512_bf16_supported", "_is_amx_tile_supported"), flags, strict=True):
        monkeypatch.setattr(torch.cpu, name, lambda flag=flag: flag, raising=False)
    assert has_bf16(CPU) is any(flags)
    assert not has_bf16(torch.device("meta"))
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):  # an older torch
        monkeypatch.delattr(torch.cpu, name)
    assert not has_bf16(CPU)


def test_what_the_machine_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sequst.tagger.precision.has_bf16", lambda device: False)
    told = "precision=bf16 needs a GPU or a CPU that has it, and this CPU has not; use fp32 or auto"
    with pytest.raises(UsageError, match=told):
        require_bf16(CPU, "setting precision=bf16", "fp32 or auto")
    with pytest.raises(UsageError, match=r"--precision bf16 needs .*; use fp32"):
        in_precision(CPU, "bf16")
    with pytest.raises(UsageError, match="--precision fp16: did you mean"):
        in_precision(CPU, "fp16")
    with in_precision(CPU, "fp32"):
        assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("laid_out", [False, pytest.param(True, marks=has_it)])
@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_products_in_bf16_are_near_those_in_fp32(kind: str, laid_out: bool) -> None:
    known = Layers.of(model_of(kind))
    assert known is not None
    batch, half, full = batch_of(), Lean(known, torch.bfloat16), Lean(known)
    if laid_out:
        half.lay_out()
    with torch.inference_mode():
        ours, exact = (lean.finish(lean.begin(batch))[batch.word_mask] for lean in (half, full))
    assert ours.dtype == torch.float32
    apart = float((ours - exact).norm() / exact.norm())
    assert 0 < apart < 0.02  # a bf16 has 8 bits


@has_it
def test_a_tagger_within_bf16(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2)
    sentences = generate().test[:60]
    exact, passes = label_words(tagger, sentences), form_beliefs(tagger, sentences, 3, 1)
    made: list[Any] = []
    before = Lean.__init__
    monkeypatch.setattr(Lean, "__init__", lambda self, known, dtype: (made.append(dtype), before(self, known, dtype))[1])
    with in_precision(CPU, "bf16"):
        rounded, again = label_words(tagger, sentences), form_beliefs(tagger, sentences, 3, 1)
        alone = [label_words(tagger, [sentence]) for sentence in sentences[:5]]
    assert set(made) == {torch.bfloat16}
    assert np.mean(rounded.labels == exact.labels) > 0.95
    for name, one, other in (("confidences", rounded, exact), ("confidence", again, passes)):
        apart = np.abs(getattr(one, name) - getattr(other, name))
        assert 0 < apart.max() < 0.02, name
    first = np.concatenate([found.confidences for found in alone])  # whether in threads of its own or not
    assert np.abs(first - rounded.confidences[: len(first)]).max() < 0.01


@has_it
def test_a_run_in_bf16_on_a_cpu(split: Any, tiny_encoder: str, tmp_path: Path) -> None:
    phase = {"min_steps": 6, "epochs": 1, "evaluations": 1}
    options: dict[str, Any] = {"encoder": tiny_encoder, "device": "cpu", "max_rounds": 1, "method": "sequst"}
    phases: dict[str, Any] = dict.fromkeys(("adaptation", "teacher", "student", "retune"), phase)
    files = {"dev": split.dev, "unlabeled": split.unlabeled[:20]}
    results = {
        name: train(split.labeled, tmp_path / name, precision=precision, **files, **options, **phases).summary
        for name, precision in {"a": "bf16", "b": "bf16", "c": "fp32"}.items()
    }
    assert results["a"]["dev_f1"] == results["b"]["dev_f1"]
    assert [results[name]["precision"] for name in "abc"] == ["bf16", "bf16", "fp32"]
    weights = [torch.cat([w.detach().flatten() for w in Tagger.load(tmp_path / name / "model").parameters()]) for name in "abc"]
    assert torch.equal(weights[0], weights[1])
    assert 0 < float((weights[0] - weights[2]).norm() / weights[2].norm()) < 0.05


@has_it
def test_the_verbs_take_it(sequst: Callable[..., Any], tiny_encoder: str, tmp_path: Path) -> None:
    Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2).save(tmp_path / "model")
    (tmp_path / "raw.txt").write_text("We play in Oslo\nCan Sydney conduct?\n")
    found = {}
    for precision in ("fp32", "bf16"):
        done = sequst("predict", tmp_path / "model", tmp_path / "raw.txt", f"--precision={precision}")
        assert done.returncode == 0, done.stderr
        found[precision] = done.stdout
        chosen = sequst(
            "next", tmp_path / "model", tmp_path / "raw.txt", f"--precision={precision}", f"--output={tmp_path / 'n.jsonl'}"
        )
        assert chosen.returncode == 0, chosen.stderr
    assert [json.loads(line)["words"] for line in found["bf16"].splitlines()] == [
        json.loads(line)["words"] for line in found["fp32"].splitlines()
    ]
    (tmp_path / "gold.conll").write_text("We O\nplay O\nin O\nOslo B-x\n")
    assert sequst("evaluate", tmp_path / "model", tmp_path / "gold.conll", "--precision=bf16").returncode == 0
    refused = sequst("predict", tmp_path / "model", tmp_path / "raw.txt", "--precision=fp16")
    assert refused.returncode == 2
    assert "--precision fp16: did you mean" in refused.stderr
