"""The model card that is saved beside a tagger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_ELSEWHERE = {
    (
        "transformer",
        "softmax",
    ): "The folder is an ordinary token-classification model: `transformers.AutoModelForTokenClassification` loads it. "
    "The first sub-word of a word carries its tag.",
    (
        "transformer",
        "crf",
    ): "The tags are those of a linear-chain CRF, whose transitions are in `crf.safetensors`. transformers loads the rest "
    "as an ordinary token-classification model, but knows nothing of the chain: its tags are not these.",
}


def model_card(types: Sequence[str], facts: dict[str, Any]) -> str:
    """A README for the model's folder: what it tags, how it was trained, how to use it."""
    lines = [
        "---",
        f"library_name: {'transformers' if facts['architecture'] == 'transformer' else 'sequst'}",
        "pipeline_tag: token-classification",
        "tags: [sequst, token-classification]",
        "---",
        "",
        "# A sequence tagger",
        "",
        f"Trained with sequst {facts['sequst']}. Entity types: {', '.join(types) or 'none'}.",
        "",
        "| | |",
        "|---|---|",
        *(
            f"| {name.replace('_', ' ')} | {_cell(value)} |"
            for name, value in facts.items()
            if name not in ("labels", "sequst", "settings", "history")
        ),
        "",
        "## Use",
        "",
        "```python",
        "from sequst import Tagger",
        "",
        'prediction = Tagger.load("path/to/this/folder").predict("Your sentence here.")',
        "print(prediction.entities)",
        "```",
        "",
        _ELSEWHERE.get((facts["architecture"], facts["head"]), "The encoder is a BiLSTM, which sequst alone loads."),
        "",
    ]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items())
    return f"{value:.2f}" if isinstance(value, float) else str(value)
