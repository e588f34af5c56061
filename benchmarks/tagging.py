"""What plain tagging costs: words a second, ours and the ways it is usually done, in one process.

python benchmarks/tagging.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--sentences N] [--threads N]

- pipeline at 1 and at 32: transformers' `pipeline("token-classification")` on the words joined by spaces, sentences as they
  come, one and 32 at a time
- onnxruntime in fp32 and int8: the exported model in batches of 32 padded to their longest; where onnx and onnxruntime are
  installed, which `left_out` tells
- ours: `annotate`, from words to tags and confidences
- the pipeline at 32 and ours in bf16, on a CPU that has it

Sentences are of CoNLL-03's training set where SEQUST_DATA names the benchmarks, else of the generated corpus. Before time is
taken, all are compared word by word with transformers' own forward of every sentence for itself: `agreement` is the share of
words whose tag is the same, and all but int8 and bf16 must have 99.9 % of them. The pipeline cuts words at punctuation as its
tokenizer does; a word's tag is that of its first sub-word, by its place in the text. So that tags differ from word to word,
the classifier, which has learnt nothing, is drawn wide.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
import torch
import transformers

from sequst.corpus.sentence import Sentence
from sequst.tagger.batches import collate
from sequst.tagger.precision import has_bf16, in_precision
from sequst.tagger.predict import annotate
from sequst.tagger.tagger import Tagger

ROWS, ROUNDED = 32, ("int8", "bf16")
Contender = Callable[[list[Sentence]], list[list[str]]]
"""The tags of every sentence."""


def reference(tagger: Tagger, sentences: list[Sentence]) -> list[list[str]]:
    """Of transformers' own forward, a window at a time, in fp32."""
    windows = tagger.splitter.windows([sentence.words for sentence in sentences])
    tags: list[list[str]] = [[] for _ in sentences]
    with torch.inference_mode():
        for i, window in enumerate(windows):
            batch = collate(windows, [i], tagger.pad_id).to(tagger.device)
            found = tagger.decode(batch).labels[batch.owned].tolist()
            tags[window.sentence] += [tagger.labels[label] for label in found]
    return tags


def ours(tagger: Tagger, precision: str = "fp32") -> Contender:
    def run(sentences: list[Sentence]) -> list[list[str]]:
        with in_precision(tagger.device, precision):
            return [list(prediction.tags) for prediction in annotate(tagger, sentences)]

    return run


def pipeline(folder: Path, device: str, rows: int, dtype: torch.dtype = torch.float32) -> Contender:
    tag = transformers.pipeline("token-classification", model=str(folder), device=device, dtype=dtype, ignore_labels=[])

    def run(sentences: list[Sentence]) -> list[list[str]]:
        found = tag([" ".join(sentence.words) for sentence in sentences], batch_size=rows)
        return [_by_place(sentence, pieces) for sentence, pieces in zip(sentences, found, strict=True)]

    return run


def _by_place(sentence: Sentence, pieces: list[dict[str, Any]]) -> list[str]:
    """The tag of the first sub-word of every word; a word of which the tokenizer makes nothing has none, and so O."""
    tags, start, places = [], 0, iter([*pieces, {"start": 1 << 60, "entity": "O"}])
    piece = next(places)
    for word in sentence.words:
        while piece["start"] < start:
            piece = next(places)
        tags.append(piece["entity"] if piece["start"] < start + len(word) else "O")
        start += len(word) + 1
    return tags


def onnx(tagger: Tagger, folder: Path, threads: int, eight_bits: bool) -> Contender:
    """Raises ImportError where what it needs is not installed."""
    import onnx  # noqa: F401
    import onnxruntime
    from onnxruntime.quantization import quantize_dynamic

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = transformers.AutoModelForTokenClassification.from_pretrained(folder).eval()

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=input_ids, attention_mask=attention_mask).logits

    path = folder / "model.onnx"
    if not path.is_file():
        example = torch.ones(2, 7, dtype=torch.long)
        axes = {0: "rows", 1: "length"}
        names = ["input_ids", "attention_mask"]
        torch.onnx.export(
            Plain(), (example, example), str(path), input_names=names, output_names=["logits"],
            dynamic_axes=dict.fromkeys((*names, "logits"), axes), dynamo=False,
        )  # fmt: skip
    if eight_bits:
        quantize_dynamic(str(path), str(folder / "int8.onnx"))
    setup = onnxruntime.SessionOptions()
    setup.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(folder / "int8.onnx" if eight_bits else path), setup)

    def run(sentences: list[Sentence]) -> list[list[str]]:
        windows = tagger.splitter.windows([sentence.words for sentence in sentences])
        tags: list[list[str]] = [[] for _ in sentences]
        for start in range(0, len(windows), ROWS):
            batch = collate(windows, list(range(start, min(start + ROWS, len(windows)))), tagger.pad_id)
            inputs = {"input_ids": batch.input_ids.numpy(), "attention_mask": batch.attention_mask.numpy()}
            best = np.take_along_axis(session.run(None, inputs)[0].argmax(-1), batch.heads.numpy(), 1)
            for row, mine, window in zip(best, batch.owned.numpy(), windows[start : start + ROWS], strict=True):
                tags[window.sentence] += [tagger.labels[label] for label in row[mine]]
        return tags

    return run


def contenders(tagger: Tagger, folder: Path, device: str, threads: int) -> tuple[dict[str, Contender], list[str]]:
    """(by name, those that cannot be had here)."""
    found = {"ours": ours(tagger), "pipeline": pipeline(folder, device, 1), "pipeline at 32": pipeline(folder, device, ROWS)}
    left_out = []
    if device == "cpu" and has_bf16(tagger.device):
        found["ours, bf16"] = ours(tagger, "bf16")
        found["pipeline at 32, bf16"] = pipeline(folder, device, ROWS, torch.bfloat16)
    for name, eight_bits in (("onnxruntime", False), ("onnxruntime, int8", True)) if device == "cpu" else ():
        try:
            found[name] = onnx(tagger, folder, threads, eight_bits)
        except ImportError as missing:
            left_out.append(f"{name}: {missing}")
    return found, left_out


def agreement(expected: list[list[str]], found: list[list[str]]) -> float:
    same = [one == two for ours, theirs in zip(expected, found, strict=True) for one, two in zip(ours, theirs, strict=True)]
    return sum(same) / len(same)


def measure(tagger: Tagger, sentences: list[Sentence], device: str, threads: int, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(folder)
        tagger = Tagger.load(folder, device)
        found, left_out = contenders(tagger, Path(folder), device, threads)
        few = sentences[:200]
        expected = reference(tagger, few)
        agree = {name: agreement(expected, contender(few)) for name, contender in found.items()}
        for name, share in agree.items():
            assert share >= 0.999 or name.endswith(ROUNDED), f"{name} does not give the same tags: {share:.4f}"
        calls = {name: lambda contender=contender: contender(sentences) for name, contender in found.items()}
        times = common.interleaved(calls, repeats)
    words = sum(map(len, sentences))
    speed = common.rates(times, words)
    return {
        "words_a_second": speed,
        "ratio": {name: speed["ours"]["median"] / rate["median"] for name, rate in speed.items() if name != "ours"},
        "agreement": agree,
        "left_out": left_out,
        "words": words,
    }


def main() -> None:
    options = common.options(__doc__, encoder="minilm", sentences=1000, repeats=3)
    data, sentences = common.sentences(options.sentences)
    tagger = Tagger.from_encoder(options.encoder, common.LABELS, seed=1, max_length=128)
    with torch.no_grad():
        tagger.head.linear.weight.mul_(50)
    found = measure(tagger, sentences, options.device, options.threads, options.repeats)
    more = {"sentences": len(sentences), "encoder": options.encoder, "data": data, "repeats": options.repeats}
    common.tell({**found, **more, **common.machine(options.device)}, options.json)


if __name__ == "__main__":
    main()
