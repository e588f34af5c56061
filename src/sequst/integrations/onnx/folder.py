"""What lies in an exported folder.

model.onnx               from sub-words to the scores of words
tokenizer.json           what cuts words, for the library `tokenizers`
transitions.safetensors  of a CRF, or of tags that IOB2 allows; else it is not there
sequst.json              the labels, the windows, what capitals say, how confidences are made
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sequst.errors import SequstError, said
from sequst.files import as_folder, write_json
from sequst.inputs import read_json
from sequst.tagger.capitals import checked
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.windows import SpecialTokens
from sequst.version import __version__

GRAPH = "model.onnx"
TOKENIZER = "tokenizer.json"
TRANSITIONS = "transitions.safetensors"
FACTS = "sequst.json"


def is_exported(folder: str | Path) -> bool:
    """Whether the folder holds an exported tagger."""
    return (as_folder(folder) / GRAPH).is_file()


@dataclass(frozen=True)
class Facts:
    """The contents of sequst.json."""

    labels: Sequence[str]
    head: str
    precision: str
    max_length: int
    overlap: int
    special: SpecialTokens
    pad: int
    entity_calibration: EntityCalibration
    transitions: bool
    """Whether transitions.safetensors belongs there: without it, tags would be others."""
    capitals: Mapping[str, Sequence[float]]
    """See `sequst.tagger.capitals`; empty where capitals do not count."""

    def save(self, folder: Path) -> None:
        tuples = {"special": self.special._asdict(), "entity_calibration": self.entity_calibration.to_dict()}
        write_json(folder / FACTS, {"sequst": __version__, "format": "onnx", **asdict(self), **tuples})

    @classmethod
    def load(cls, folder: Path) -> Facts:
        path = folder / FACTS
        found, there = read_json(path), (folder / TRANSITIONS).is_file()
        try:
            facts = cls(
                labels=[str(label) for label in found["labels"]],
                head=str(found["head"]),
                precision=str(found["precision"]),
                max_length=int(found["max_length"]),
                overlap=int(found["overlap"]),
                special=SpecialTokens(**found["special"]),
                pad=int(found["pad"]),
                entity_calibration=EntityCalibration.from_dict(found.get("entity_calibration") or found["trust"]),
                transitions=bool(found["transitions"]),
                capitals=checked(found["capitals"]),
            )
            if not 4 <= facts.max_length <= 100_000 or not 0 <= facts.overlap <= facts.max_length // 2 or facts.pad < 0:
                raise ValueError(f"max_length {facts.max_length}, overlap {facts.overlap}, pad {facts.pad}")
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            reason = f"{type(error).__name__}: {said(error)}"
            raise SequstError(f"{path}: damaged or not written by sequst ({reason}); export the model again") from None
        if facts.transitions != there:
            way = "is missing" if facts.transitions else "does not belong there"
            raise SequstError(f"cannot load the model in {folder}: its {TRANSITIONS} {way}; export it again")
        return facts
