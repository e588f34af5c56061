"""Save and load a tagger: files of transformers, `sequst.json`, and a model card."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sequst.corpus.tags import OUTSIDE, is_tag, types_of
from sequst.errors import SequstError, UsageError, shorten
from sequst.files import as_folder, as_path, atomic_folder, atomic_text, write_json
from sequst.inputs import read_json, require_regular_files
from sequst.tagger import capitals, transitions
from sequst.tagger.encoders.base import Encoder
from sequst.tagger.encoders.pretrained import load_tokenizer, load_trained, loading
from sequst.tagger.encoders.shape import BILSTM, SHAPE
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.heads import HEADS, CrfHead, SoftmaxHead
from sequst.tagger.model_card import model_card
from sequst.tagger.predict import label_words
from sequst.tagger.prediction import trial_sentence
from sequst.tagger.tagger import Tagger
from sequst.version import __version__

log = logging.getLogger(__name__)

FACTS = "sequst.json"
CONFIG = "config.json"
CHAIN = "crf.safetensors"
"""Transitions of a CRF; the scores of the words are the classifier of the model itself."""


def save(tagger: Tagger, folder: str | Path, about: dict[str, Any]) -> None:
    """Write the folder, completely or not at all; a model in it is replaced. `about` goes into sequst.json and the model
    card."""
    folder = as_folder(as_path(folder).absolute())
    facts = {
        **about,
        "sequst": __version__,
        "architecture": tagger.encoder.kind,
        "head": tagger.head.kind,
        "max_length": tagger.max_length,
        "overlap": tagger.overlap,
        "labels": tagger.labels,
        "entity_calibration": tagger.entity_calibration.to_dict(),
        "capitals": tagger.capitals,
    }
    with atomic_folder(folder, replaces=(FACTS,)) as temporary:
        tagger.encoder.save(temporary, tagger.head.folded())
        if isinstance(tagger.head, SoftmaxHead):
            facts |= {"valid": tagger.head.valid, "transitions": tagger.head.transitions}
        if isinstance(tagger.head, CrfHead):
            scores = {name: value.detach().cpu().contiguous() for name, value in tagger.head.named_parameters(recurse=False)}
            save_file(scores, temporary / CHAIN)
        write_json(temporary / FACTS, facts)
        for weights in temporary.glob("*.safetensors"):  # they come readable by their owner alone
            weights.chmod((temporary / FACTS).stat().st_mode)
        (temporary / "README.md").write_text(model_card(tagger.types, facts), encoding="utf-8")


def add_facts(folder: Path, about: Mapping[str, Any]) -> None:
    """Add facts to sequst.json and the model card of a saved model."""
    facts = {**read_json(folder / FACTS), **about}
    write_json(folder / FACTS, facts)
    with atomic_text(folder / "README.md") as file:
        file.write(model_card(types_of([facts["labels"]]), facts))


def load(folder: str | Path) -> Tagger:
    """Load a tagger. Weights come from safetensors only; nothing in the folder is executed."""
    folder = as_folder(folder)
    require_model(folder)
    with loading(f"the model in {folder}"):
        tagger = _assembled(folder)
        label_words(tagger, [trial_sentence(tagger.max_length)])  # some faults show only here
    return tagger


def _assembled(folder: Path) -> Tagger:
    facts = _facts(folder)
    encoder, classifier, labels = _PARTS[facts["architecture"]](folder, facts)
    if facts["labels"] and facts["labels"] != labels:
        raise SequstError(f"{folder}: {CONFIG} and {FACTS} name different labels; save the tagger again")
    if not all(label == OUTSIDE or (is_tag(label) and label[0] in "BI") for label in labels):
        raise SequstError(f"{folder}: its labels are not IOB2 tags: {', '.join(labels[:6])}")
    found, needed = (classifier.in_features, classifier.out_features), (encoder.width, len(labels))
    if found != needed:
        raise SequstError(
            f"{folder}: its classifier makes {found[1]} labels of {found[0]} numbers, not {needed[1]} of {needed[0]}"
        )
    tables = {name: value for name, value in encoder.named_buffers() if value.is_floating_point()}
    _require_finite({**dict(encoder.named_parameters()), **tables, **dict(classifier.named_parameters())}, folder)
    of_head = {name: facts[name] for name in ("head", "max_length", "overlap", "valid", "transitions", "capitals")}
    tagger = Tagger(encoder, labels, classifier=classifier, **of_head)
    if isinstance(tagger.head, CrfHead):
        _load_chain(tagger.head, folder / CHAIN)
    tagger.entity_calibration = facts["entity_calibration"]
    return tagger


def require_model(folder: Path) -> None:
    """Raise an error if the folder has no model, before loading anything."""
    require_regular_files(folder)
    if _holds_a_model(folder):
        return
    if (folder / "model.onnx").is_file():
        raise UsageError(f"{folder} is an export for onnxruntime; name the model that it was made from")
    nested = folder / "model"
    hint = f"; did you mean {nested}?" if _holds_a_model(nested) else "; name a folder that `sequst train` or `save` wrote"
    raise UsageError(f"no model in {shorten(str(folder))}: it has no {CONFIG} and no {SHAPE}{hint}")


def _holds_a_model(folder: Path) -> bool:
    return (folder / CONFIG).is_file() or (folder / SHAPE).is_file()


def _load_transformer(folder: Path, facts: dict[str, Any]) -> tuple[Encoder, nn.Linear, list[str]]:
    model = load_trained(folder)
    labels = [str(model.config.id2label[i]) for i in range(model.config.num_labels)]
    encoder = Transformer(model, load_tokenizer(str(folder)), len(labels))
    return encoder, encoder.classifier[0], labels


def _load_bilstm(folder: Path, facts: dict[str, Any]) -> tuple[Encoder, nn.Linear, list[str]]:
    from sequst.tagger.encoders.bilstm import BiLstm

    return *BiLstm.load(folder), facts["labels"]


_PARTS = {Transformer.kind: _load_transformer, BILSTM: _load_bilstm}
_DEFAULTS: dict[str, Any] = {
    "architecture": Transformer.kind,
    "head": "softmax",
    "valid": False,
    "transitions": {},
    "capitals": {},
    "max_length": 128,
    "overlap": 16,
    "labels": [],
    "entity_calibration": {},
}
"""Defaults for folders that another tool has written."""
_READERS: dict[str, Callable[..., Any]] = {
    "transitions": transitions.checked,
    "capitals": capitals.checked,
    "entity_calibration": EntityCalibration.from_dict,
}
_LONGEST = 100_000
"""Sub-words of a window."""
_RENAMED = {"successions": "transitions", "trust": "entity_calibration"}
"""Names before 0.2."""


def _facts(folder: Path) -> dict[str, Any]:
    """The checked contents of sequst.json."""
    path = folder / FACTS
    if not path.is_file() and (path.is_symlink() or (folder / SHAPE).is_file()):
        raise SequstError(f"{folder}: {FACTS} is missing, without which it cannot be loaded; save the tagger again")
    if not path.is_file() and _is_ours(folder / CONFIG):
        log.warning("%s: %s is missing: transitions, calibration and the confidence cut are unknown", folder, FACTS)
    found = read_json(path) if path.is_file() else {}
    if not isinstance(found, dict):
        raise SequstError(f"{path}: damaged or not written by sequst")
    facts: dict[str, Any] = _DEFAULTS | {str(_RENAMED.get(name, name)): value for name, value in found.items()}
    _check(facts, path)
    if (folder / CHAIN).is_file() != (facts["head"] == "crf"):
        raise SequstError(f"{folder}: {CHAIN} and the head that {FACTS} names do not fit together; save the tagger again")
    return facts


def _is_ours(config: Path) -> bool:
    found = read_json(config)
    return isinstance(found, dict) and found.get("sequst") is True


def _check(facts: dict[str, Any], path: Path) -> None:
    """Raise an error if a fact is invalid."""
    for name, default in _DEFAULTS.items():
        if type(facts[name]) is not type(default):
            raise _unlike(path, f"found {name} {shorten(facts[name])}, expected one like {default!r}")
    for name, read in _READERS.items():
        try:
            facts[name] = read(facts[name])
        except (ValueError, OverflowError) as error:
            raise SequstError(f"{path}: {error}; found {name} {shorten(facts[name])}") from None
    for name, known in (("head", HEADS), ("architecture", _PARTS)):
        if facts[name] not in known:
            raise _unlike(path, f"its {name} must be {' or '.join(known)}")
    if not all(isinstance(label, str) for label in facts["labels"]):
        raise _unlike(path, "its labels must be texts")
    if not 4 <= facts["max_length"] <= _LONGEST or not 0 <= facts["overlap"] <= facts["max_length"] // 2:
        raise _unlike(path, f"found max_length {facts['max_length']}, overlap {facts['overlap']}")
    if facts.get("constrained") is False:
        raise SequstError(f"{path}: its CRF allows tags that IOB2 does not, as no version does any more; train it again")


def _unlike(path: Path, what: str) -> SequstError:
    return SequstError(f"{path}: damaged or not written by sequst; {what}")


def _load_chain(head: CrfHead, path: Path) -> None:
    """The scores of the chain, which must be all there and of the right shapes."""
    with loading(f"the chain of the CRF in {path}"):
        found = load_file(path)
        _require_finite(found, path)
        for name, value in head.named_parameters(recurse=False):
            if name not in found or found[name].shape != value.shape:
                raise ValueError(f"{name} is missing or has another shape than the labels ask for")
            value.data.copy_(found[name])


def _require_finite(tensors: Mapping[str, Tensor], place: Path) -> None:
    """Raise an error if weights are not finite."""
    for name, value in tensors.items():
        if not value.is_floating_point() or not torch.isfinite(value).all():
            raise SequstError(f"{place}: {name} has numbers that are not finite; save the tagger again")
