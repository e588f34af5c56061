"""Linear chains against pytorch-crf in the same process: the loss with its gradient, and the best path.

pip install pytorch-crf==0.7.2
python benchmarks/crf.py [--json FILE] [--device cpu|cuda] [--threads N]

Both see the same scores and rows of random lengths. Results are compared before any time is taken; repeats are interleaved, and
the median and the quartiles of each are reported.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import common
import torch
import torchcrf

from sequst.tagger.crf import Chain, log_normaliser, path_score, viterbi


def main() -> None:
    options = common.options(__doc__, batch=32, length=40, tags=20, repeats=60)
    found: dict[str, Any] = {}
    for task, pair in make_contenders(options).items():
        common.interleaved(pair, 5)  # not counted
        times = common.interleaved(pair, options.repeats)
        for name, values in times.items():
            found[f"{task}_{name}_ms"] = [round(1000 * value, 3) for value in statistics.quantiles(values, n=4)]
        ratio = statistics.median(times["pytorch-crf"]) / statistics.median(times["sequst"])
        found[f"ratio_{task}"] = round(ratio, 2)
    asked = common.asked(options, "batch", "length", "tags", "repeats")
    common.tell({**found, **asked, **common.machine(options.device)}, options.json)


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
        return (log_normaliser(ours) - path_score(ours, tags)).sum()

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


if __name__ == "__main__":
    main()
