"""Downloads of benchmarks: pinned, checked, and whole or not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sequst.errors import SequstError, UsageError
from sequst.experiments.benchmarks import Benchmark
from sequst.extras import needed

RAW = "https://raw.githubusercontent.com"


def fetch(benchmark: Benchmark, data: Path, told: Callable[[str], None] = lambda line: None, base: str = RAW) -> None:
    """Get the original files of a benchmark into the data folder; files that are there and whole are left alone."""
    if not benchmark.download:
        raise UsageError(f"{benchmark.name} cannot be downloaded ({benchmark.licence})\n{benchmark.how_to_get}")
    pooch = needed("pooch", "benchmarks")
    pooch.get_logger().setLevel("ERROR")
    entry = benchmark.download
    for name, (path, sha256) in entry["files"].items():
        target = data / benchmark.folder / name
        url = f"{base}/{entry['repository']}/{entry['commit']}/{path}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=target.name, path=target.parent)
        except Exception as error:  # of the network, the disk, a changed file: pooch leaves nothing half-written
            reason = " ".join(str(error).split())[:200]
            raise SequstError(f"{benchmark.name}: cannot get {name} from {url}: {reason}") from None
        told(f"{benchmark.folder}/{name}")
