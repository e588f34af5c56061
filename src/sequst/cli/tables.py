"""Results as tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from sequst.cli.console import note, safe, show
from sequst.files import intact

if TYPE_CHECKING:
    from sequst.api import Result
    from sequst.integrations.onnx.comparing import Measured
    from sequst.tagger.prediction import Prediction


def plain_table(*columns: str) -> Table:
    """An empty table without lines; all columns but the first are aligned to the right."""
    table = Table(*columns, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    return table


_ROUND = {
    "round": "round", "student_f1": "student\nF1", "teacher_f1": "teacher\nF1", "selected": "selected\n%",
    "agreement": "agree\n%", "error": "error\n%", "selected_error": "of\nselected", "entity_error": "entity\nerror %",
    "selected_entity_error": "of\nselected",
}  # fmt: skip


def rounds_table(history: Sequence[Mapping[str, Any]]) -> str:
    """One row for each round; round 0 is the first teacher. Columns without a value are left out. A rich table may cut
    numbers off, so this is text."""
    columns = []
    for name, heading in _ROUND.items():
        values = [line.get(name) for line in history]
        if any(value is not None for value in values):
            cells = ["" if v is None else str(v) if isinstance(v, int) else f"{v:.1f}" for v in values]
            cells = [*heading.rpartition("\n")[::2], *cells]
            columns.append([cell.rjust(max(map(len, cells))) for cell in cells])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def scores_told(scores: dict[str, Any]) -> Iterator[Table | str]:
    """Precision, recall and F1 of every type and of all, and the calibration error."""
    table = plain_table("type", "precision", "recall", "F1", "entities")
    for type_, row in [*scores["types"].items(), ("all", scores)]:
        table.add_row(safe(type_), *(f"{row[key]:.2f}" for key in ("precision", "recall", "f1")), str(row["tp"] + row["fn"]))
    yield table
    ece = "no entity predicted" if scores["ece"] is None else f"{scores['ece']:.2f}"
    yield f"{scores['sentences']} sentences; expected calibration error of the entities: {ece}"


def print_measured(ways: Mapping[str, Measured]) -> None:
    """Speed of each way to tag, and the tags it changes; the last compared with the one before."""
    scored = any(measured.f1 is not None for measured in ways.values())
    table = plain_table("", "words/s", "tags changed", *(["F1"] if scored else []))
    for number, (name, measured) in enumerate(ways.items()):
        changed = f"{measured.changed:.2f} %" if number else ""
        f1 = [f"{measured.f1:.2f}"] if measured.f1 is not None else []
        table.add_row(name, f"{measured.words_a_second:,.0f}", changed, *f1)
    show(table)
    (before, slower), (name, faster) = list(ways.items())[-2:]
    show(f"{name}: {faster.words_a_second / slower.words_a_second:.2f} times the speed of {before}")


def print_result(result: Result) -> None:
    with intact(result.path / "summary.json", "delete it, and --resume ends the run again"):  # of a finished run it is a file
        told = list(_result_told(result))
    for each in told:
        show(each)
    note(f"try it: echo 'A sentence of yours .' | sequst predict {shlex.quote(str(result.path / 'model'))} -")


def _result_told(result: Result) -> Iterator[Table | str]:
    summary = result.summary
    if result.was_finished:
        yield f"{result.path}: this run is finished; nothing to do"
    if summary.get("history"):
        yield rounds_table(summary["history"])
        number = summary["kept_round"]
        kept = f"tagger of round {number}" if number else "best of the first teachers: no round gave a better one"
        yield f"kept: the {kept}"
    if summary.get("test"):
        yield from scores_told(summary["test"])
    dev = "" if summary["dev_f1"] is None else f", F1 {summary['dev_f1']:.2f}"
    if dev and (summary.get("calibration") or {}).get("threshold"):
        dev += " without the entities that are left out"
    yield f"dev set: {summary['dev_set']}{dev}"
    yield f"model: {result.path / 'model'} ({summary['seconds']:.0f} s on {summary['device']})"
    if (result.path / "report.html").is_file():
        yield f"report: {result.path / 'report.html'}"


def tagged(prediction: Prediction) -> Text:
    """The text with its entities in brackets, the surer the brighter; entities that were left out stand below it."""
    sentence, offsets, text, end = prediction.sentence.text, prediction.sentence.offsets, Text(), 0
    assert sentence is not None
    assert offsets is not None
    for entity in prediction.entities:
        text.append(safe(sentence[end : offsets[entity.start][0]]))
        end = offsets[entity.end - 1][1]
        level = round(40 + 160 * entity.confidence)
        text.append(
            f"[{safe(entity.text)} | {safe(entity.type)} {entity.confidence:.0%}]",
            f"white on rgb(0,{level // 2},{level * 5 // 12})",
        )
    text.append(safe(sentence[end:]))
    for entity in prediction.left_out:
        text.append(f"\nleft out: {safe(entity.text)} | {safe(entity.type)} {entity.confidence:.0%}", "dim")
    return text


def benchmarks_table(looks: Sequence[Mapping[str, Any]]) -> Table:
    """Sizes of every benchmark, and the paper's beside them."""
    table = plain_table("benchmark", "train", "dev", "test", "classes", "paper: train", "test", "classes")
    for look in looks:
        sizes = [f"{look['parts'][part]['sentences']:,}" if part in look["parts"] else "-" for part in ("train", "dev", "test")]
        classes = str(len(look["types"]) + 1) if look["there"] else "-"  # O is one too
        paper = look["paper"]
        table.add_row(look["name"], *sizes, classes, paper["train"], paper["test"], str(paper["classes"]))
    return table


def suspects_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """One row for each suspect: place, words, the given entity and the tagger's, with their probabilities."""
    table = Table("place", "words", "labelled", "", "rather", "", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for column in (table.columns[3], table.columns[5]):
        column.justify, column.no_wrap = "right", True
    for record in found:
        place = f"sentence {record['sentence']}"
        if record["file"] is not None:
            at = f":{record['line']}" if record["line"] is not None else f", record {record['record']}"
            place = PurePath(record["file"]).name + at
        cells = []
        for side in ("given", "alternative"):
            entity = record[side]
            shown = "no entity" if entity is None else entity["type"]
            if entity is not None and entity["text"] != record["text"]:
                shown += f" {entity['text']!r}"
            cells += [shown, f"{record[f'{side}_probability']:.2f}"]
        table.add_row(*map(safe, (place, record["text"], *cells)))
    return table
