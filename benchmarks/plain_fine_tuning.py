"""Fine-tuning as people do it: AutoModelForTokenClassification and the Trainer of transformers, without sequst.

python benchmarks/plain_fine_tuning.py --encoder FOLDER/mpnet --output runs.jsonl [--datasets snips,conll03] [--seeds 12,21]
    [--rate 1e-4] [--steps 600] [--batch 8] [--device cpu|cuda]

Splits and test sets are those of `sequst experiment run`, and F1 is computed as there. The first sub-word of a word carries its
label. Steps and batch size are those of fine-tuning with sequst. The rate rises for a tenth of the steps and falls to 0; weight
decay is 0.01; the last weights are scored. Each run is a line of `--output`; a run whose line is there is skipped. SEQUST_DATA
names the folder of the benchmarks.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common
import torch
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from sequst.corpus.sampling import sample
from sequst.corpus.sentence import Sentence
from sequst.evaluation.spans import Counts, score_spans
from sequst.experiments.benchmarks import read_part
from sequst.experiments.cells import current_commit
from sequst.experiments.results import KEYS
from sequst.tagger.precision import has_bf16
from sequst.tagger.tagger import labels_of

IGNORED = -100
LONGEST = 128
"""Sub-words of a sentence; words beyond are tagged O."""
SETS = "snips,multiwoz,mit_movie,mit_restaurant,conll03,ontonotes"


def features(tokenizer: Any, sentences: Sequence[Sentence], labels: list[str]) -> list[dict[str, Any]]:
    """Sub-words, and the label of a word at its first."""
    found = []
    for sentence in sentences:
        made = tokenizer(list(sentence.words), is_split_into_words=True, truncation=True, max_length=LONGEST)
        words = made.word_ids()
        first = [word is not None and (i == 0 or words[i - 1] != word) for i, word in enumerate(words)]
        tags = sentence.tags or ()
        row = [labels.index(tags[word]) if new else IGNORED for word, new in zip(words, first, strict=True)]
        found.append({"input_ids": made["input_ids"], "attention_mask": made["attention_mask"], "labels": row})
    return found


def tags_of(model: Any, tokenizer: Any, sentences: Sequence[Sentence], labels: list[str], bf16: bool) -> list[list[str]]:
    model.eval()
    found = [["O"] * len(sentence.words) for sentence in sentences]
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i].words))
    for begin in range(0, len(order), 64):
        rows = order[begin : begin + 64]
        made = tokenizer(
            [list(sentences[i].words) for i in rows], is_split_into_words=True, truncation=True, max_length=LONGEST,
            padding=True, return_tensors="pt",
        ).to(model.device)  # fmt: skip
        with torch.inference_mode(), torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
            best = model(**made).logits.argmax(-1).tolist()
        for row, i in enumerate(rows):
            for place, word in reversed(list(enumerate(made.word_ids(row)))):
                if word is not None:
                    found[i][word] = labels[best[row][place]]  # its first sub-word is written last
    return found


def one_run(
    labeled: Sequence[Sentence], test: Sequence[Sentence], encoder: str, seed: int,
    device: str = "cpu", steps: int = 600, batch: int = 8, rate: float = 1e-4,
) -> tuple[Counts, float, str]:  # fmt: skip
    """(scores on test, seconds of training, device)."""
    labels = labels_of(labeled)
    set_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(encoder, add_prefix_space=True)
    model = AutoModelForTokenClassification.from_pretrained(encoder, num_labels=len(labels), dtype=torch.float32)
    bf16 = has_bf16(torch.device(device))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, seed=seed, max_steps=steps, per_device_train_batch_size=batch, learning_rate=rate,
            warmup_steps=steps // 10, weight_decay=0.01, bf16=bf16, use_cpu=device == "cpu",
            save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True,
        )  # fmt: skip
        collator = DataCollatorForTokenClassification(tokenizer)
        rows: Any = features(tokenizer, labeled, labels)
        begun = time.perf_counter()
        Trainer(model, arguments, data_collator=collator, train_dataset=rows).train()
        seconds = time.perf_counter() - begun
    found = tags_of(model, tokenizer, test, labels, bf16)
    name = torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    counts = score_spans((sentence.tags or () for sentence in test), found).total
    return counts, seconds, name + (", bf16" if bf16 else "")


def main() -> None:
    parser = common.parser(
        __doc__, encoder="minilm", output="runs.jsonl", datasets=SETS, seeds="12,21,42,87,100", rate=1e-4, steps=600, batch=8
    )
    options = parser.parse_args()
    path = Path(options.output)
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.exists() else []
    done = {(line["dataset"], line["seed"]) for line in lines}
    for seed in map(int, options.seeds.split(",")):
        for dataset in options.datasets.split(","):
            if (dataset, seed) in done:
                continue
            data = Path(os.environ["SEQUST_DATA"])
            split = sample(read_part(data, dataset, "train"), 10, seed=seed)
            counts, seconds, device = one_run(
                split.labeled, read_part(data, dataset, "test"), options.encoder, seed, options.device, options.steps,
                options.batch, options.rate,
            )  # fmt: skip
            line = {
                "experiment": "plain-fine-tuning", "dataset": dataset, "method": "finetune",
                "encoder": Path(options.encoder).name, "head": "softmax", "shots": 10, "pool": None, "seed": seed,
                "recipe": f"Trainer rate={options.rate} steps={options.steps} batch={options.batch}", **counts.to_dict(),
                "seconds": seconds, "rounds": 0, "device": device, "commit": current_commit(), "settings_hash": "",
            }  # fmt: skip
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({name: line[name] for name in KEYS}) + "\n")
            print(f"{dataset} {seed}: {counts.f1:.2f} in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
