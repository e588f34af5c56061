"""A tagger as a folder: what transformers wants, our own facts in `sequst.json`, and a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

from sequst.corpus.tags import OUTSIDE, is_tag
from sequst.errors import SequstError, UsageError, shorten
from sequst.files import atomic_folder, read_json, write_json
from sequst.tagger.card import model_card
from sequst.tagger.encoders import load_tokenizer, loading, quiet
from sequst.tagger.head import HEADS, CrfHead
from sequst.tagger.tagger import Tagger
from sequst.version import __version__

FACTS = "sequst.json"
CHAIN = "crf.safetensors"
"""Transitions of a CRF; the scores of the words are the classifier of the model itself."""


def save(tagger: Tagger, folder: str | Path, about: dict[str, Any]) -> None:
    """Write the folder whole or not at all. `about` goes into sequst.json and the model card."""
    facts = {
        **about,
        "sequst": __version__,
        "head": tagger.head.kind,
        "max_length": tagger.max_length,
        "overlap": tagger.overlap,
        "labels": tagger.labels,
    }
    with atomic_folder(folder, replace=True) as temporary:
        _save_model(tagger, temporary)
        if isinstance(tagger.head, CrfHead):
            facts["constrained"] = tagger.head.constrained
            scores = {name: value.detach().cpu().contiguous() for name, value in tagger.head.named_parameters(recurse=False)}
            save_file(scores, temporary / CHAIN)
        for weights in temporary.glob("*.safetensors"):  # they come readable by their owner alone
            weights.chmod((temporary / "config.json").stat().st_mode)
        tagger.tokenizer.save_pretrained(temporary)
        write_json(temporary / FACTS, facts)
        (temporary / "README.md").write_text(model_card(tagger.types, facts), encoding="utf-8")


def _save_model(tagger: Tagger, folder: Path) -> None:
    model, name = tagger.encoder, tagger.classifier_name
    identity = getattr(model, name)
    setattr(model, name, tagger.head.folded())
    try:
        with quiet():
            model.save_pretrained(folder)
    finally:
        setattr(model, name, identity)


def load(folder: str | Path) -> Tagger:
    """A tagger from its folder; its weights are read from safetensors only, and nothing in it is executed."""
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        nested = folder / "model" / "config.json"
        hint = (
            f"; did you mean {folder / 'model'}?" if nested.is_file() else "; name a folder that `sequst train` or `save` wrote"
        )
        raise UsageError(f"no model in {shorten(str(folder))}: it has no config.json{hint}")
    facts = _facts(folder)
    with loading(f"the model in {folder}"):
        model = transformers.AutoModelForTokenClassification.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, local_files_only=True
        )
    labels = [str(model.config.id2label[i]) for i in range(model.config.num_labels)]
    if not all(label == OUTSIDE or (is_tag(label) and label[0] in "BI") for label in labels):
        raise SequstError(f"{folder}: its labels are not IOB2 tags: {', '.join(labels[:6])}")
    tokenizer = load_tokenizer(str(folder))
    tagger = Tagger(
        model, tokenizer, labels, learnt=True, max_length=facts.get("max_length", 128), overlap=facts.get("overlap", 16),
        head=facts.get("head", "softmax"), constrained=facts.get("constrained", True),
    )  # fmt: skip
    if isinstance(tagger.head, CrfHead):
        _load_chain(tagger.head, folder / CHAIN)
    return tagger


def _facts(folder: Path) -> dict[str, Any]:
    """What sequst.json says of the tagger, checked; nothing where another tool has made the folder."""
    facts = read_json(folder / FACTS) if (folder / FACTS).is_file() else {}
    if (
        not isinstance(facts, dict)
        or facts.get("head", "softmax") not in HEADS
        or type(facts.get("constrained", True)) is not bool
    ):
        raise SequstError(f"{folder / FACTS}: not what sequst writes; its head must be {' or '.join(HEADS)}")
    if (folder / CHAIN).is_file() != (facts.get("head") == "crf"):
        raise SequstError(f"{folder}: {CHAIN} and the head that {FACTS} names do not fit together; save the tagger again")
    return facts


def _load_chain(head: CrfHead, path: Path) -> None:
    """The scores of the chain, which must be all there and of the right shapes."""
    with loading(f"the chain of the CRF in {path}"):
        found = load_file(path)
        for name, value in head.named_parameters(recurse=False):
            if name not in found or found[name].shape != value.shape:
                raise ValueError(f"{name} is missing or has another shape than the labels ask for")
            value.data.copy_(found[name])
