"""What MC dropout costs: words a second at T passes, ours and the ways it is usually done, in one process.

python benchmarks/mc_dropout.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--sentences N] [--passes T] [--threads N]

- usual loop: sentences as they come, in batches of 32 padded to their longest, the model in training mode, all passes kept
- sorted and streamed: batches of like length, sums in place of passes; transformers' own forward
- baal: its patched dropout and `predict_on_batch`, in whichever of its two modes is faster; where it is installed
- ours: `form_beliefs`

Sentences are of CoNLL-03's training set where SEQUST_DATA names the benchmarks, else of the generated corpus. Before time is
taken, all must agree: the mean probability of every word's label, over many passes, within what chance allows; baal leaves out
the dropout of attention, which `attention_dropout` shows, and is held to less. The limit is a plain matrix product in the same
precision: `share_of_limit` is the part of it that the multiplications of the encoder alone come to.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.experiments.benchmarks import read_part
from sequst.tagger.batches import collate
from sequst.tagger.predicting import Words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs
from sequst.uncertainty.information import PassSums
from sequst.uncertainty.mc_dropout import mc_dropout

LABELS = ["O", *(f"{place}-{type_}" for type_ in ("PER", "LOC", "ORG", "MISC") for place in "BI")]
ROWS, BUDGET = 32, 4096
Contender = Callable[[Tagger, list[Sentence], int], np.ndarray]
"""The mean probability of every word's label."""


def usual_loop(tagger: Tagger, sentences: list[Sentence], passes: int) -> np.ndarray:
    """A pass over all sentences after the other, every probability kept."""
    windows = tagger.splitter.windows([sentence.words for sentence in sentences])
    batches = [list(range(i, min(i + ROWS, len(windows)))) for i in range(0, len(windows), ROWS)]
    kept: list[list[Tensor]] = []
    with torch.no_grad(), mc_dropout(tagger, 1):
        for _ in range(passes):
            found = []
            for rows in batches:
                batch = collate(windows, rows, tagger.pad_id).to(tagger.device)
                found.append(tagger(batch)[batch.owned].exp().cpu())
            kept.append(found)
    probabilities = torch.stack([torch.cat(found) for found in kept])  # (T, N, C)
    _information(probabilities)
    return probabilities.mean(0)[:, 0].numpy()


def _information(probabilities: Tensor) -> Tensor:
    mean = probabilities.mean(0)
    return -(mean * mean.log()).sum(-1) + (probabilities * probabilities.log()).sum(-1).mean(0)


def sorted_and_streamed(tagger: Tagger, sentences: list[Sentence], passes: int) -> np.ndarray:
    words = Words(tagger, sentences)
    found = np.zeros(len(words))
    budget = BUDGET if tagger.device.type == "cpu" else 65536
    with torch.inference_mode():
        for number, (batch, places) in enumerate(words.batches(budget)):
            sums = PassSums()
            with mc_dropout(tagger, number):
                for _ in range(passes):
                    sums.add(tagger(batch)[batch.owned])
            sums.information_gain()
            found[places] = sums.mean[:, 0].cpu().numpy()
    return found


def baal_loop(tagger: Tagger, sentences: list[Sentence], passes: int, replicate: bool) -> np.ndarray:
    from baal.bayesian.dropout import patch_module
    from baal.modelwrapper import ModelWrapper, TrainingArgs

    class Plain(nn.Module):
        """baal passes one tensor on: the ids; what is not padding, and where words begin, follows from them."""

        def __init__(self) -> None:
            super().__init__()
            self.tagger = tagger
            self.batch: Any = None

        def forward(self, ids: Tensor) -> Tensor:
            times = len(ids) // len(self.batch.input_ids)
            mask, heads = (x.repeat(times, 1) for x in (self.batch.attention_mask, self.batch.heads))
            states = self.tagger.encoder.model(input_ids=ids, attention_mask=mask).logits
            states = torch.gather(states, 1, heads.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
            return torch.log_softmax(self.tagger.head.scores(states), -1).transpose(1, 2)  # (B, C, W)

    plain = patch_module(Plain().eval(), inplace=False)
    plain.tagger.head.dropout.train()
    wrapper = ModelWrapper(plain, TrainingArgs(use_cuda=tagger.device.type == "cuda", replicate_in_memory=replicate))
    windows = tagger.splitter.windows([sentence.words for sentence in sentences])
    found = []
    for start in range(0, len(windows), ROWS):
        batch = collate(windows, list(range(start, min(start + ROWS, len(windows)))), tagger.pad_id).to(tagger.device)
        plain.batch = batch
        out = wrapper.predict_on_batch(batch.input_ids, iterations=passes)  # (B, C, W, T)
        probabilities = out.permute(3, 0, 2, 1)[:, batch.owned].exp().cpu()
        _information(probabilities)
        found.append(probabilities.mean(0)[:, 0])
    return torch.cat(found).numpy()


def ours(tagger: Tagger, sentences: list[Sentence], passes: int) -> np.ndarray:
    beliefs = form_beliefs(tagger, sentences, passes, 1, probabilities="mean")
    assert beliefs.probabilities is not None
    return beliefs.probabilities[:, 0]


def contenders() -> dict[str, Contender]:
    found: dict[str, Contender] = {"usual loop": usual_loop, "sorted and streamed": sorted_and_streamed, "ours": ours}
    try:
        import baal  # noqa: F401
    except ImportError:
        return found
    for replicate in (False, True):
        name = "baal, replicated in memory" if replicate else "baal"
        found[name] = lambda tagger, sentences, passes, replicate=replicate: baal_loop(tagger, sentences, passes, replicate)
    return found


def check(tagger: Tagger, sentences: list[Sentence], passes: int = 150) -> dict[str, Any]:
    """How far each is from the usual loop, in standard errors of a mean of so many passes, root mean square."""
    few = sentences[:4]
    expected = usual_loop(tagger, few, passes)
    spread = np.sqrt(2 * _variance(tagger, few) / passes)
    found = {}
    for name, contender in contenders().items():
        if name == "usual loop":
            continue
        apart = (contender(tagger, few, passes) - expected) / spread
        found[name] = {
            "standard_errors": float(np.sqrt((apart**2).mean())),
            "attention_dropout": has_attention(contender, tagger, few),
        }
        limit = 2.0 if found[name]["attention_dropout"] else 6.0
        assert found[name]["standard_errors"] < limit, f"{name} is not the same computation: {found[name]}"
    return found


def _variance(tagger: Tagger, sentences: list[Sentence], passes: int = 60) -> np.ndarray:
    runs = []
    for seed in range(passes):
        words = Words(tagger, sentences)
        found = np.zeros(len(words))
        with torch.inference_mode(), mc_dropout(tagger, 1000 + seed):
            for batch, places in words.batches(BUDGET):
                found[places] = tagger(batch)[batch.owned].exp()[:, 0].cpu().numpy()
        runs.append(found)
    return np.var(runs, axis=0, ddof=1) + 1e-12


def has_attention(contender: Contender, tagger: Tagger, sentences: list[Sentence]) -> bool:
    """Whether passes still differ when attention's dropout is all that is on."""
    rates = {module: module.p for module in tagger.modules() if isinstance(module, nn.Dropout)}
    inner = {module.dropout for name, module in tagger.named_modules() if name.endswith((".self", ".attn"))}
    try:
        for module in rates:
            module.p = rates[module] if module in inner else 0.0
        one, two = (contender(tagger, sentences, passes) for passes in (1, 3))
    finally:
        for module, rate in rates.items():
            module.p = rate
    return bool(np.abs(one - two).max() > 1e-4)


def limit(device: torch.device) -> float:
    """Multiplications and additions a second of a plain matrix product in fp32."""
    a, b = (torch.randn(2048, 2048, device=device) for _ in range(2))
    times = []
    for _ in range(8):
        begun = time.perf_counter()
        float((a @ b)[0, 0])
        times.append(time.perf_counter() - begun)
    return float(2 * 2048**3 / min(times))


def operations(tagger: Tagger, sentences: list[Sentence]) -> float:
    """Those of the encoder's linear layers and attention in one pass over the sub-words, padding left out."""
    config = tagger.encoder.model.config
    width, layers, inner = config.hidden_size, config.num_hidden_layers, config.intermediate_size
    lengths = [len(window.ids) for window in tagger.splitter.windows([sentence.words for sentence in sentences])]
    linear = 2 * layers * (4 * width**2 + 2 * width * inner) * sum(lengths)
    return float(linear + 4 * layers * width * sum(length**2 for length in lengths))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--sentences", type=int, default=96)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = os.environ.get("SEQUST_DATA")
    pool = read_part(Path(data), "conll03", "train") if data else generate().pool
    sentences = pool[:: len(pool) // options.sentences][: options.sentences]  # spread over all, that lengths are as they are
    tagger = Tagger.from_encoder(options.encoder, LABELS, seed=1).to(options.device)
    agreement = check(tagger, sentences)
    times: dict[str, list[float]] = {name: [] for name in contenders()}
    for _ in range(options.repeats):
        for name, contender in contenders().items():
            begun = time.perf_counter()
            contender(tagger, sentences, options.passes)
            times[name].append(time.perf_counter() - begun)
    words = sum(len(sentence) for sentence in sentences)
    speed = {name: words / statistics.median(found) for name, found in times.items()}
    work = options.passes * operations(tagger, sentences)
    peers = {name: value for name, value in speed.items() if name.startswith("baal")}
    found = {
        "words_a_second": {
            name: {"median": speed[name], "least": words / max(taken), "most": words / min(taken)}
            for name, taken in times.items()
        },
        "ratio_naive": speed["ours"] / speed["usual loop"],
        "ratio_sorted": speed["ours"] / speed["sorted and streamed"],
        "ratio_baal": speed["ours"] / max(peers.values()) if peers else None,
        "share_of_limit": work / statistics.median(times["ours"]) / limit(tagger.device),
        "agreement": agreement,
        "sentences": len(sentences), "words": words, "passes": options.passes, "encoder": options.encoder,
        "data": "conll03" if data else "generated", "threads": options.threads, "repeats": options.repeats,
        "machine": torch.cuda.get_device_name() if options.device == "cuda" else platform.processor() or platform.machine(),
        "torch": torch.__version__,
    }  # fmt: skip
    print(json.dumps(found, indent=2))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
