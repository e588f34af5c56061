"""On a GPU: run by hand with `pytest -m gpu`."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.test_self_training import MOMENTS, OPTIONS, flags
from tests.test_api import KILLER, metrics
from tests.training.test_steps import calls_of, refuse

from sequst.api import resume, train
from sequst.corpus.sampling import Split
from sequst.tagger.accel.fused_encoder import FusedEncoder
from sequst.tagger.batches import Batch
from sequst.training.accel.graphs import RecordedSteps

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="session")
def wide_encoder(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Random weights of the width of minilm, for which a GPU takes other kernels than for a few."""
    import transformers

    folder = tmp_path_factory.mktemp("encoder") / "wide"
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_encoder)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    transformers.BertModel(config).save_pretrained(folder)
    return str(folder)


def of_few_steps(steps: int) -> dict[str, Any]:
    """Settings of a run of one round, whose teacher has learnt enough to label something."""
    short = {"min_steps": steps, "epochs": 0.1}
    phases = {"teacher": {**short, "min_steps": 60}, "student": short, "retune": short}
    return {**phases, "max_rounds": 1, "device": "cuda"}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_same_seed_gives_the_same_numbers(tmp_path: Path, tiny_encoder: str, split: Split, precision: str) -> None:
    options = {"encoder": tiny_encoder, "device": "cuda", "precision": precision, "evaluations": 3}
    options["teacher"] = {"min_steps": 60, "epochs": 1}
    runs = [train(split.labeled, tmp_path / str(i), dev=split.dev, **options) for i in range(2)]
    first, second = (run.tagger.state_dict() for run in runs)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_all_kernels_run_here(wide_encoder: str) -> None:
    """Where one does not, a slower path would be taken with a warning alone."""
    from sequst.tagger.accel.available import encoder_kernels, loss_kernels
    from sequst.tagger.accel.layers import Layers
    from sequst.tagger.tagger import Tagger

    known = Layers.of(Tagger.from_encoder(wide_encoder, ["O"]).to("cuda").encoder)
    assert known is not None
    for dtype in (torch.bfloat16, torch.float32):
        assert encoder_kernels("training", known, dtype) is not None
    assert encoder_kernels("varlen", known, torch.bfloat16) is not None
    assert loss_kernels(torch.zeros(1, 4, 9, device="cuda"), 1) is not None


def test_cpu_and_gpu_agree(tmp_path: Path, tiny_encoder: str, split: Split) -> None:
    result = train(split.labeled, tmp_path / "run", encoder=tiny_encoder, device="cuda", teacher={"min_steps": 60, "epochs": 1})
    from sequst.tagger.tagger import Tagger

    on_gpu = Tagger.load(result.path / "model", "cuda").predict(split.dev)
    on_cpu = Tagger.load(result.path / "model", "cpu").predict(split.dev)
    same = sum(a.tags == b.tags for a, b in zip(on_gpu, on_cpu, strict=True))
    assert same >= len(split.dev) - 1


def test_beliefs_on_the_gpu_are_the_same_every_time(tiny_encoder: str, split: Split) -> None:
    from sequst.tagger.tagger import Tagger
    from sequst.uncertainty.beliefs import form_beliefs

    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1).to("cuda")
    first, again, other = (form_beliefs(tagger, split.dev, passes=4, seed=seed) for seed in (1, 1, 2))
    assert (first.information_gain == again.information_gain).all()
    assert (first.information_gain != other.information_gain).any()
    assert first.information_gain.max() > 0


@pytest.mark.parametrize("moment", ["in the MC passes", "in the student"])
def test_a_killed_run_ends_the_same(moment: str, tmp_path: Path, tiny_encoder: str, split: Split) -> None:
    Split(split.labeled, split.dev, split.unlabeled[:60], 5, "sentences", 12).save(tmp_path / "data")
    inputs = [f"--{role}={tmp_path / 'data' / role}.conll" for role in ("labeled", "unlabeled", "dev")]
    settings = flags({**OPTIONS, "checkpoint_seconds": 0, "precision": "bf16"})
    for name in ("whole", "killed"):
        place, count, about = MOMENTS[moment] if name == "killed" else ("sequst.training.loop:_set_rate", -1, "")
        command = ["train", *inputs, f"--encoder={tiny_encoder}", "--method=sequst", "--device=cuda", *settings]
        command = [sys.executable, "-c", KILLER, place, str(count), about, *command, f"--output={tmp_path / name}"]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == (-signal.SIGKILL if name == "killed" else 0), done.stderr.decode()
    resume(tmp_path / "killed")
    assert metrics(tmp_path / "killed") == metrics(tmp_path / "whole")
    weights = Path("model", "model.safetensors")
    assert (tmp_path / "killed" / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()


def test_both_sides_of_vat_see_the_same_masks(wide_encoder: str, split: Split) -> None:
    from sequst.methods.vat import constant
    from sequst.tagger.batches import collate
    from sequst.tagger.tagger import Tagger
    from sequst.uncertainty.mc_dropout import same_dropout

    for encoder in (wide_encoder, "bilstm"):
        text = [s.words for s in split.dev]
        tagger = Tagger.from_encoder(encoder, ["O", "B-X", "I-X"], text=text, seed=1).to("cuda").train()
        batch = collate(tagger.splitter.windows(text), list(range(16)), tagger.pad_id).to(tagger.device)
        embeddings = tagger.embeddings(batch)
        for fast in (False, True):
            found = []
            for seed, still in ((1, False), (1, True), (2, True)):
                way = (FusedEncoder.of(tagger.encoder, torch.float32) if fast else None) or contextlib.nullcontext()
                with same_dropout(tagger, seed), constant(tagger) if still else contextlib.nullcontext(), way:
                    assert (tagger.encoder.fused is not None) == (fast and encoder == wide_encoder)
                    found.append(tagger.head.scores(tagger.hidden(batch, embeddings)))
            assert torch.allclose(found[0], found[1], atol=1e-5)
            assert not torch.allclose(found[0], found[2], atol=1e-2)


def test_by_the_fast_way_vat_finds_the_same_direction(wide_encoder: str, split: Split) -> None:
    """The one that moves predictions most; in fp32, for what bf16 rounds off is as large as what is looked at."""
    from sequst.methods.vat import constant, word_divergence
    from sequst.objectives.adversarial import adversarial_direction, mean_norm
    from sequst.tagger.batches import collate
    from sequst.tagger.tagger import Tagger

    text = [s.words for s in split.dev]
    tagger = Tagger.from_encoder(wide_encoder, ["O", "B-X", "I-X"], text=text, seed=1).to("cuda").train()
    for module in tagger.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    with torch.no_grad():
        tagger.head.linear.weight.normal_()  # predictions that depend on something
    batch = collate(tagger.splitter.windows(text), list(range(16)), tagger.pad_id).to(tagger.device)
    embeddings, mask = tagger.embeddings(batch), batch.attention_mask.float()
    clean = tagger.head.scores(tagger.hidden(batch, embeddings)).detach()

    def apart(inputs: torch.Tensor) -> torch.Tensor:
        return word_divergence(tagger, batch, clean, tagger.head.scores(tagger.hidden(batch, inputs)))

    found = []
    for fast in (False, True):
        rng = torch.Generator("cuda").manual_seed(2)
        with constant(tagger), (FusedEncoder.of(tagger.encoder, torch.float32) if fast else None) or contextlib.nullcontext():
            assert (tagger.encoder.fused is not None) == fast
            found.append(adversarial_direction(embeddings, mask, apart, rng, 0.1 * mean_norm(embeddings, mask)))
    assert (found[0] * found[1]).flatten(1).sum(1).min() > 0.99  # cosines


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_by_the_fast_way_metast_weighs_words_alike(
    head: str, precision: torch.dtype, wide_encoder: str, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a second derivative in fp32, without dropout; and with it the same every time."""
    from tests.methods.test_metast import examples_of, weighed_by
    from tests.tagger.accel.test_fused_encoder import without_dropout

    from sequst.objectives.reweighting import worth_by_tangent
    from sequst.tagger.tagger import Tagger, labels_of

    tangents = []
    monkeypatch.setattr("sequst.methods.metast.worth_by_tangent", lambda *given: tangents.append(1) or worth_by_tangent(*given))
    tagger = Tagger.from_encoder(wide_encoder, labels_of(split.labeled), seed=1, head=head).to("cuda").train()
    with torch.no_grad():
        tagger.head.linear.weight.normal_()  # words that differ in worth
    batch = examples_of(tagger, split.dev[:16]).batch(list(range(len(split.dev[:16]))), tagger)

    def weights(fast: bool) -> torch.Tensor:
        objective = weighed_by(tagger, split, warmup=0.0)
        assert objective.nets is not None
        objective.nets.to("cuda")
        objective.begin_step(3, 10)
        half = torch.autocast("cuda", precision, enabled=fast and precision != torch.float32)
        with half, (FusedEncoder.of(tagger.encoder, precision) if fast else None) or contextlib.nullcontext():
            return objective.weighed(tagger, batch)[0].detach()

    assert torch.equal(weights(True), weights(True))
    assert len(tangents) == 2
    without_dropout(tagger)
    found, expected = weights(True), weights(False)
    assert len(tangents) == 3
    assert 0 < (expected > 0).sum() < batch.selected.sum()
    alike = torch.nn.functional.cosine_similarity(found.flatten(), expected.flatten(), dim=0)
    assert alike > (0.9999 if precision == torch.float32 else 0.98)


@pytest.mark.parametrize(("method", "objective"), [("cvt", "CrossViews"), ("metast", "MetaWeightedWords")])
def test_recorded_or_not_steps_are_the_same(
    method: str,
    objective: str,
    tmp_path: Path,
    wide_encoder: str,
    split: Split,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of methods whose steps are recorded now and then."""
    options = of_few_steps(30)
    options |= {"unlabeled": split.unlabeled[:40], "dev": split.dev, "method": method, "encoder": wide_encoder}
    options |= {"metast": {"warmup": 0.5}, "adapt": False}
    replays = calls_of(torch.cuda.CUDAGraph, "replay", monkeypatch)
    fast_ways = calls_of(FusedEncoder, "states", monkeypatch)
    learnt: set[str] = set()
    record = RecordedSteps._record

    def watched(steps: RecordedSteps, batch: Batch) -> Any:
        learnt.add(type(steps._objective).__name__)
        return record(steps, batch)

    found = []
    for recorded in (True, False):
        monkeypatch.setattr(RecordedSteps, "_record", watched if recorded else refuse)
        found.append(train(split.labeled, tmp_path / str(recorded), keep="student", **options).tagger.state_dict())
        assert bool(replays) == recorded
        assert fast_ways
        assert ("without CUDA graphs" in caplog.text) == (not recorded)
        replays.clear()
        fast_ways.clear()
    assert objective in learnt
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


@pytest.mark.parametrize("method", ["vat", "seqvat", "cvt", "metast"])
@pytest.mark.parametrize("head", ["softmax", "crf"])
@pytest.mark.parametrize("encoder", ["transformer", "bilstm"])
def test_the_same_numbers_twice(method: str, encoder: str, head: str, tmp_path: Path, wide_encoder: str, split: Split) -> None:
    encoder = wide_encoder if encoder == "transformer" else encoder
    options = of_few_steps(10)
    options |= {"unlabeled": split.unlabeled[:40], "dev": split.dev, "method": method, "encoder": encoder, "head": head}
    first, second = (train(split.labeled, tmp_path / str(i), keep="student", **options).tagger.state_dict() for i in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
