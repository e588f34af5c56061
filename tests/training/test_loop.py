from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sequst.corpus.sampling import Split
from sequst.methods.finetune import LabelledWords
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger, labels_of
from sequst.training import loop
from sequst.training.device import make_accelerator
from sequst.training.loop import Diverged, Examples, Hooks, PhaseResult, PhaseSpec, _schedule, fit
from sequst.training.objective import Objective
from sequst.training.settings import PhaseSettings, Settings

SHORT = PhaseSettings(learning_rate=1e-3, min_steps=20, epochs=1)


def start(encoder: str, split: Split) -> tuple[Tagger, Examples]:
    tagger = Tagger.from_encoder(encoder, labels_of(split.labeled), seed=1)
    windows = tagger.splitter.windows([s.words for s in split.labeled])
    return tagger, Examples(windows, [tagger.label_ids(s.tags or ()) for s in split.labeled])


def run(
    encoder: str, split: Split, hooks: Hooks, state: dict[str, Any] | None = None, **options: Any
) -> tuple[Tagger, PhaseResult]:
    tagger, examples = start(encoder, split)
    accelerator = make_accelerator(Settings(device="cpu"))
    return tagger, fit(tagger, spec_of(examples, **options), accelerator, 7, hooks, state)


def spec_of(examples: Examples, phase: PhaseSettings = SHORT, objective: Objective | None = None, **more: Any) -> PhaseSpec:
    return PhaseSpec("teacher", 0, phase, examples, objective or LabelledWords(), **{"evaluations": 4, **more})


def weights(tagger: Tagger) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in tagger.state_dict().items()}


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def test_the_schedule_rises_then_falls() -> None:
    rates = [_schedule(step, 20) for step in range(20)]
    assert rates[:3] == [pytest.approx(1 / 3), pytest.approx(2 / 3), pytest.approx(1.0)]
    assert rates[3:] == sorted(rates[3:], reverse=True)
    assert rates[-1] == pytest.approx(1 / 18)


def test_it_learns_and_is_the_same_every_time(tiny_encoder: str, split: Split) -> None:
    options: dict[str, Any] = {"phase": PhaseSettings(learning_rate=3e-3, min_steps=120), "head_rate": 1.0, "evaluations": 3}
    lines: list[dict[str, Any]] = []
    first, outcome = run(tiny_encoder, split, Hooks(record=lines.append), **options)
    second, _ = run(tiny_encoder, split, Hooks(), **options)
    assert equal(weights(first), weights(second))
    assert [line["step"] for line in lines] == [40, 80, 120]
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]
    assert outcome.steps == 120


def test_the_objective_hears_how_far_the_phase_is(tiny_encoder: str, split: Split) -> None:
    class Listening(LabelledWords):
        def __init__(self) -> None:
            self.heard: list[tuple[int, int]] = []

        def begin_step(self, step: int, steps: int) -> None:
            self.heard.append((step, steps))

    objective = Listening()
    run(tiny_encoder, split, Hooks(), objective=objective)
    assert objective.heard == [(step, 20) for step in range(20)]


def test_epochs_or_min_steps_whichever_is_more_and_no_more_than_max_steps(tiny_encoder: str, split: Split) -> None:
    # 25 sentences in batches of 8 are 4 steps an epoch
    assert run(tiny_encoder, split, Hooks(), phase=PhaseSettings(epochs=2, min_steps=3))[1].steps == 8
    assert run(tiny_encoder, split, Hooks(), phase=PhaseSettings(epochs=2, min_steps=10))[1].steps == 10
    assert run(tiny_encoder, split, Hooks(), phase=PhaseSettings(epochs=0.5, min_steps=0))[1].steps == 2
    assert run(tiny_encoder, split, Hooks(), phase=PhaseSettings(epochs=2, min_steps=10, max_steps=5))[1].steps == 5
    assert run(tiny_encoder, split, Hooks(), phase=PhaseSettings(epochs=2, min_steps=3, max_steps=50))[1].steps == 8


@pytest.mark.parametrize(
    ("given", "best"),
    [([10.0, 30.0, 20.0, 29.9], 1), ([10.0, 30.0, 30.0, 20.0], 2), ([0.0, 0.0, 0.0, 0.0], 3)],  # of equals the later
)
def test_the_best_weights_are_kept(tiny_encoder: str, split: Split, given: list[float], best: int) -> None:
    seen: list[dict[str, Tensor]] = []
    scores = iter(given)

    def score(tagger: Tagger) -> float:
        seen.append(weights(tagger))
        return next(scores)

    tagger, outcome = run(tiny_encoder, split, Hooks(score=score), objective=WholeTable())
    assert (outcome.best_step, outcome.dev_f1) == (5 * (best + 1), max(given))
    assert equal(weights(tagger), seen[best])
    assert not equal(weights(tagger), seen[best - 1])


def test_a_phase_resumed_from_any_state_ends_the_same(tiny_encoder: str, split: Split) -> None:
    states: list[dict[str, Any]] = []

    def keep(state: dict[str, Any]) -> None:
        states.append(copy.deepcopy(state))

    scores = {5: 1.0, 10: 5.0, 15: 2.0, 20: 3.0}
    calls: list[int] = []

    def score(tagger: Tagger) -> float:
        calls.append(5 * (len(calls) + 1))
        return scores[calls[-1]]

    tagger, outcome = run(tiny_encoder, split, Hooks(score=score, save=keep, save_every=0))
    assert len(states) == 4  # after every epoch but the last
    for state in states:
        calls[:] = [s for s in (5, 10, 15, 20) if s <= state["position"]["step"]]
        again, resumed = run(tiny_encoder, split, Hooks(score=score), state=state)
        assert equal(weights(again), weights(tagger))
        assert (resumed.best_step, resumed.dev_f1, resumed.loss) == (outcome.best_step, outcome.dev_f1, outcome.loss)


@pytest.mark.parametrize("bad", [3, 18])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("every", [1, 99])
def test_a_loss_that_is_not_finite_is_named_with_its_step(
    tiny_encoder: str, split: Split, monkeypatch: pytest.MonkeyPatch, bad: int, value: float, every: int
) -> None:
    """However late the losses are looked at."""
    monkeypatch.setattr(loop, "_look_every", lambda device: every)
    calls = 0

    class Breaking(LabelledWords):
        batch_only = False  # states are whole

        def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
            nonlocal calls
            calls += 1
            loss, values = super().loss(tagger, batch)
            return (loss * value if calls == bad else loss), values

    tagger, examples = start(tiny_encoder, split)
    with pytest.raises(Diverged, match=f"the loss is not finite at step {bad} of 20"):
        fit(tagger, spec_of(examples, objective=Breaking()), make_accelerator(Settings(device="cpu")), 7, Hooks())


def test_a_reported_value_that_is_not_finite_stops_the_phase(tiny_encoder: str, split: Split) -> None:
    class Telling(LabelledWords):
        def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
            return super().loss(tagger, batch)[0], {"weighed": torch.tensor(math.nan)}

    tagger, examples = start(tiny_encoder, split)
    with pytest.raises(Diverged, match="weighed is not finite at step 1 of 20"):
        fit(tagger, spec_of(examples, objective=Telling()), make_accelerator(Settings(device="cpu")), 7, Hooks())


def test_weights_that_blow_up_stop_the_phase(tiny_encoder: str, split: Split) -> None:
    tagger, examples = start(tiny_encoder, split)
    wild = spec_of(examples, PhaseSettings(learning_rate=1e38, min_steps=20, epochs=1), head_rate=1.0)
    with pytest.raises(Diverged, match="is not finite at step"):
        fit(tagger, wild, make_accelerator(Settings(device="cpu")), 7, Hooks())


def test_the_learning_rate_of_the_head_is_its_own(tiny_encoder: str, split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sequst.training.loop.WEIGHT_DECAY", 0.0)
    before = weights(start(tiny_encoder, split)[0])
    phase = PhaseSettings(learning_rate=1e-3, epochs=1, min_steps=4)
    after = weights(run(tiny_encoder, split, Hooks(), phase=phase, head_rate=1e-27)[0])
    change = {name: float((after[name] - before[name]).abs().sum()) for name in before}
    head = sum(value for name, value in change.items() if name.startswith("head.linear"))
    assert head < 1e-9
    assert sum(change.values()) - head > 1


class Noisy(LabelledWords):
    """An objective with a net, noise of its own and a value to report."""

    def __init__(self) -> None:
        self.nets = nn.Linear(32, 1)
        nn.init.constant_(self.nets.weight, 0.1)
        nn.init.zeros_(self.nets.bias)

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        loss, _ = super().loss(tagger, batch)
        hidden = tagger.hidden(batch)
        noise = torch.randn(hidden.shape, generator=self.generator)
        extra = self.nets(hidden * noise).pow(2).mean()
        return loss + extra, {"extra": extra.detach()}


class WholeTable(LabelledWords):
    batch_only = False


def test_words_that_a_phase_does_not_meet_stay_as_they_are(
    tiny_encoder: str, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all else becomes what it would have become with them; without decay, they too."""
    seen: list[int] = []

    def score(tagger: Tagger) -> float:
        seen.append(len(tagger.encoder.model.get_input_embeddings().weight))  # type: ignore[operator, union-attr]
        tagger.predict([list(sentence.words) for sentence in split.dev])  # of which many words are new
        return float(len(seen))

    def trained(decay: float, objective: LabelledWords) -> dict[str, Tensor]:
        monkeypatch.setattr("sequst.training.loop.WEIGHT_DECAY", decay)
        return weights(run(tiny_encoder, split, Hooks(score=score), objective=objective)[0])

    before, examples = start(tiny_encoder, split)
    [name] = [each for each in before.state_dict() if each.endswith("word_embeddings.weight")]
    met = torch.tensor(sorted({id_ for window in examples.windows for id_ in window.ids}))
    always = torch.tensor([before.pad_id, before.encoder.mask_id])
    unmet = torch.ones(len(before.state_dict()[name]), dtype=torch.bool).index_fill(0, torch.cat([met, always]), False)
    part, whole = trained(0.0, LabelledWords()), trained(0.0, WholeTable())
    assert set(seen[:4]) == {len(met) + len(always)}
    assert set(seen[4:]) == {len(unmet)}
    for each, value in whole.items():
        torch.testing.assert_close(part[each], value)
    assert not torch.equal(part[name][met], before.state_dict()[name][met])
    part, whole = trained(0.1, LabelledWords()), trained(0.1, WholeTable())
    assert torch.equal(part[name][unmet], before.state_dict()[name][unmet])
    torch.testing.assert_close(part[name][met], whole[name][met])
    assert not torch.equal(whole[name][unmet], before.state_dict()[name][unmet])


def test_nets_beside_the_tagger_learn_report_and_resume(tiny_encoder: str, split: Split) -> None:
    states: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    objective = Noisy()
    hooks = Hooks(save=lambda state: states.append(copy.deepcopy(state)), save_every=0, record=lines.append)
    tagger, _ = run(tiny_encoder, split, hooks, objective=objective)
    assert not torch.equal(objective.nets.weight, Noisy().nets.weight)
    assert all(line["extra"] > 0 for line in lines)
    assert not any("nets" in name for name in tagger.state_dict())
    for state in states:
        resumed = Noisy()
        again, _ = run(tiny_encoder, split, Hooks(), state=state, objective=resumed)
        assert equal(weights(again), weights(tagger))
        assert torch.equal(resumed.nets.weight, objective.nets.weight)
