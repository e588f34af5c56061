"""Sequence taggers from a few labelled sentences and a pile of raw text, that know what they do not know.

The public names are resolved when they are first used, so that `import sequst` costs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sequst.version import __version__

_PLACES = {
    "Sentence": "sequst.corpus.sentence",
    "read": "sequst.corpus.reading",
    "write_conll": "sequst.corpus.writing",
    "write_jsonl": "sequst.corpus.writing",
    "sample": "sequst.corpus.sampling",
    "Split": "sequst.corpus.sampling",
    "generate": "sequst.corpus.generated",
    "SequstError": "sequst.errors",
    "Tagger": "sequst.tagger.tagger",
    "Prediction": "sequst.tagger.prediction",
    "Entity": "sequst.tagger.prediction",
    "evaluate": "sequst.evaluation.evaluating",
    "Evaluation": "sequst.evaluation.evaluating",
    "annotate_with_uncertainty": "sequst.uncertainty.predicting",
    "choose_next": "sequst.uncertainty.choosing",
    "Settings": "sequst.training.settings",
    "load_settings": "sequst.training.configuring",
    "Labeler": "sequst.integrations.labeler",
    "push_to_hub": "sequst.integrations.hub",
    "train": "sequst.methods.running",
    "resume": "sequst.methods.running",
    "find_suspects": "sequst.methods.suspects",
}

__all__ = [
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
    from sequst.corpus.generated import generate
    from sequst.corpus.reading import read
    from sequst.corpus.sampling import Split, sample
    from sequst.corpus.sentence import Sentence
    from sequst.corpus.writing import write_conll, write_jsonl
    from sequst.errors import SequstError
    from sequst.evaluation.evaluating import Evaluation, evaluate
    from sequst.integrations.hub import push_to_hub
    from sequst.integrations.labeler import Labeler
    from sequst.methods.running import resume, train
    from sequst.methods.suspects import find_suspects
    from sequst.tagger.prediction import Entity, Prediction
    from sequst.tagger.tagger import Tagger
    from sequst.training.configuring import load_settings
    from sequst.training.settings import Settings
    from sequst.uncertainty.choosing import choose_next
    from sequst.uncertainty.predicting import annotate_with_uncertainty


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'sequst' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
