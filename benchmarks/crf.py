"""Linear chains against pytorch-crf in the same process: the loss with its gradient, and the best path.

pip install pytorch-crf==0.7.2
python benchmarks/crf.py [--json FILE] [--device cpu|cuda] [--threads N]

Both see the same scores and rows of random lengths. Results are compared before any time is taken; repeats are interleaved, and
the median and the quartiles of each are reported.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torchcrf

from sequst.tagger.crf import Chain, negative_log_likelihood, viterbi


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--tags", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    contenders = make_contenders(options)
    results: dict[str, Any] = {
        "machine": platform.processor() or platform.machine(),
        "device": torch.cuda.get_device_name() if options.device == "cuda" else f"cpu, {options.threads} threads",
        "torch": torch.__version__,
        "batch": options.batch,
        "length": options.length,
        "tags": options.tags,
        "repeats": options.repeats,
    }
    for task, pair in contenders.items():
        times = interleaved(pair, options.repeats, options.device)
        for name, values in times.items():
            low, middle, high = (1000 * value for value in statistics.quantiles(values, n=4))
            results[f"{task}_{name}_ms"] = [round(value, 3) for value in (low, middle, high)]
            print(f"{task:8} {name:12} {middle:8.2f} ms   ({low:.2f} to {high:.2f})")
        ratio = statistics.median(times["pytorch-crf"]) / statistics.median(times["sequst"])
        results[f"ratio_{task}"] = round(ratio, 2)
        print(f"{task:8} sequst is {ratio:.2f} times as fast")
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def make_contenders(options: argparse.Namespace) -> dict[str, dict[str, Callable[[], Any]]]:
    """{task: {who: what to time}}, once both have given the same results."""
    torch.manual_seed(0)
    peer = torchcrf.CRF(options.tags, batch_first=True).to(options.device)
    shape = (options.batch, options.length)
    emissions = torch.randn(*shape, options.tags, device=options.device, requires_grad=True)
    tags = torch.randint(0, options.tags, shape, device=options.device)
    lengths = torch.randint(1, options.length + 1, (options.batch,), device=options.device)
    lengths[0] = options.length
    mask = torch.arange(options.length, device=options.device) < lengths[:, None]
    ours = Chain(emissions, mask, peer.transitions, peer.start_transitions, peer.end_transitions)

    def gradient(loss: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(loss, [emissions, *peer.parameters()])

    def our_loss() -> torch.Tensor:
        return negative_log_likelihood(ours, tags).sum()

    def peer_loss() -> torch.Tensor:
        return -peer(emissions, tags, mask)

    assert torch.allclose(our_loss(), peer_loss(), rtol=1e-4)
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(gradient(our_loss()), gradient(peer_loss()), strict=True))
    with torch.no_grad():
        paths = viterbi(ours).tolist()
        assert [path[:length] for path, length in zip(paths, lengths.tolist(), strict=True)] == peer.decode(emissions, mask)

    def our_paths() -> list[list[int]]:
        with torch.no_grad():
            return viterbi(ours).tolist()

    def peer_paths() -> list[list[int]]:
        with torch.no_grad():
            return peer.decode(emissions, mask)

    return {
        "nll": {"pytorch-crf": lambda: gradient(peer_loss()), "sequst": lambda: gradient(our_loss())},
        "viterbi": {"pytorch-crf": peer_paths, "sequst": our_paths},
    }


def interleaved(pair: dict[str, Callable[[], Any]], repeats: int, device: str) -> dict[str, list[float]]:
    """Seconds of each, one after the other in turn; the first turns are not counted."""
    times: dict[str, list[float]] = {name: [] for name in pair}
    for turn in range(repeats + 5):
        for name, work in pair.items():
            begun = time.perf_counter()
            work()
            if device == "cuda":
                torch.cuda.synchronize()
            if turn >= 5:
                times[name].append(time.perf_counter() - begun)
    return times


if __name__ == "__main__":
    main()
