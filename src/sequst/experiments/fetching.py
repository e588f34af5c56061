"""Downloads of benchmarks: pinned, checked, and whole or not there."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, cast

import yaml

from sequst.errors import SequstError, UsageError
from sequst.experiments.benchmarks import Benchmark, how_to_get
from sequst.extras import needed

RAW = "https://raw.githubusercontent.com"


def downloads() -> dict[str, Any]:
    """Repository, commit and files of every entry."""
    text = resources.files("sequst.experiments").joinpath("data/downloads.yaml").read_text(encoding="utf-8")
    return cast("dict[str, Any]", yaml.safe_load(text))


def fetch(benchmark: Benchmark, data: Path, told: Callable[[str], None] = lambda line: None, base: str = RAW) -> None:
    """Get the original files of a benchmark into the data folder; files that are there and whole are left alone."""
    if not benchmark.fetched_as:
        raise UsageError(f"{benchmark.name} cannot be downloaded ({benchmark.licence})\n{how_to_get(benchmark)}")
    pooch = needed("pooch", "benchmarks")
    pooch.get_logger().setLevel("ERROR")
    entry = downloads()[benchmark.fetched_as]
    for name, file in entry["files"].items():
        target = data / benchmark.fetched_as / name
        url = f"{base}/{entry['repository']}/{entry['commit']}/{file['path']}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            pooch.retrieve(url, known_hash=f"sha256:{file['sha256']}", fname=target.name, path=target.parent)
        except Exception as error:  # of the network, the disk, a changed file: pooch leaves nothing half-written
            reason = " ".join(str(error).split())[:200]
            raise SequstError(f"{benchmark.name}: cannot get {name} from {url}: {reason}") from None
        told(f"{benchmark.fetched_as}/{name}")
