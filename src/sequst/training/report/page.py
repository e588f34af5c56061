"""Write report.html: collect the figures of a run and fill the template."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2
import numpy as np

from sequst.corpus.tags import OUTSIDE, spans, types_of
from sequst.evaluation.evaluate import Evaluation
from sequst.files import atomic_text
from sequst.training.configure import describe, dump, flatten
from sequst.training.data import Pool
from sequst.training.report.charts import COLOURS, Series, line_chart, reliability_diagram
from sequst.training.run import Run
from sequst.training.seeds import derive
from sequst.training.settings import Settings
from sequst.uncertainty.beliefs import Beliefs
from sequst.version import __version__

if TYPE_CHECKING:
    from markupsafe import Markup
    from numpy.typing import NDArray

SHOWN = 12
"""Pseudo-labelled sentences to show of each kind."""
LONGEST = 60
"""Words of a sentence to show."""
LONGEST_WORD = 80
MOST = 0.95
"""So many of all words count less than those that are shown in full colour: a few may count far more than all others."""


def write_report(run: Run, summary: Mapping[str, Any], dev: Evaluation | None, test: Evaluation | None) -> None:
    """Write RUN/report.html, a page that needs no other file and no network."""
    metrics = run.directory.metrics()
    scored, scored_on = (test, "test set") if test is not None else (dev, "dev set")
    page = template("sequst.training.report", ".", "report.html").render(
        version=__version__,
        colours=COLOURS,
        summary=summary,
        dev=dev,
        test=test,
        charts=_charts(run.history, metrics),
        columns={key: name for key, name in ROUND_COLUMNS.items() if any(line.get(key) is not None for line in run.history)},
        history=run.history,
        scored=scored,
        scored_on=scored_on,
        reliability=reliability_diagram(scored.reliability) if scored is not None else "",
        samples=_samples(run),
        weighed=_are_weighed(run),
        hues=_hues(run.labels),
        changed=_changed(run.settings),
        settings=dump(run.settings),
        facts=run.directory.facts,
        commands=_commands(run),
    )
    with atomic_text(run.directory.path / "report.html") as file:
        file.write(page)


ROUND_COLUMNS = {
    "round": "round",
    "student_f1": "student F1",
    "teacher_f1": "teacher F1",
    "selected": "selected %",
    "agreement": "agreement with the round before %",
    "error": "error of all words %",
    "selected_error": "of selected words",
    "entity_error": "error of entity words %",
    "selected_entity_error": "of selected entity words",
}
"""Column headings of the table of rounds."""


def template(package: str, folder: str, name: str) -> jinja2.Template:
    """A page's template, which may include the style sheet that all pages share."""
    loader = jinja2.ChoiceLoader([jinja2.PackageLoader(package, folder), jinja2.PackageLoader("sequst.training.report", ".")])
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True).get_template(name)


class Chart(NamedTuple):
    """A chart with its heading and a line on how to read it."""

    title: str
    drawing: Markup
    hint: str


def _charts(history: Sequence[Mapping[str, Any]], metrics: Sequence[Mapping[str, Any]]) -> list[Chart]:
    def rounds(y_name: str, **names: str) -> Markup:
        return line_chart([Series(name, _points(history, "round", key)) for key, name in names.items()], "round", y_name)

    phases = [line for line in metrics if "step" in line]
    found = [
        Chart(
            "Dev F1 over the rounds",
            rounds("dev F1", teacher_f1="teacher", student_f1="student"),
            "Round 0 is the first teacher. The teacher of a later round is its student, re-tuned on the labelled sentences.",
        ),
        Chart(
            "Pseudo-label error over the rounds",
            rounds("%", error="all words", selected_error="selected words", entity_error="entity words",
                   selected_entity_error="selected entity words"),
            "Known because the unlabelled file has tags, which training does not see. Entity words are those that the teacher "
            "labels as an entity. Selected words are weighted.",
        ),
        Chart("Dev F1 while training", line_chart(list(_by_phase(phases, "dev_f1")), "step", "dev F1"), ""),
        Chart("Loss while training", line_chart(list(_by_phase(phases, "loss")), "step", "loss"),
              "Losses of student and teacher are not comparable: they are different functions."),
    ]  # fmt: skip
    return [chart for chart in found if chart.drawing]


def _points(lines: Sequence[Mapping[str, Any]], x: str, y: str) -> list[tuple[float, float]]:
    return [(line[x], line[y]) for line in lines if line.get(y) is not None]


def _by_phase(lines: Sequence[Mapping[str, Any]], value: str) -> Iterator[Series]:
    """A line of the chart for every phase of the first round and of the last: more would hide each other."""
    last = max((line["round"] for line in lines), default=0)
    for (round_, phase), group in itertools.groupby(lines, key=lambda line: (line["round"], line["phase"])):
        plain = phase != "adaptation" and "-" not in phase  # not reading, whose loss is another, nor several that are alike
        if round_ in (0, 1, last) and plain:
            yield Series(phase if round_ == 0 else f"{phase} {round_}", _points(list(group), "step", value))


@dataclass(frozen=True)
class Word:
    """A word of a pseudo-labelled sentence."""

    text: str
    type: str
    """The type of the entity it is labelled as; empty for none."""
    first: bool
    """The first word of that entity."""
    weight: float
    """How much it counted, beside those that counted most; 0 where it was not selected."""
    wrong: bool
    told: str


class Samples(NamedTuple):
    """Pseudo-labelled sentences of one kind."""

    title: str
    sentences: list[list[Word]]


def _samples(run: Run) -> list[Samples]:
    """Sentences of the last round: some drawn at random, and those of which the teacher knows least."""
    if run.last_selection is None:
        return []
    pool, beliefs, weights = run.last_selection
    sizes = np.diff(beliefs.starts)
    count = min(SHOWN, len(sizes))
    rng = np.random.default_rng(derive(run.settings.seed, "report"))
    kinds = {"Drawn at random": np.sort(rng.choice(len(sizes), count, replace=False))}
    if beliefs.information_gain.any():
        doubt = np.bincount(beliefs.sentence_of, beliefs.information_gain, minlength=len(sizes)) / sizes
        kinds["Where the teacher knows least"] = np.argsort(-doubt, kind="stable")[:count]
    most = float(np.quantile(weights[weights > 0], MOST)) if _are_weighed(run) else None
    return [
        Samples(title, [list(_words(run.labels, pool, beliefs, weights, most, int(i))) for i in chosen])
        for title, chosen in kinds.items()
    ]


def _words(
    labels: Sequence[str], pool: Pool, beliefs: Beliefs, weights: NDArray[np.float64], most: float | None, number: int
) -> Iterator[Word]:
    """Of one sentence; words that count as much as `most` are shown in full, and where it is None, all that count at all."""
    start, end = (int(place) for place in beliefs.starts[number : number + 2])
    tags = [labels[label] for label in beliefs.labels[start:end]]
    truth = pool.tags[number]
    starts = {span.start for span in spans(tags)}
    uncertain = beliefs.information_gain.any()  # without passes of MC dropout nothing is known of it
    for i, text in enumerate(pool.sentences[number].words[:LONGEST]):
        at = start + i
        told = f"{tags[i]}, confidence {beliefs.confidence[at]:.0%}"
        told += f", information gain {beliefs.information_gain[at]:.3f}" if uncertain else ""
        told += "" if most is None else f", weight {weights[at]:.2f}"
        wrong = truth is not None and truth[i] != tags[i]
        told += f"; the file says {truth[i]}" if truth is not None and wrong else ""
        type_ = "" if tags[i] == OUTSIDE else tags[i][2:]
        text = text if len(text) <= LONGEST_WORD else f"{text[:LONGEST_WORD]}\u2026"
        yield Word(text, type_, i in starts, min(1.0, float(weights[at]) / (most or 1.0)), wrong, told)
    if end - start > LONGEST:
        yield Word("\u2026", "", False, 0.0, False, f"{end - start - LONGEST} more words")


def _are_weighed(run: Run) -> bool:
    """Whether some words of the last round counted more than others."""
    return run.last_selection is not None and not np.isin(run.last_selection[2], (0.0, 1.0)).all()


def _hues(labels: Sequence[str]) -> dict[str, int]:
    """A colour for every type, each as far from the last as may be."""
    return {type_: round(i * 137.508 + 210) % 360 for i, type_ in enumerate(types_of([labels]))}


class Changed(NamedTuple):
    """A setting that is not at its default."""

    name: str
    value: Any
    default: Any


def _changed(settings: Settings) -> list[Changed]:
    values = flatten(settings)
    return [Changed(s.name, values[s.name], s.default) for s in describe() if values[s.name] != s.default]


def _commands(run: Run) -> dict[str, str]:
    model = shlex.quote(str(run.directory.path / "model"))
    return {
        "Tag a file": f"sequst predict {model} raw.txt --output tagged.jsonl",
        "and say how sure it is": f"sequst predict {model} raw.txt --uncertainty --output tagged.jsonl",
        "Score it on other sentences": f"sequst evaluate {model} test.conll",
        "Train again with these settings": f"sequst train --settings {shlex.quote(str(run.directory.path / 'settings.yaml'))} "
        f"--labeled labeled.conll {'--unlabeled raw.txt ' if run.history else ''}--output another-run",
    }
