"""What the worker does: choose the first sentences, train, choose the next ones, look for wrong labels, export."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Sequence
from typing import Any

from sequst.annotation.first import choose_first
from sequst.annotation.judged import judged_f1
from sequst.annotation.next import Chosen, choose_next
from sequst.annotation.suspects import find_suspects
from sequst.api import Result, resume, train
from sequst.calibration.calibrate import calibrate
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans, tags_of
from sequst.errors import SequstError
from sequst.evaluation.spans import score_spans
from sequst.files import as_json, atomic_folder, write_json
from sequst.inputs import read_json
from sequst.studio import jobs
from sequst.studio.exports import EXPORTS, REPORT, WORK, model_folder, require_model
from sequst.studio.project import Project
from sequst.studio.types import after
from sequst.studio.worker import Told
from sequst.tagger.predict import annotate
from sequst.tagger.prediction import Prediction
from sequst.tagger.tagger import Tagger
from sequst.training.configure import load_settings
from sequst.training.settings import Settings

CANDIDATES = 2000
"""Raw sentences among which the next ones are chosen."""
PASSES = 5
"""Of MC dropout, to choose."""
QUEUE = 40
"""Sentences that are chosen ahead, and as many as labels make a new model due."""
LONG_QUEUE = 200
"""The same, while a training runs for long."""
FEWEST = 20
"""Raw sentences below which training does without them."""
UNCERTAIN = 50
"""Entities of which the tagger is least sure that are kept for review."""
FOLDS = 10
"""Of the judging sentences, to score each without itself."""
KEPT = 3
"""Quick models whose weights are kept; older ones leave their scores and report."""


def _train(project: Project, job: jobs.Job, progress: Told) -> None:
    run = project.folder / WORK / f"run-{job.id}"
    settings, event = _settings(project, job.kind), project.last_event()
    labeled = list(project.labeled())
    if job.kind != jobs.QUICK and _current(project) is not None:
        with contextlib.suppress(SequstError):
            choose_ahead(project, LONG_QUEUE)
    begun = time.time()
    begins = run.with_suffix(".json")
    if (run / "run.json").is_file():
        result, kept = resume(run, progress), read_json(begins)
    else:
        shutil.rmtree(run, ignore_errors=True)
        run.parent.mkdir(exist_ok=True)
        judging = [] if settings.learn_judging else [each.id for each in labeled if each.judging]
        kept = {"event": event, "labels": len(labeled), "judging": judging}
        write_json(begins, kept)
        jobs.begin(project, job.id, len(labeled))
        text = project.raw(settings.round_size * settings.max_rounds, job.id)
        result = train(labeled, run, unlabeled=text if len(text) >= FEWEST else None, settings=settings, progress=progress)
    if progress.efforts:
        project.keep_fact("forecast", dict(progress.efforts))
    judged = [each for each in labeled if each.id in set(kept["judging"])]
    _keep(project, job, result, judged, kept["event"], kept["labels"], time.time() - begun)
    begins.unlink(missing_ok=True)


def _settings(project: Project, effort: str) -> Settings:
    """The judging sentences choose no weights (`evaluations`), so that their F1 is not flattered; and they are a fair sample,
    so that confidences need no shift."""
    own = project.settings
    return load_settings(
        effort=effort, encoder=own.encoder, learn_judging=own.learn_judging, evaluations=1, calibration_shift=0.0
    )


def _keep(
    project: Project, job: jobs.Job, result: Result, judged: Sequence[Sentence], event: int, labels: int, seconds: float
) -> None:
    """Copy the model to its place, score it on the judging sentences, and write both down."""
    rows = project.database.reading.execute("SELECT coalesce(max(id), 0) + 1 FROM models").fetchone()
    number = int(rows[0])
    folder = model_folder(project, number)
    shutil.rmtree(folder, ignore_errors=True)  # of a worker that was killed before it was written down
    folder.parent.mkdir(exist_ok=True)
    shutil.copytree(result.path / "model", folder)
    with contextlib.suppress(OSError):
        shutil.copy2(result.path / REPORT, folder / REPORT)
    ops = project.since(event)
    found = [after(spans(each.tags), ops) for each in judge(Tagger.load(folder), judged)]
    scores = score_spans(
        [each.tags or () for each in judged],
        [tags_of(mine, len(each)) for mine, each in zip(found, judged, strict=True)],
    )
    f1 = judged_f1(scores.sentences)._asdict() if judged else None
    types = {name: {"f1": counts.f1, "entities": counts.tp + counts.fn} for name, counts in scores.types.items()}
    entities = {str(each.id): [list(span) for span in mine] for mine, each in zip(found, judged, strict=True)}
    with project.database.writing() as connection:
        connection.execute(
            "INSERT INTO models VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number, job.id, time.time(), event, job.kind, result.summary["method"], labels, seconds,
                None if f1 is None else as_json(f1), as_json(types), as_json(entities),
            ),
        )  # fmt: skip
        connection.execute("UPDATE jobs SET status = 'done' WHERE id = ?", (job.id,))
    shutil.rmtree(result.path, ignore_errors=True)
    _clear(project)


def judge(tagger: Tagger, judged: Sequence[Sentence]) -> list[Prediction]:
    """What the tagger finds in each sentence when confidences and the cut are fitted to the other ones: the cut that is in its
    folder was fitted to all of them, and would flatter their F1."""
    found: dict[int, Prediction] = {}
    for fold in range(min(FOLDS, len(judged))):
        others = [each for place, each in enumerate(judged) if place % FOLDS != fold]
        mine = list(range(fold, len(judged), FOLDS))
        calibrate(tagger, others, abstain=True)
        found.update(zip(mine, annotate(tagger, [judged[place] for place in mine]), strict=True))
    return [found[place] for place in range(len(judged))]


def _clear(project: Project) -> None:
    """Drop the weights of old quick models; an export of one stays."""
    rows = project.database.reading.execute("SELECT id FROM models WHERE kind = 'quick' ORDER BY id DESC").fetchall()
    for row in rows[KEPT:]:
        folder = model_folder(project, row["id"])
        report = folder / REPORT
        for file in folder.iterdir() if folder.is_dir() else ():
            if file != report:
                file.unlink()


def _current(project: Project) -> tuple[Tagger, int] | None:
    """(the newest model, the last event it knows of)."""
    row = project.database.reading.execute("SELECT id, event FROM models ORDER BY id DESC LIMIT 1").fetchone()
    return None if row is None else (Tagger.load(model_folder(project, row["id"])), row["event"])


def choose_ahead(project: Project, count: int = QUEUE) -> None:
    """Fill the queue: by the newest model, or spread over the text where there is none."""
    count = max(count, (jobs.due_at(project) or 0) - project.counts()["labeled"])
    event, current = project.last_event(), _current(project)
    raw = project.raw(CANDIDATES, event)
    if not raw:
        return
    if current is None:
        why = "Chosen before there is a model, so that the first sentences are spread over all of the text."
        chosen = choose_first(project.settings.encoder, raw, min(count, len(raw)), judging=0.0)
        project.put_in_queue([(_id(each), why, []) for each in chosen], event)
        return
    tagger, known = current
    found = choose_next(tagger, raw, count, passes=PASSES, judging=0.0)
    project.put_in_queue([(_id(each.sentence), _why(each), _suggested(each.prediction)) for each in found], known)
    _keep_uncertain(project, annotate(tagger, raw), known)


def _id(sentence: Sentence) -> int:
    assert isinstance(sentence.id, int)
    return sentence.id


def _suggested(prediction: Prediction) -> list[list[Any]]:
    return [[each.type, each.start, each.end, round(each.confidence, 4)] for each in prediction.entities]


def _why(chosen: Chosen) -> str:
    """What the model is least sure of."""
    prediction = chosen.prediction
    entity = min(prediction.entities, key=lambda each: each.confidence, default=None)
    if entity is not None and entity.confidence < 0.9:
        return f"The model is unsure of “{entity.text}”: {entity.type} with {100 * entity.confidence:.0f} %."
    word = min(range(len(prediction.words)), key=lambda place: prediction.confidences[place])
    if prediction.tags[word] == "O" and prediction.confidences[word] < 0.95:
        told = f"{100 * prediction.confidences[word]:.0f} %"
        return f"The model is unsure whether “{prediction.words[word]}” belongs to an entity: {told} that it does not."
    return "The passes of the model with dropout disagree on this sentence most."


def _keep_uncertain(project: Project, predictions: Any, event: int) -> None:
    found = sorted(
        ((entity.confidence, _id(each.sentence), entity) for each in predictions for entity in each.entities),
        key=lambda each: each[:2],
    )
    with project.database.writing() as connection:
        connection.execute("DELETE FROM uncertain")
        for confidence, sentence, entity in found[:UNCERTAIN]:
            told = as_json([entity.type, entity.start, entity.end, round(confidence, 4)])
            connection.execute("INSERT INTO uncertain (sentence, entity, event) VALUES (?, ?, ?)", (sentence, told, event))


def _suspects(project: Project, job: jobs.Job, progress: Told) -> None:
    event, labeled = project.last_event(), list(project.labeled())
    judging = {each.id for each in labeled if each.judging}  # a suggestion would move their labels towards the model's
    labeled = [dataclasses.replace(each, judging=False) for each in labeled]
    settings = dataclasses.replace(_settings(project, jobs.QUICK), method="finetune")
    found = find_suspects(labeled, settings=settings, progress=progress)
    fine = project.database.reading.execute("SELECT sentence, data FROM events WHERE kind = 'fine'").fetchall()
    approved = {(row["sentence"], *json.loads(row["data"]).values()) for row in fine}
    with project.database.writing() as connection:
        connection.execute("DELETE FROM suspects")
        for each in found:
            if (each.sentence.id, each.start, each.end) in approved or each.doubt <= 0 or each.sentence.id in judging:
                continue
            told = {
                "kind": each.kind, "start": each.start, "end": each.end, "doubt": round(each.doubt, 4),
                "given": each.given, "alternative": each.alternative,
            }  # fmt: skip
            connection.execute(
                "INSERT INTO suspects (sentence, data, event) VALUES (?, ?, ?)", (_id(each.sentence), as_json(told), event)
            )
    project.keep_fact("suspects", {"at": time.time(), "labels": len(labeled)})


def _export(project: Project, job: jobs.Job, progress: Told) -> None:
    number, kind = job.data["model"], job.data["as"]
    require_model(project, number)
    source = model_folder(project, number)
    target = project.folder / EXPORTS / f"{number:04d}-{kind}"
    target.parent.mkdir(exist_ok=True)
    progress.begin(f"export to {kind}", 0)
    if kind == "folder":
        with atomic_folder(target, replaces=("config.json",)) as folder:
            shutil.copytree(source, folder, dirs_exist_ok=True)
    elif kind == "onnx":
        from sequst.integrations.onnx.exporting import export

        export(Tagger.load(source, "cpu"), target)
    else:
        import spacy

        nlp = spacy.blank("en")
        nlp.add_pipe("sequst", config={"model": str(source)})
        with atomic_folder(target, replaces=("meta.json",)) as folder:
            nlp.to_disk(folder)


TASKS: dict[str, Callable[[Project, jobs.Job, Told], None]] = {
    **dict.fromkeys(jobs.TRAINING, _train),
    jobs.SUSPECTS: _suspects,
    jobs.EXPORT: _export,
}
