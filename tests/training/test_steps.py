from __future__ import annotations

import copy
import functools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from tests.training.test_loop import equal, run, spec_of, start, weights
from torch import Tensor

from sequst.corpus.sampling import Split
from sequst.methods.finetune import LabelledWords
from sequst.methods.self_training import PseudoLabelledWords
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import CROSS_ENTROPY, WordLoss
from sequst.tagger.accel.fused_encoder import FusedEncoder
from sequst.tagger.batches import Batch, collate
from sequst.tagger.encoders.pretrained import load_tokenizer
from sequst.tagger.tagger import Tagger, labels_of
from sequst.tagger.windows import Window
from sequst.training import loop
from sequst.training.accel.graphs import RecordedSteps, rounded
from sequst.training.device import make_accelerator
from sequst.training.loop import Examples, Hooks, fit
from sequst.training.objective import Objective
from sequst.training.settings import PhaseSettings, Settings
from sequst.training.steps import StepResult, Steps


def test_a_few_lengths() -> None:
    lengths = (1, 16, 17, 25, 32, 33, 49, 64, 65, 128, 300)
    assert [rounded(length) for length in lengths] == [16, 16, 24, 32, 32, 48, 64, 64, 128, 128, 320]


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_padding_changes_no_loss(head: str, tiny_encoder: str, split: Split) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, labels_of(split.labeled), seed=1, head=head)
    windows = tagger.splitter.windows([s.words for s in split.labeled])
    labels = [tagger.label_ids(s.tags or ()) for s in split.labeled]
    selected = [[i % 2 == 0 for i in range(len(s))] for s in split.labeled]
    batch = collate(windows, [0, 3, 5], tagger.pad_id, labels, selected)
    padded = batch.padded(8, 40, tagger.pad_id)
    assert padded.input_ids.shape == padded.owned.shape == (8, 40)
    assert len(padded.sizes) == len(padded.lengths) == len(padded.opens) == 8
    assert torch.equal(padded.owned_of(padded.labels), batch.owned_of(batch.labels))  # type: ignore[arg-type]
    for objective in (LabelledWords(), PseudoLabelledWords(WordLoss(10.0))):
        gradients = []
        for each in (batch, padded):
            tagger.zero_grad()
            loss, _ = objective.loss(tagger, each)
            loss.backward()
            gradients.append(
                (loss.item(), {name: p.grad.clone() for name, p in tagger.named_parameters() if p.grad is not None})
            )
        (one, plain), (two, more) = gradients
        assert two == pytest.approx(one, rel=1e-5)
        for name in plain:
            torch.testing.assert_close(more[name], plain[name], atol=1e-5, rtol=1e-4)
    assert batch.padded(1, 2, tagger.pad_id).input_ids.shape == batch.input_ids.shape  # it never cuts
    other = collate(windows, [1, 2, 4], tagger.pad_id, labels, selected).padded(8, 40, tagger.pad_id)
    padded.fill(other)
    assert torch.equal(padded.input_ids, other.input_ids)
    assert torch.equal(padded.labels, other.labels)  # type: ignore[arg-type]


def test_graph_keys_tell_when_the_loss_changes() -> None:
    objective = PseudoLabelledWords(WordLoss(10.0, warmup=0.3))
    keys = []
    for step in range(10):
        objective.begin_step(step, 10)
        keys.append(objective.graph_key())
    assert keys == [math.inf] * 3 + [10.0] * 7
    assert Objective().graph_key() is None


def test_looking_later_changes_nothing(tiny_encoder: str, split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[list[dict[str, Any]]] = []
    taggers = []
    for every in (1, 7):
        monkeypatch.setattr(loop, "_look_every", lambda device, every=every: every)
        lines.append([])
        tagger, outcome = run(tiny_encoder, split, Hooks(record=lines[-1].append, score=lambda tagger: 1.0))
        taggers.append((weights(tagger), outcome.loss))
        for line in lines[-1]:
            line.pop("seconds")
    assert lines[0] == lines[1]
    assert taggers[0][1] == taggers[1][1]
    assert equal(taggers[0][0], taggers[1][0])


def test_only_what_depends_on_its_batch_alone_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a method adds to a step, an unlabelled batch or weights of words, would stay as it was when it was recorded."""
    from sequst.methods.cvt import CrossViews
    from sequst.methods.metast import MetaWeightedWords
    from sequst.methods.vat import LabelledAndAdversarial

    def recorded(objective: Any) -> list[bool]:
        found = []
        for step in range(8):
            objective.begin_step(step, 8)
            found.append(objective.graph_key() is not None)
        return found

    assert recorded(LabelledWords()) == recorded(PseudoLabelledWords(CROSS_ENTROPY)) == [True] * 8
    assert recorded(object.__new__(LabelledAndAdversarial)) == [False] * 8
    assert recorded(object.__new__(CrossViews)) == [True, False] * 4
    weighed = object.__new__(MetaWeightedWords)
    weighed._settings = SimpleNamespace(warmup=0.5)  # type: ignore[assignment]
    monkeypatch.setattr("sequst.methods.metast.REFRESH", 2)
    assert recorded(weighed) == [False, True] * 2 + [False] * 4


def test_words_of_other_text_are_learnt_too() -> None:
    """Those of unlabelled batches might be none of the labelled ones."""
    from sequst.methods.cvt import CrossViews
    from sequst.methods.metast import MetaWeightedWords
    from sequst.methods.vat import LabelledAndAdversarial

    assert LabelledWords().batch_only
    assert PseudoLabelledWords(CROSS_ENTROPY).batch_only
    assert not any(each.batch_only for each in (LabelledAndAdversarial, CrossViews, MetaWeightedWords))


def test_padding_stays_within_the_bound_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    tagger: Any = SimpleNamespace(max_length=512, pad_id=0)
    accelerator = SimpleNamespace(mixed_precision="fp16")
    steps = RecordedSteps(tagger, LabelledWords(), None, None, accelerator, rows=128, tokens=16384)
    for length, count, rows in ((500, 32, 32), (512, 32, 33), (500, 20, 32), (20, 100, 128), (20, 128, 128), (32, 128, 129)):
        windows = [Window(0, 0, [1] * length, [1], (0, 1)) for _ in range(count)]
        batch = steps._padded(collate(windows, list(range(count)), 0))
        assert len(batch.input_ids) == rows
        assert not batch.attention_mask.all()


def test_a_shape_is_recorded_when_a_step_like_it_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step of all makes state that later ones go by in another way: it is not like them."""
    done: list[str] = []
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)

    def taken(steps: RecordedSteps, batch: Batch) -> None:
        steps._settled = bool(done)
        done.append(f"taken {batch.input_ids.shape[1]}")

    def recorded(steps: RecordedSteps, batch: Batch) -> Any:
        done.append(f"recorded {batch.input_ids.shape[1]}")
        graph = SimpleNamespace(replay=lambda: done.append("replayed"))
        return graph, batch, StepResult((), torch.zeros(2)), None

    monkeypatch.setattr(Steps, "take", taken)
    monkeypatch.setattr(RecordedSteps, "_record", recorded)
    tagger: Any = SimpleNamespace(max_length=64, pad_id=0, device=torch.device("cpu"))
    key: list[Any] = [0]
    objective: Any = SimpleNamespace(graph_key=lambda: key[0], needs_fp32=False)
    steps = RecordedSteps(tagger, objective, None, None, SimpleNamespace(mixed_precision="fp16"), rows=2, tokens=16384)
    batches = {length: collate([Window(0, 0, [1] * length, [1], (0, 1))], [0], 0) for length in (10, 20)}
    for length in (10, 10, 20, 10):
        steps.take(batches[length])
    assert done == ["taken 16", "taken 16", "taken 24", "recorded 16", "replayed"]
    key[0] = 1
    steps.take(batches[10])
    assert done[5:] == ["taken 16"]  # another key is another step
    key[0] = None
    steps.take(batches[10])
    assert done[6:] == ["taken 10"]  # as it is


# On a GPU


def encoder_of(kind: str, tiny_encoder: str, folder: Path) -> str:
    if kind == "bert":
        return tiny_encoder
    tokenizer = load_tokenizer(tiny_encoder)
    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    transformers.MPNetModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def student(width: int) -> PseudoLabelledWords:
    noise = GaussianConsistency(width, weight=0.5, samples=2)
    return PseudoLabelledWords(WordLoss(10.0, warmup=0.3), noise)


def calls_of(owner: type, name: str, patch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one with every call of a method."""
    calls: list[str] = []
    kept = getattr(owner, name)

    def counted(*arguments: Any, **more: Any) -> Any:
        calls.append(name)
        return kept(*arguments, **more)

    patch.setattr(owner, name, counted)
    return calls


def refuse(steps: RecordedSteps, batch: Batch) -> Any:
    raise RuntimeError("not today")


def keep(states: list[Any], state: Any) -> None:
    states.append(copy.deepcopy(state))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("kind", "precision", "head"),
    [
        ("bert", "fp32", "softmax"),
        ("bert", "bf16", "softmax"),
        ("mpnet", "fp32", "crf"),
        ("mpnet", "bf16", "softmax"),
        ("bert", "bf16", "crf"),
    ],
)
def test_replayed_steps_are_the_steps(
    kind: str,
    precision: str,
    head: str,
    tiny_encoder: str,
    split: Split,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bit by bit, of both objectives; and a phase that is resumed ends as it would have."""
    from sequst.training.accel.adamw import FusedAdamW

    name = encoder_of(kind, tiny_encoder, tmp_path)
    replays = calls_of(torch.cuda.CUDAGraph, "replay", monkeypatch)
    updates = calls_of(FusedAdamW, "__call__", monkeypatch)
    fast_ways = calls_of(FusedEncoder, "states", monkeypatch)
    phase = PhaseSettings(learning_rate=1e-3, min_steps=40, epochs=1, batch_size=8)

    def trained(make: Any, recorded: bool, state: Any = None, **hooks: Any) -> dict[str, Tensor]:
        tagger = Tagger.from_encoder(name, labels_of(split.labeled), seed=1, head=head).to("cuda")
        windows = tagger.splitter.windows([s.words for s in split.labeled])
        selected = [[i % 3 != 0 for i in range(len(s))] for s in split.labeled]
        examples = Examples(windows, [tagger.label_ids(s.tags or ()) for s in split.labeled], selected)
        with pytest.MonkeyPatch.context() as patch:
            if not recorded:  # then it goes on step by step, with the same padding
                patch.setattr(RecordedSteps, "_record", refuse)
            accelerator = make_accelerator(Settings(device="cuda"), precision)
            spec = spec_of(examples, phase, make(tagger.encoder.width), evaluations=2)
            fit(tagger, spec, accelerator, 7, Hooks(**hooks), state)
        return weights(tagger)

    for make in (lambda width: LabelledWords(), student):
        saved: list[Any] = []
        plain = trained(make, recorded=False)
        assert not replays
        fast = trained(make, recorded=True, save=functools.partial(keep, saved), save_every=0)
        assert len(replays) > 30
        assert fast_ways
        assert updates
        assert equal(plain, fast)
        assert equal(fast, trained(make, recorded=True, state=saved[1]))
        for calls in (replays, updates, fast_ways):
            calls.clear()


@pytest.mark.gpu
def test_a_phase_leaves_no_memory_behind(tiny_encoder: str, split: Split) -> None:
    taken = []
    for _ in range(3):
        tagger = Tagger.from_encoder(tiny_encoder, labels_of(split.labeled), seed=1).to("cuda")
        examples = Examples(
            tagger.splitter.windows([s.words for s in split.labeled]), [tagger.label_ids(s.tags or ()) for s in split.labeled]
        )
        spec = spec_of(examples, objective=student(tagger.encoder.width))
        fit(tagger, spec, make_accelerator(Settings(device="cuda")), 7, Hooks())
        del tagger
        torch.cuda.empty_cache()  # as `Run` does after a phase
        taken.append(torch.cuda.memory_reserved())
    assert taken[2] <= taken[1]


@pytest.mark.gpu
@pytest.mark.parametrize("place", ["loss", "update"])
def test_what_cannot_be_recorded_is_done_step_by_step(
    place: str, tiny_encoder: str, split: Split, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording that breaks off, before or after the gradients are there, leaves nothing behind."""
    update = RecordedSteps._update

    def asking(steps: RecordedSteps) -> Tensor:
        norm = update(steps)
        float(norm)
        return norm

    class Asking(LabelledWords):
        def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
            loss, values = super().loss(tagger, batch)
            if place == "loss":
                float(loss.detach())
            return loss, values

    found = []
    for way in ("broken off", "never begun"):
        tagger, examples = start(tiny_encoder, split)
        accelerator = make_accelerator(Settings(device="cuda"))
        with pytest.MonkeyPatch.context() as patch:
            if place == "update":
                patch.setattr(RecordedSteps, "_update", asking)
            if way == "never begun":
                patch.setattr(RecordedSteps, "_record", refuse)
            fit(tagger.to("cuda"), spec_of(examples, objective=Asking()), accelerator, 7, Hooks())
        found.append(weights(tagger))
    assert "without CUDA graphs" in caplog.text
    assert equal(*found)


@pytest.mark.gpu
def test_fused_steps_are_those_of_adamw() -> None:
    """With their clipping; of weights of all sizes, one of which has no gradient now and then."""
    from sequst.training.accel.adamw import PIECE, FusedAdamW

    sizes = [(3,), (2049,), (PIECE // 64, 64), (7, 4 * PIECE + 3), (768,)]
    torch.manual_seed(0)
    weights = [torch.randn(size, device="cuda") for size in sizes]

    def optimizer(weights: list[Tensor]) -> torch.optim.AdamW:
        groups = [
            {"params": some, "lr": torch.tensor(rate, device="cuda"), "weight_decay": decay}
            for some, rate, decay in ((weights[:2], 1e-2, 0.0), (weights[2:], 3e-3, 0.1))
        ]
        return torch.optim.AdamW(groups, fused=True, capturable=True)

    ours, theirs = ([torch.nn.Parameter(weight.clone()) for weight in weights] for _ in range(2))
    one, two = optimizer(ours), optimizer(theirs)
    copies = {weight: weight.detach().bfloat16() for weight in ours[2:4]}
    fused = None
    for step in range(8):
        for own, other in zip(ours, theirs, strict=True):
            gradient = None if step == 3 and own is ours[4] else torch.randn_like(own) * (1e-3 if step % 2 else 1.0)
            own.grad, other.grad = gradient, None if gradient is None else gradient.clone()
        norm = torch.nn.utils.clip_grad_norm_(theirs, 1.0)
        two.step()
        if fused is None:
            torch.nn.utils.clip_grad_norm_(ours, 1.0)
            one.step()
            fused = FusedAdamW(one, copies, 1.0)
            assert fused.fits
            continue
        table = fused.gradients()
        assert table is not None
        torch.testing.assert_close(fused(table.cuda()), norm)
        for own, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-6)
            for name in ("step", "exp_avg", "exp_avg_sq"):
                torch.testing.assert_close(one.state[own][name], two.state[other][name], rtol=1e-4, atol=1e-8)
    for weight, copy_of in copies.items():
        assert torch.equal(copy_of, weight.detach().bfloat16())
    ours[0].grad = torch.randn(6, device="cuda")[::2]
    assert fused is not None
    assert fused.gradients() is None  # not one after the other


@pytest.mark.gpu
def test_a_state_from_a_cpu_goes_on(tiny_encoder: str, split: Split) -> None:
    states: list[Any] = []
    run(tiny_encoder, split, Hooks(save=functools.partial(keep, states), save_every=0))
    tagger, examples = start(tiny_encoder, split)
    accelerator = make_accelerator(Settings(device="cuda"))
    fit(tagger.to("cuda"), spec_of(examples), accelerator, 7, Hooks(), states[0])
    assert all(value.isfinite().all() for value in weights(tagger).values())
