"""What MC dropout costs: words a second at T passes, ours and the ways it is usually done, in one process.

python benchmarks/mc_dropout.py [--json FILE] [--device cpu|cuda] [--encoder minilm] [--sentences N] [--slow N] [--passes T]

- usual loop: sentences as they come, in batches of 32 padded to their longest, the model in training mode, all passes kept; in
  fp32, and on a GPU in bf16 as well
- sorted and streamed: batches of like length, sums in place of passes; transformers' own forward, on a GPU in bf16
- baal: its patched dropout and `predict_on_batch`, in whichever of its two modes is faster; where it is installed
- ours: the passes of `form_beliefs`, on a GPU in bf16; cutting words into sub-words included, as for all of them
- ours, words labelled: `form_beliefs` itself, which also goes over the sentences without dropout, for their labels
- sorted and streamed, and ours, in bf16 as well on a CPU that has it

Sentences are of CoNLL-03's training set where SEQUST_DATA names the benchmarks, else of the generated corpus; with `--slow` the
usual loops and baal see so many of them. Before time is taken, all must agree: the mean probability of every word's label, over
many passes, within what chance and bf16 allow; baal leaves out the dropout of attention, which `attention_dropout` shows, and
is held to less. The limit is a plain matrix product in the same precision, on a GPU in bf16: `share_of_limit` is the part
of it that the multiplications of the encoder alone come to.
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
from torch import Tensor, nn

from sequst.corpus.sentence import Sentence
from sequst.tagger.accel.forward import forward_of
from sequst.tagger.accel.parallel import on_all_cores
from sequst.tagger.batches import Batch, collate
from sequst.tagger.precision import has_bf16, in_precision
from sequst.tagger.predict import Gathered, Words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs
from sequst.uncertainty.information import posterior
from sequst.uncertainty.mc_dropout import mc_dropout
from sequst.uncertainty.passes import mc_passes

ROWS, BUDGET, HALF = 32, 4096, ", bf16"
FAST = ("sorted and streamed", "ours")
"""Those that see all sentences begin with one of these."""
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
            with mc_dropout(tagger, number):
                mean, _ = posterior(tagger(batch)[batch.owned].unsqueeze(0) for _ in range(passes))
            found[places] = mean[:, 0].cpu().numpy()
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
    """By the parts that `form_beliefs` is made of."""
    words = Words(tagger, sentences)
    found = Gathered(len(words))
    with torch.inference_mode(), forward_of(tagger) as forward:

        def summed(item: tuple[int, tuple[Batch, np.ndarray]]) -> tuple[np.ndarray, dict[str, Tensor | None]]:
            number, (batch, places) = item
            all_passes = mc_passes(tagger, forward, batch, passes, 1 + number)
            mean, gain = posterior(log_probs.flatten(1, 2)[:, batch.places] for log_probs in all_passes)
            return places, {"information_gain": gain.float(), "mean": mean.float()}

        numbered = enumerate(words.batches(forward.token_budget, forward.chunk))
        for places, values in on_all_cores(tagger, forward, summed, numbered):
            found.add(places, values)
    probabilities: np.ndarray = found.arrays({})["mean"][:, 0]
    return probabilities


def labelled(tagger: Tagger, sentences: list[Sentence], passes: int) -> np.ndarray:
    beliefs = form_beliefs(tagger, sentences, passes, 1, probabilities=True)
    assert beliefs.probabilities is not None
    return beliefs.probabilities[:, 0]


def in_half(contender: Contender) -> Contender:
    def run(tagger: Tagger, sentences: list[Sentence], passes: int) -> np.ndarray:
        with in_precision(tagger.device, "bf16"):
            return contender(tagger, sentences, passes)

    return run


def contenders(device: str) -> dict[str, Contender]:
    found: dict[str, Contender] = {"usual loop": usual_loop}
    fast: dict[str, Contender] = {"sorted and streamed": sorted_and_streamed, "ours": ours, "ours, words labelled": labelled}
    halved = {name: in_half(contender) for name, contender in fast.items()}
    if device == "cuda":
        found |= {f"usual loop{HALF}": in_half(usual_loop), **halved}
    else:
        found |= fast
        if has_bf16(torch.device(device)):
            found |= {name + HALF: contender for name, contender in halved.items()}
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
    for name, contender in contenders(tagger.device.type).items():
        if name == "usual loop":
            continue
        apart = (contender(tagger, few, passes) - expected) / spread
        found[name] = {
            "standard_errors": float(np.sqrt((apart**2).mean())),
            "attention_dropout": has_attention(contender, tagger, few),
        }
        exact = tagger.device.type == "cpu" and not name.endswith(HALF)
        limit = (2.0 if exact else 4.0) if found[name]["attention_dropout"] else 6.0
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


def main() -> None:
    options = common.options(__doc__, encoder="minilm", sentences=1000, slow=0, passes=20, repeats=3)
    data, sentences = common.sentences(options.sentences)
    few = common.sentences(options.slow)[1] if options.slow else sentences
    with tempfile.TemporaryDirectory() as folder:
        encoder = common.encoder(options.encoder, Path(folder) / "encoder")
        tagger = Tagger.from_encoder(encoder, common.LABELS, seed=1).to(options.device)
    agreement = check(tagger, sentences)
    known = contenders(options.device)
    seen = {name: sentences if name.startswith(FAST) else few for name in known}
    calls = {
        name: lambda name=name, contender=contender: contender(tagger, seen[name], options.passes)
        for name, contender in known.items()
    }
    times = common.interleaved(calls, options.repeats)
    words = {name: sum(map(len, seen[name])) for name in known}
    speed = {name: common.rates({name: taken}, words[name])[name] for name, taken in times.items()}
    pace = {name: rate["median"] for name, rate in speed.items()}
    peers = [value for name, value in pace.items() if name.startswith("baal")]
    work = options.passes * common.operations(tagger, sentences)
    halved = {name: options.device == "cuda" or name.endswith(HALF) for name in known}
    limits = {half: common.limit(tagger.device, torch.bfloat16 if half else torch.float32) for half in {*halved.values()}}
    share = {name: work / words["ours"] * pace[name] / limits[half] for name, half in halved.items()}
    tokens = sum(len(window.ids) for window in tagger.splitter.windows([sentence.words for sentence in sentences]))
    found = {
        "words_a_second": speed,
        "token_passes_a_second": {name: rate * options.passes * tokens / words["ours"] for name, rate in pace.items()},
        "ratio_naive": pace["ours"] / pace["usual loop"],
        "ratio_sorted": pace["ours"] / pace["sorted and streamed"],
        "ratio_baal": pace["ours"] / max(peers) if peers else None,
        "share_of_limit": share["ours"],
        "shares_of_limit": share,
        "limit_tflops": limits[halved["ours"]] / 1e12,
        "limit_tflops_bf16": limits[True] / 1e12 if True in limits else None,
        "agreement": agreement,
        "sentences": len(sentences), "sentences_of_slow": len(few), "words": words["ours"], "passes": options.passes,
        "encoder": Path(options.encoder).name, "data": data, "repeats": options.repeats,
        "seconds_of_ours": statistics.median(times["ours"]), **common.machine(options.device),
    }  # fmt: skip
    common.tell(found, options.json)


if __name__ == "__main__":
    main()
