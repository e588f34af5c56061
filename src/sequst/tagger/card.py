"""The model card that is saved beside a tagger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def model_card(types: Sequence[str], facts: dict[str, Any]) -> str:
    """A README for the model's folder: what it tags, how it was trained, how to use it."""
    lines = [
        "---",
        "library_name: transformers",
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
        "The folder is an ordinary token-classification model: `transformers.AutoModelForTokenClassification` loads it. "
        "The first sub-word of a word carries its tag.",
        "",
    ]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items())
    return f"{value:.2f}" if isinstance(value, float) else str(value)
