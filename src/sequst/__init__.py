"""Train sequence taggers from a few labelled sentences and raw text, with calibrated confidence.

The public names are resolved when they are first used, so that `import sequst` costs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sequst.version import __version__

_PLACES = {
    "Sentence": "sequst.corpus.sentence",
    "read": "sequst.corpus.formats.read",
    "write_conll": "sequst.corpus.formats.columns",
    "write_jsonl": "sequst.corpus.formats.jsonl",
    "sample": "sequst.corpus.sampling",
    "Split": "sequst.corpus.sampling",
    "generate": "sequst.corpus.generated",
    "SequstError": "sequst.errors",
    "Tagger": "sequst.tagger.tagger",
    "Prediction": "sequst.tagger.prediction",
    "Entity": "sequst.tagger.prediction",
    "evaluate": "sequst.evaluation.evaluate",
    "Evaluation": "sequst.evaluation.evaluate",
    "annotate_with_uncertainty": "sequst.uncertainty.predict",
    "choose_first": "sequst.annotation.first",
    "choose_next": "sequst.annotation.next",
    "Settings": "sequst.training.settings",
    "load_settings": "sequst.training.configure",
    "Labeler": "sequst.integrations.labeler",
    "push_to_hub": "sequst.integrations.hub",
    "train": "sequst.api",
    "resume": "sequst.api",
    "find_suspects": "sequst.annotation.suspects",
    "Client": "sequst.service.client",
}

__all__ = [
    "Client",
    "Entity",
    "Evaluation",
    "Labeler",
    "Prediction",
    "Sentence",
    "SequstError",
    "Settings",
    "Split",
    "Tagger",
    "__version__",
    "annotate_with_uncertainty",
    "choose_first",
    "choose_next",
    "evaluate",
    "find_suspects",
    "generate",
    "load_settings",
    "push_to_hub",
    "read",
    "resume",
    "sample",
    "train",
    "write_conll",
    "write_jsonl",
]

if TYPE_CHECKING:
    from sequst.annotation.first import choose_first
    from sequst.annotation.next import choose_next
    from sequst.annotation.suspects import find_suspects
    from sequst.api import resume, train
    from sequst.corpus.formats.columns import write_conll
    from sequst.corpus.formats.jsonl import write_jsonl
    from sequst.corpus.formats.read import read
    from sequst.corpus.generated import generate
    from sequst.corpus.sampling import Split, sample
    from sequst.corpus.sentence import Sentence
    from sequst.errors import SequstError
    from sequst.evaluation.evaluate import Evaluation, evaluate
    from sequst.integrations.hub import push_to_hub
    from sequst.integrations.labeler import Labeler
    from sequst.service.client import Client
    from sequst.tagger.prediction import Entity, Prediction
    from sequst.tagger.tagger import Tagger
    from sequst.training.configure import load_settings
    from sequst.training.settings import Settings
    from sequst.uncertainty.predict import annotate_with_uncertainty


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'sequst' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
