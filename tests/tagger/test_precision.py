from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tagger.accel.test_cpu_forward import batch_of, model_of

from sequst.api import train
from sequst.corpus.generated import generate
from sequst.errors import UsageError
from sequst.tagger.accel.cpu_forward import CpuForward
from sequst.tagger.accel.forward import Forward
from sequst.tagger.accel.layers import Layers
from sequst.tagger.precision import has_bf16, in_precision, require_bf16
from sequst.tagger.predict import label_words, sentence_vectors
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs
from sequst.uncertainty.predict import annotate_with_uncertainty

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
    told = "precision=bf16: this CPU has no bf16; use fp32 or auto"
    with pytest.raises(UsageError, match=told):
        require_bf16(CPU, "setting precision=bf16", "fp32 or auto")
    with pytest.raises(UsageError, match=r"--precision bf16: this CPU has no bf16; use fp32"):
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
    batch, half, full = batch_of(), CpuForward(known, torch.bfloat16), CpuForward(known)
    if laid_out:
        half.lay_out()
    with torch.inference_mode():
        ours, exact = (lean.finish(lean.begin(batch))[batch.word_mask] for lean in (half, full))
    assert ours.dtype == torch.float32
    apart = float((ours - exact).norm() / exact.norm())
    assert 0 < apart < 0.02  # a bf16 has 8 bits


@pytest.fixture
def tagger(tiny_encoder: str) -> Tagger:
    """Whose scores are far apart, so that rounding shows."""
    made = Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2)
    made.head.linear.weight.data.mul_(30)
    return made


@has_it
def test_a_tagger_within_bf16(tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = generate().pool[:600]  # several batches: weights are laid out, and cores have batches of their own
    made: list[Any] = []
    before = CpuForward.__init__
    monkeypatch.setattr(CpuForward, "__init__", lambda self, known, dtype: (made.append(dtype), before(self, known, dtype))[1])

    def found() -> list[Any]:
        beliefs, labels = form_beliefs(tagger, sentences, 3, 1), label_words(tagger, sentences)
        uncertain = [value for each in annotate_with_uncertainty(tagger, sentences, 3, 1) for value in each.mc_confidences]
        vectors = sentence_vectors(tagger, sentences)
        return [beliefs.confidence, np.asarray(uncertain), vectors, labels.confidences, labels.labels]

    exact, kept = found(), torch.get_num_threads()
    assert set(made) == {torch.float32}
    made.clear()
    try:
        with in_precision(CPU, "bf16"):
            rounded, again = (torch.set_num_threads(count) or found() for count in (1, 2))
    finally:
        torch.set_num_threads(kept)
    assert set(made) == {torch.bfloat16}
    assert np.mean(rounded[-1] == exact[-1]) > 0.98
    for ours, other, exactly in zip(rounded, again, exact, strict=True):
        assert np.array_equal(ours, other)  # on however many cores
        if exactly is not exact[-1]:
            assert 1e-5 < np.abs(ours - exactly).max() < 0.02  # in fp32 there is no difference at all
    assert np.abs(rounded[0] - rounded[1]).max() < 1e-6


@pytest.mark.parametrize(("dtype", "has"), [(torch.float16, True), (torch.bfloat16, False)])
def test_what_the_machine_has_no_instructions_for_is_left_to_torch(
    dtype: torch.dtype, has: bool, tagger: Tagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sequst.tagger.accel.forward.has_bf16", lambda device: has)
    sentences = generate().pool[:600]
    exact = label_words(tagger.eval(), sentences)
    with torch.autocast("cpu", dtype):
        assert Forward(tagger).cpu is None
        found = label_words(tagger, sentences)
    assert np.mean(found.labels == exact.labels) > 0.98


@has_it
def test_a_run_in_bf16_on_a_cpu(split: Any, tiny_encoder: str, tmp_path: Path) -> None:
    phase = {"min_steps": 6, "epochs": 1}
    options: dict[str, Any] = {"encoder": tiny_encoder, "device": "cpu", "max_rounds": 1, "method": "sequst", "evaluations": 1}
    phases: dict[str, Any] = dict.fromkeys(("teacher", "student", "retune"), phase)
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
def test_the_verbs_take_it(sequst: Callable[..., Any], tagger: Tagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    (tmp_path / "raw.txt").write_text("We play in Oslo\nCan Sydney conduct?\n")
    (tmp_path / "gold.conll").write_text("We O\nplay O\nin O\nOslo B-x\n")

    def told(verb: str, *flags: str) -> Any:
        done = sequst(verb, tmp_path / "model", tmp_path / ("gold.conll" if verb == "evaluate" else "raw.txt"), *flags)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for verb, *flags in (["predict"], ["predict", "--uncertainty", "--passes=2"], ["next"], ["evaluate", "--json"]):
        found = []
        for precision in ("fp32", "bf16"):
            output = [f"--output={tmp_path / precision}"] if verb == "next" else []
            text = told(verb, f"--precision={precision}", *flags, *output)
            found.append((tmp_path / precision).read_text() if output else text)
        assert found[0] != found[1], (verb, *flags)
        if verb == "predict":
            assert [json.loads(line)["words"] for line in found[0].splitlines()] == [
                json.loads(line)["words"] for line in found[1].splitlines()
            ]
    refused = sequst("predict", tmp_path / "model", tmp_path / "raw.txt", "--precision=fp16")
    assert refused.returncode == 2
    assert "--precision fp16: did you mean" in refused.stderr


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_an_export_has_its_own(verb: str, sequst: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    (tmp_path / "gold.conll").write_text("Oslo B-x\n")
    done = sequst(verb, tmp_path, tmp_path / "gold.conll", "--precision=bf16")
    assert done.returncode == 2
    assert re.search(r"precision bf16: .* is an export, which has its own precision", done.stderr)
