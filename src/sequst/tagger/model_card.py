"""The model card that is saved beside a tagger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_ELSEWHERE = {
    ("transformer", "softmax"): (
        "The folder is an ordinary token-classification model: `transformers.AutoModelForTokenClassification` loads it. "
        "The first sub-word of a word carries its tag."
    ),
    ("transformer", "crf"): (
        "The tags are those of a linear-chain CRF, whose transitions are in `crf.safetensors`. transformers loads the rest "
        "as an ordinary token-classification model, but knows nothing of the chain: its tags are not these."
    ),
}
_VALID = (
    " sequst takes the best path of tags that IOB2 allows; the best tag of every word by itself, which is what transformers "
    "gives, may differ (`raw_tags=True` gives these)."
)
_CAPITALS = (
    " The encoder does not see capitals, so sequst also weighs how a word is written, as the labelled sentences have it; "
    "transformers does not."
)
_LEFT_OUT = (
    " Entities of less confidence than {threshold:.2f} are left out, for they would cost more F1 than they bring; "
    "`Tagger.load(folder, min_confidence=0)` tells them too."
)
_RAW = (
    "The confidence of an entity is the mean probability of its words, not calibrated: after training on few sentences that is "
    "often far too high."
)
_USE = """```python
from sequst import Tagger

prediction = Tagger.load("path/to/this/folder").predict("Your sentence here.")
print(prediction.entities)
```"""
_OWN = (
    "labels", "sequst", "settings", "history", "test", "calibration", "entity_calibration",
    "valid", "transitions", "capitals", "command",
)  # fmt: skip
"""What has a place of its own in the card, or none."""


def model_card(types: Sequence[str], facts: Mapping[str, Any]) -> str:
    """A README for the model's folder: what it tags, how it was trained, what it reaches, how to use it."""
    sections = [
        _head(facts),
        f"Trained with sequst {facts['sequst']}. Entity types: {', '.join(types) or 'none'}.",
        _table(
            ["", ""],
            [(name.replace("_", " "), _cell(value)) for name, value in facts.items() if name not in _OWN and value is not None],
        ),
        *_scores(facts.get("test")),
        *_rounds(facts.get("history")),
        *(_calibration(facts["calibration"], facts.get("entity_calibration") or {}) if "calibration" in facts else []),
        *_made_by(facts.get("command")),
        "## Use",
        _USE,
        _ELSEWHERE.get((facts["architecture"], facts["head"]), "The encoder is a BiLSTM, which sequst alone loads.")
        + (_VALID if facts.get("valid") else "")
        + (_CAPITALS if facts.get("capitals") else ""),
    ]
    return "\n\n".join(sections) + "\n"


def _head(facts: Mapping[str, Any]) -> str:
    library = "transformers" if facts["architecture"] == "transformer" else "sequst"
    tags = "tags: [sequst, token-classification]"
    return f"---\nlibrary_name: {library}\npipeline_tag: token-classification\n{tags}\n---\n\n# A sequence tagger"


def _scores(test: Mapping[str, Any] | None) -> list[str]:
    if not test:
        return []
    low, high = test.get("f1_interval", (None, None))
    spread = f" (95 % of draws of as many sentences: {low:.1f} to {high:.1f})" if low is not None else ""
    rows = [(name, *(f"{found[key]:.1f}" for key in ("precision", "recall", "f1"))) for name, found in test["types"].items()]
    total = ("all", *(f"{test[key]:.1f}" for key in ("precision", "recall", "f1")))
    error = f" The expected calibration error of entities is {test['ece']:.1f} %." if test.get("ece") is not None else ""
    return [
        "## On the test set",
        f"F1 {test['f1']:.2f}{spread}, of {test['sentences']} sentences.{error}",
        _table(["type", "precision", "recall", "F1"], [*rows, total]),
    ]


def _rounds(history: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """Of self-training; a single line is the first teacher."""
    if not history or len(history) < 2:
        return []
    names = ("student_f1", "teacher_f1", "selected")
    rows = [
        (str(line["round"]), *("" if line.get(name) is None else f"{line[name]:.1f}" for name in names)) for line in history
    ]
    return ["## Rounds of self-training", _table(["round", "student, dev F1", "teacher, dev F1", "% of words selected"], rows)]


def _calibration(found: Mapping[str, Any] | None, calibration: Mapping[str, Any]) -> list[str]:
    if not found:
        return ["## Confidences", _RAW]
    told = (
        f"Scores are divided by {found['temperature']:.2f}, and the confidence of an entity is a logistic function of the mean "
        f"probability of its words (slope {found['slope']:.2f}, intercept {found['intercept']:.2f} on logits): both fitted on "
        f"the dev set, in which {found['entities']} entities were found."
    )
    if shift := found.get("calibration_shift", found.get("optimism")):
        told += f" Then {shift:.2f} was subtracted from the intercept: a small dev set makes entities look too sure."
    if calibration.get("threshold"):
        told += _LEFT_OUT.format(threshold=calibration["threshold"])
    return ["## Confidences", told]


def _made_by(command: str | None) -> list[str]:
    return ["## Made by", f"```sh\n{command}\n```"] if command and command.startswith("sequst ") else []


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items())
    return f"{value:.2f}" if isinstance(value, float) else str(value)
