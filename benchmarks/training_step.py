"""What a student's training costs: words a second, ours and a transformers Trainer with the same loss, batch size and steps.

python benchmarks/training_step.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--sentences N] [--steps N] [--rows 32]
    [--eager 1] [--trainer 1]

The loss is that of SeqUST's student: PHCE of the selected words and GCR with K = 3 perturbations. Every contender begins with
the same weights and takes the same number of steps of `--rows` sentences at the same rates; time is that of the whole call, so
ours pays for the graphs that it records.

- Trainer: at its defaults; neither it nor the next with `--trainer 0`
- Trainer, bf16 and like lengths: `bf16`, where the machine has it, and `train_sampling_strategy="group_by_length"`
- ours, in bf16 where the machine has it; on such a CPU in fp32 as well
- ours, weighed: the labels as weighed words carry them, here with the same weights for all, so that the same is learnt
- ours, whole table: vectors of words that do not occur are trained too, as the Trainer does
- ours without graphs: every kernel launched by itself; on a GPU, unless `--eager 0`

That all learn the same is checked first: the loss of the selected words under the weights that each leaves, without dropout, on
the same sentences. `loss_before` is that of the weights they begin with.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments

from sequst.methods.self_training import PseudoLabelledWords
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import WordLoss
from sequst.tagger.batches import Batch, collate
from sequst.tagger.precision import has_bf16
from sequst.tagger.tagger import Tagger
from sequst.training.loop import Examples, Hooks, PhaseSpec, batches_of, fit
from sequst.training.settings import PhaseSettings

RATE, WARMUP, NORM = 5e-5, 0.1, 1.0
RATIOS = {
    "Trainer": "ratio_trainer",
    "Trainer, bf16 and like lengths": "ratio_trainer_bf16_grouped",
    "ours, whole table": "ratio_whole_table",
    "ours, weighed": "ratio_weighed",
}
APART = 0.15
"""How far losses may be apart, as a share of what was learnt: orders and masks differ."""


def objective(width: int) -> PseudoLabelledWords:
    return PseudoLabelledWords(WordLoss(tau=11.25), GaussianConsistency(width, weight=0.5, samples=3))


def examples(tagger: Tagger, sentences: list[Any]) -> Examples:
    """The true tags stand for pseudo-labels, and half of the words are selected."""
    rng = np.random.default_rng(1)
    labels = [[i % len(tagger.labels) for i in range(len(s))] if s.tags is None else _ids(tagger, s.tags) for s in sentences]
    selected = [(rng.random(len(s)) < 0.5).tolist() for s in sentences]
    return Examples(tagger.splitter.windows([s.words for s in sentences]), labels, selected)


def _ids(tagger: Tagger, tags: Any) -> list[int]:
    index = {label: i for i, label in enumerate(tagger.labels)}
    return [index.get(tag, 0) for tag in tags]


class Wrapped(nn.Module):
    """A tagger and its objective as a model that returns its loss."""

    def __init__(self, tagger: Tagger) -> None:
        super().__init__()
        self.tagger = tagger
        self.objective = objective(tagger.encoder.width)
        self.nets = self.objective.nets
        self.objective.begin_step(1, 1)
        self.seeded = False

    def forward(self, **parts: Any) -> dict[str, Tensor]:
        if not self.seeded:
            self.objective.generator = torch.Generator(self.tagger.device).manual_seed(1)
            self.seeded = True
        labels = parts.pop("targets")
        batch = Batch(**parts, labels=labels, windows=[], lengths=[], sizes=[], places=parts["opens"])
        return {"loss": self.objective.loss(self.tagger, batch)[0]}


class Windows(torch.utils.data.Dataset[dict[str, Any]]):
    def __init__(self, known: Examples) -> None:
        self.known = known

    def __len__(self) -> int:
        return len(self.known.windows)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"row": i, "input_ids": self.known.windows[i].ids}


def trainer(tagger: Tagger, known: Examples, steps: int, rows: int, folder: Path, **more: Any) -> None:
    model = Wrapped(tagger)

    def collated(chosen: list[dict[str, Any]]) -> dict[str, Tensor]:
        batch = collate(known.windows, [each["row"] for each in chosen], tagger.pad_id, known.labels, known.selected)
        names = ("input_ids", "attention_mask", "heads", "word_mask", "owned", "selected", "opens")
        return {**{name: getattr(batch, name) for name in names}, "targets": batch.labels}

    AcceleratorState._reset_state(reset_partial_state=True)
    settings = TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=rows, max_steps=steps, learning_rate=RATE, warmup_steps=WARMUP,
        weight_decay=0.01, max_grad_norm=NORM, save_strategy="no", report_to="none", disable_tqdm=True, logging_strategy="no",
        remove_unused_columns=False, use_cpu=tagger.device.type == "cpu", **more,
    )  # fmt: skip
    Trainer(model, settings, data_collator=collated, train_dataset=Windows(known)).train()


def ours(tagger: Tagger, known: Examples, steps: int, rows: int, bf16: bool, whole: bool = False) -> None:
    phase = PhaseSettings(RATE, epochs=steps / -(-len(known.windows) // rows), min_steps=0, batch_size=rows)
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(mixed_precision="bf16" if bf16 else "no", cpu=tagger.device.type == "cpu")
    task = objective(tagger.encoder.width)
    task.batch_only = not whole
    fit(tagger, PhaseSpec("student", 1, phase, known, task, head_rate=1.0), accelerator, 1, Hooks())


@torch.inference_mode()
def loss_of(tagger: Tagger, known: Examples) -> float:
    """The mean loss of batches of like length."""
    tagger.eval()
    task = PseudoLabelledWords(WordLoss(tau=11.25))
    return statistics.mean(task.loss(tagger, batch)[0].item() for batch in batches_of(known, tagger))


def main() -> None:
    options = common.options(__doc__, encoder="minilm", sentences=3200, steps=400, rows=32, repeats=3, eager=1, trainer=1)
    on_gpu = options.device == "cuda"
    data, sentences = common.sentences(options.sentences)
    with tempfile.TemporaryDirectory() as folder:
        name = common.encoder(options.encoder, Path(folder) / "encoder")
        first = Tagger.from_encoder(name, common.LABELS, seed=1)
        known = examples(first, sentences)
        weights = {key: value.clone() for key, value in first.state_dict().items()}
        tagger = first.to(options.device)
        bf16 = has_bf16(tagger.device)
        grouped = {"train_sampling_strategy": "group_by_length", "bf16": bf16}

        def contender(call: Callable[[], None]) -> Callable[[], None]:
            def run() -> None:
                tagger.load_state_dict(weights)
                torch.manual_seed(1)
                call()

            return run

        given = tagger, known, options.steps, options.rows
        weighed = known._replace(weights=[np.ones(len(ids), dtype=np.float32) for ids in known.labels])
        calls: dict[str, Any] = {
            "ours": lambda: ours(*given, bf16),
            "ours, weighed": lambda: ours(tagger, weighed, *given[2:], bf16),
            "ours, whole table": lambda: ours(*given, bf16, whole=True),
        }
        if options.trainer:
            calls["Trainer"] = lambda: trainer(*given, Path(folder))
            calls["Trainer, bf16 and like lengths"] = lambda: trainer(*given, Path(folder), **grouped)
        if on_gpu and options.eager:
            calls["ours without graphs"] = lambda: without_graphs(lambda: ours(*given, bf16))
        if bf16 and not on_gpu:
            calls["ours, fp32"] = lambda: ours(*given, False)
        contenders = {name: contender(call) for name, call in calls.items()}
        before, after = loss_of(tagger, known), {}
        for name, run in contenders.items():  # and kernels are built, and memory is taken
            run()
            after[name] = loss_of(tagger, known)
        learnt = after["Trainer" if options.trainer else "ours, whole table"]
        for name, loss in after.items():
            apart = abs(loss - learnt) / abs(before - learnt)
            assert apart < APART, f"{name} does not learn the same: from {before:.3f} to {after}"
        times = common.interleaved(contenders, options.repeats)
    mean = sum(map(len, sentences)) / len(sentences)
    speed = common.rates(times, options.steps * options.rows * mean)
    fast = speed["ours"]["median"]
    found = {
        "words_a_second": speed,
        "milliseconds_a_step": {name: 1000 * statistics.median(taken) / options.steps for name, taken in times.items()},
        **{key: fast / speed[name]["median"] for name, key in RATIOS.items() if name in speed},
        "loss_before": before,
        "loss_after": after,
        "encoder": options.encoder, "data": data, "sentences": len(sentences), "steps": options.steps, "batch": options.rows,
        "repeats": options.repeats, **common.machine(options.device),
    }  # fmt: skip
    common.tell(found, options.json)


def without_graphs(call: Callable[[], None]) -> None:
    with common.plain_path():
        call()


if __name__ == "__main__":
    main()
