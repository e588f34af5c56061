"""What the benchmarks have in common: sentences, encoders, the machine, and how figures are told."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers

from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.experiments.benchmarks import read_part
from sequst.tagger.accel.layers import Layers
from sequst.tagger.encoders.pretrained import load_tokenizer
from sequst.tagger.tagger import Tagger

LABELS = ["O", *(f"{place}-{type_}" for type_ in ("PER", "LOC", "ORG", "MISC") for place in "BI")]
SHAPES: dict[str, Callable[[], Any]] = {
    "bert-base-shape": lambda: transformers.BertForTokenClassification(transformers.BertConfig()),
    "mpnet-base-shape": lambda: transformers.MPNetForTokenClassification(transformers.MPNetConfig()),
    "xlm-roberta-base-shape": lambda: transformers.XLMRobertaForTokenClassification(
        transformers.XLMRobertaConfig(vocab_size=250002, max_position_embeddings=514, type_vocab_size=1)
    ),
}
"""Encoders with random weights: as fast as learnt ones, and no download."""


def options(doc: str | None, **defaults: Any) -> argparse.Namespace:
    """What is asked for; torch has the threads then."""
    found = parser(doc, threads=torch.get_num_threads(), **defaults).parse_args()
    torch.set_num_threads(found.threads)
    return found


def parser(doc: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """The options that all have: where to write, on what to run, and what is its default elsewhere."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser


def benchmark(name: str) -> tuple[str, list[Sentence], list[Sentence]]:
    """(its name, training set, test set) of a benchmark where SEQUST_DATA names the folder, else of the generated corpus."""
    data = os.environ.get("SEQUST_DATA")
    if data:
        return name, read_part(Path(data), name, "train"), read_part(Path(data), name, "test")
    corpus = generate()
    return "generated", corpus.pool, corpus.test


def every(sentences: list[Sentence], count: int | None) -> list[Sentence]:
    """So many of them, spread over all, that lengths are as they are; all without a number."""
    return sentences[:: max(1, len(sentences) // count)][:count] if count else sentences


def sentences(count: int | None = None) -> tuple[str, list[Sentence]]:
    """(the name of the data, sentences of the training set of CoNLL-03 or of the generated corpus)."""
    name, train_set, _ = benchmark("conll03")
    return name, every(train_set, count)


def encoder(name: str, folder: Path) -> str:
    """The encoder of this name; one of `SHAPES` is made in the folder, with the words of minilm or of the encoder in
    SEQUST_TOKENIZER."""
    if name not in SHAPES:
        return name
    torch.manual_seed(0)
    SHAPES[name]().save_pretrained(folder)
    load_tokenizer(os.environ.get("SEQUST_TOKENIZER", "minilm")).save_pretrained(folder)
    return str(folder)


@contextlib.contextmanager
def plain_path() -> Iterator[None]:
    """Within it encoders go through transformers' own forward, and training steps kernel by kernel."""
    with mock.patch.object(Layers, "of", return_value=None):
        yield


def interleaved(contenders: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every contender in every repeat, turn by turn."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            begun = time.perf_counter()
            contender()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            times[name].append(time.perf_counter() - begun)
    return times


def rates(times: dict[str, list[float]], count: float) -> dict[str, dict[str, float]]:
    """How much of something a second: the median, the least and the most."""
    return {
        name: {"median": count / statistics.median(taken), "least": count / max(taken), "most": count / min(taken)}
        for name, taken in times.items()
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """The mean over the seeds, and their standard deviation where there are several."""
    return {"mean": statistics.fmean(values), "deviation": statistics.stdev(values) if len(values) > 1 else 0.0}


def limit(device: torch.device, dtype: torch.dtype) -> float:
    """Multiplications and additions a second of a plain matrix product."""
    size = 8192 if device.type == "cuda" else 2048
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    times = []
    for _ in range(8):
        begun = time.perf_counter()
        float((a @ b)[0, 0])
        times.append(time.perf_counter() - begun)
    return float(2 * size**3 / min(times))


def operations(tagger: Tagger, sentences: list[Sentence]) -> float:
    """Those of the encoder's linear layers and attention in one pass over the sub-words, padding left out."""
    config: Any = tagger.encoder.model.config
    width, layers, inner = config.hidden_size, config.num_hidden_layers, config.intermediate_size
    lengths = [len(window.ids) for window in tagger.splitter.windows([sentence.words for sentence in sentences])]
    linear = 2 * layers * (4 * width**2 + 2 * width * inner) * sum(lengths)
    return float(linear + 4 * layers * width * sum(length**2 for length in lengths))


def asked(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names}


def machine(device: str) -> dict[str, Any]:
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine()
    return {
        "machine": name,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def tell(found: dict[str, Any], path: Path | None) -> None:
    text = json.dumps(found, indent=2)
    print(text)
    if path is not None:
        path.write_text(text + "\n", encoding="utf-8")
