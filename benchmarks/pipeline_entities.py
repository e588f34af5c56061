"""Where transformers' `pipeline("token-classification")` finds the entities that sequst finds, and where it does not.

python benchmarks/pipeline_entities.py MODEL [--json FILE]

Of the 300 test sentences of the generated corpus as running text, how many have the same entities, by type and place in the
text: of plain ones, all of whose words, as sequst cuts them, are letters and digits or a single mark, and of the others; with
`first` and `simple` as the pipeline's aggregation strategy.
"""

from __future__ import annotations

from typing import Any

import common
import transformers

from sequst.corpus.generated import generate
from sequst.tagger.tagger import Tagger

STRATEGIES = ("first", "simple")
Found = list[tuple[str, int, int]]


def measure(folder: str, texts: list[str]) -> dict[str, dict[str, dict[str, int]]]:
    """{strategy: {kind of sentence: how many there are, how many have the same entities}}."""
    predictions: Any = Tagger.load(folder, "cpu").predict(texts)
    plain = [all(word.isalnum() or len(word) == 1 for word in prediction.words) for prediction in predictions]
    ours = [_found(prediction.to_dict()["entities"], "type", "start_char", "end_char") for prediction in predictions]
    counts = {}
    for strategy in STRATEGIES:
        pipe = transformers.pipeline("token-classification", folder, aggregation_strategy=strategy)
        same = [_found(pipe(text), "entity_group", "start", "end") == own for text, own in zip(texts, ours, strict=True)]
        counts[strategy] = {
            kind: {"sentences": plain.count(wanted), "same": sum(s for s, p in zip(same, plain, strict=True) if p == wanted)}
            for kind, wanted in (("plain", True), ("others", False))
        }
    return counts


def _found(entities: list[dict[str, Any]], *keys: str) -> Found:
    return [tuple(entity[key] for key in keys) for entity in entities]  # type: ignore[misc]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("model")
    options = parser.parse_args()
    texts = [" ".join(sentence.words) for sentence in generate().test]
    found = {"sentences": len(texts), "same_entities": measure(options.model, texts)}
    common.tell({**found, **common.machine("cpu")}, options.json)


if __name__ == "__main__":
    main()
