"""Whether a pool of any size can be annotated, chosen or learnt from: seconds and memory of `sequst predict --uncertainty`,
`sequst next` or `sequst train --unlabeled`, from disk and to disk.

python benchmarks/memory.py [--json FILE] [--sentences N] [--passes T] [--verb predict|next|train]

The tagger has a randomly initialised BERT of 2 layers x 64; its sentences are generated, written to a file before anything is
measured, and never held together. The verb runs as a process of its own, once on a tenth of them and once on all; its resident
memory is sampled ten times a second. `over_the_model` is the most of it beyond that of a run on one sentence (`train`: 100),
`at` what it was, beyond the same, after every tenth of the time: flat, where it does not grow with what has been read. `growth`
is how many times as long all took as a tenth. That every sentence came out, in order, is checked; of `next`, that all it chose
are different; of `train`, whose phases are short, that it learnt from no more sentences than its rounds take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import torch
import transformers

from sequst.corpus.formats.jsonl import jsonl_line, write_jsonl
from sequst.corpus.generated import generate
from sequst.tagger.tagger import Tagger, labels_of
from sequst.training.settings import Settings

STEP = 10_000
"""Sentences that are generated at a time."""


def random_tagger(folder: Path) -> Path:
    """A BERT with the words of the generated corpus as its vocabulary, saved."""
    import tokenizers

    corpus = generate()
    characters = [chr(code) for code in range(33, 127)]
    words = sorted({word.lower() for sentence in corpus.pool for word in sentence.words})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = list(dict.fromkeys([*special, *characters, *(f"##{character}" for character in characters), *words]))
    backend = tokenizers.BertWordPieceTokenizer(vocab={word: i for i, word in enumerate(vocabulary)}, lowercase=True)
    encoder = folder / "encoder"
    transformers.BertTokenizerFast(tokenizer_object=backend._tokenizer).save_pretrained(encoder)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=256,
        max_position_embeddings=128,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(encoder)
    Tagger.from_encoder(str(encoder), labels_of(corpus.pool), seed=1).save(folder / "model")
    return folder / "model"


def write_sentences(path: Path, count: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, count, STEP):
            some = generate(seed=start, pool=min(STEP, count - start), test=0).pool
            file.writelines(jsonl_line(sentence.without_tags()) for sentence in some)


def run_verb(verb: str, model: Path, source: Path, passes: int) -> tuple[float, list[tuple[float, float]]]:
    """(seconds, (seconds since the beginning, MB of resident memory)...) of the verb on a file."""
    output = source.with_suffix(".out.jsonl")
    command = [sys.executable, "-m", "sequst", verb, "--output", str(output), "--device", "cpu"]
    if verb == "train":
        write_jsonl(source.with_name("labeled.jsonl"), generate(seed=1, pool=50, test=0).pool)
        command += ["--labeled", str(source.with_name("labeled.jsonl")), "--unlabeled", str(source)]
        command += ["--encoder", str(model.with_name("encoder")), f"--set=uncertainty.passes={passes}"]
        command += ["--set=teacher.learning_rate=1e-3", "--set=student.max_steps=100", "--set=retune.max_steps=100"]
    else:
        command += [str(model), str(source), "--passes", str(passes), *(["--uncertainty"] if verb == "predict" else [])]
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    samples: list[tuple[float, float]] = []
    while process.poll() is None:
        samples.append((time.perf_counter() - begun, _resident(process.pid)))
        time.sleep(0.1)
    seconds = time.perf_counter() - begun
    assert process.returncode == 0, "the verb failed"
    if verb == "predict":
        _require_all(source, output)
    elif verb == "train":
        most = Settings().max_rounds * Settings().round_size
        learnt = json.loads((output / "summary.json").read_text(encoding="utf-8"))["unlabeled_sentences"]
        with source.open(encoding="utf-8") as given:
            assert learnt == min(most, sum(1 for _ in given)), "other sentences were learnt"
    else:
        _require_different(output)
    return seconds, samples


def _resident(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):  # it has ended
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _require_all(source: Path, output: Path) -> None:
    with source.open(encoding="utf-8") as given, output.open(encoding="utf-8") as found:
        for one, two in zip(given, found, strict=True):
            line = json.loads(two)
            assert line["words"] == json.loads(one)["words"], "a line is missing or out of order"
            assert len(line["confidence"]) == len(line["words"])


def _require_different(output: Path) -> None:
    with output.open(encoding="utf-8") as found:
        chosen = [tuple(json.loads(line)["words"]) for line in found]
    assert len(set(chosen)) == len(chosen) > 0, "a sentence was chosen twice"


def measure(folder: Path, sentences: int, passes: int, verb: str) -> dict[str, Any]:
    model = random_tagger(folder)
    found: dict[str, tuple[float, list[tuple[float, float]]]] = {}
    for name, count in (("one", 100 if verb == "train" else 1), ("tenth", sentences // 10), ("all", sentences)):
        write_sentences(folder / f"{name}.jsonl", count)
        found[name] = run_verb(verb, model, folder / f"{name}.jsonl", passes)
    start, loaded = found["one"][0], max(memory for _, memory in found["one"][1])
    seconds, samples = found["all"]
    tenths = [min(samples, key=lambda sample: abs(sample[0] - seconds * part / 10))[1] for part in range(1, 10)]
    return {
        "seconds": seconds,
        "sentences_a_second": sentences / (seconds - start),
        "seconds_to_begin": start,
        "growth": (seconds - start) / (found["tenth"][0] - start),
        "loaded_megabytes": loaded,
        "over_the_model_megabytes": max(memory for _, memory in samples) - loaded,
        "over_the_model_of_a_tenth_megabytes": max(memory for _, memory in found["tenth"][1]) - loaded,
        "at_every_tenth_megabytes": [memory - loaded for memory in tenths],
    }


def main() -> None:
    parser = common.parser(__doc__, sentences=1_000_000, passes=20, verb="predict")
    parser.add_argument("--folder", type=Path, default=None, help="where the files are written; else the system's own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = measure(Path(folder), options.sentences, options.passes, options.verb)
    asked = common.asked(options, "verb", "sentences", "passes")
    common.tell({**found, **asked, **common.machine("cpu")}, options.json)


if __name__ == "__main__":
    main()
