"""Train a tagger from files and settings: check the input, create the run directory, run the method, score the test set."""

from __future__ import annotations

import dataclasses
import functools
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sequst.calibration.calibrate import calibrate
from sequst.errors import SequstError, UsageError
from sequst.evaluation.evaluate import Evaluation, evaluate
from sequst.files import Scratch, as_path
from sequst.methods.forecast import foretell
from sequst.methods.registry import Method, find_method
from sequst.tagger.encoders.pretrained import MINILM
from sequst.tagger.encoders.shape import BILSTM, GLOVE
from sequst.tagger.precision import has_bf16
from sequst.tagger.save import add_facts
from sequst.tagger.tagger import Tagger, labels_of, pick_device
from sequst.training.configure import from_dict, load_settings
from sequst.training.data import DROP, Data, DataFile, Files, load_data, overlap_warning
from sequst.training.device import describe_device, resolve_precision
from sequst.training.directory import RunDirectory
from sequst.training.encoder import LoadedEncoder, load_encoder, vectors_note
from sequst.training.progress import Progress, Tracker
from sequst.training.report.page import write_report
from sequst.training.run import Run
from sequst.training.settings import Settings, to_dict
from sequst.training.sources import DRAWN, Source, as_files, drawn
from sequst.version import __version__

AUTO = "auto"
WHY = {
    "finetune": "there is no unlabelled text",
    "sst": "after one round it is as good as SeqUST, and faster",
    "sequst": "after several rounds it is as good as plain self-training, or better",
}
"""What `auto` chooses, and why."""


@dataclass(frozen=True)
class Result:
    """A finished run."""

    path: Path
    summary: dict[str, Any]
    was_finished: bool = False
    """The run was already finished when it was resumed."""

    @functools.cached_property
    def tagger(self) -> Tagger:
        return Tagger.load(self.path / "model")


def train(
    labeled: Source,
    output: str | Path,
    *,
    unlabeled: Source | None = None,
    dev: Source | None = None,
    test: Source | None = None,
    effort: str | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
    tracker: Tracker | None = None,
    **overrides: Any,
) -> Result:
    """Train a tagger. The run is kept in `output`, the tagger in `output/model`.

    `effort` is `quick`, `default` or `thorough`. `overrides` are settings by name, e.g. `method="finetune"`, `seed=42`,
    `teacher={"epochs": 3}`.
    """
    if settings is not None and effort is not None:
        raise UsageError("train(): settings and effort decide the same; leave one of them out")
    settings = _located(overridden(settings or load_settings(effort=effort), overrides, "train()"))
    progress = progress or Progress()
    if settings.method == AUTO:
        chosen = "finetune" if unlabeled is None else "sst" if settings.max_rounds == 1 else "sequst"
        progress.note(f"method {chosen}: {WHY[chosen]}", detail=True)
        settings = dataclasses.replace(settings, method=chosen)
    path = RunDirectory.require_free(output)
    method = find_method(settings.method)
    given = {"labeled": labeled, "unlabeled": unlabeled, "dev": dev, "test": test}
    with Scratch() as spool:
        files = as_files({k: v for k, v in given.items() if v is not None}, Path(spool))
        if "unlabeled" in files:
            files["unlabeled"], count = drawn(files["unlabeled"], settings, Path(spool))
            if Path(files["unlabeled"].path).name == DRAWN:
                progress.note(f"the text has {count:,} sentences; a round learns {settings.round_size:,} of them (round_size)")
        data = load_data(files, settings)
        if data.unlabeled and not method.unlabeled:
            progress.note(f"method {method.name} does not learn from unlabelled text: --unlabeled is checked and not used")
        if method.unlabeled and not any(sentence.words for sentence in data.unlabeled):
            raise UsageError(f"method {method.name} needs unlabelled text; add --unlabeled FILE")
        if settings.bilstm.vectors and settings.encoder != BILSTM:
            progress.note(f"bilstm.vectors is not used: the encoder is {settings.encoder}, not bilstm")
        encoder = load_encoder(settings, labels_of(data.labeled), method.perturbs)
        precision = resolve_precision(settings, encoder.parameters)
        facts = {
            "sequst": __version__,
            "torch": torch.__version__,
            "command": _command(),
            "threads": torch.get_num_threads(),
            "device": str(pick_device(settings.device)),
            "precision": precision,
            "encoder": {"parameters": encoder.parameters, "sha256": encoder.sha256},
        }
        directory = RunDirectory.create(path, settings, files, facts, Path(spool))
    return _execute(directory, directory.files(), settings, method, data, encoder, precision, progress, tracker)


def _command() -> str:
    """The command line of this process, normalised to `sequst ...`."""
    program, package = Path(sys.argv[0]), Path(__file__).resolve().parent
    is_ours = program.name == "__main__.py" and program.resolve().parent in (package, package / "cli")
    return shlex.join(["sequst", *sys.argv[1:]]) if is_ours or program.name in ("sequst", "sequst.exe") else "from Python"


def resume(path: str | Path, progress: Progress | None = None, tracker: Tracker | None = None) -> Result:
    """Continue a run that was stopped. It ends with the same numbers."""
    directory = RunDirectory.open(path)
    if directory.summary is not None:
        return Result(directory.path, directory.summary, was_finished=True)
    files, settings = directory.files(), directory.settings()
    progress, method, data = progress or Progress(), find_method(settings.method), load_data(files, settings)
    encoder = load_encoder(settings, labels_of(data.labeled), method.perturbs)
    precision = _as_before(directory, settings, encoder, progress)
    return _execute(directory, files, settings, method, data, encoder, precision, progress, tracker)


def _as_before(directory: RunDirectory, settings: Settings, encoder: LoadedEncoder, progress: Progress) -> str:
    """Restore the run's number of threads, and return its precision. Other weights are an error. A note says if machine or
    torch differ: numbers may then differ in their last digits."""
    facts = directory.facts
    if encoder.sha256 != facts["encoder"]["sha256"]:
        what = f"the encoder {settings.encoder} has other weights"
        if settings.encoder == BILSTM:
            what = f"{settings.bilstm.vectors} has other word vectors"
        raise SequstError(f"{what} than when the run began; begin a new run with it")
    torch.set_num_threads(facts["threads"])
    device = pick_device(settings.device)
    precision: str = facts["precision"]
    if settings.precision != precision and not has_bf16(device):
        precision = "fp32"
    for name, now in {"torch": torch.__version__, "device": str(device), "precision": precision}.items():
        if facts[name] != now:
            progress.note(f"warning: the run began with {name} {facts[name]} and continues with {now}; its numbers may differ")
    return precision


def _execute(
    directory: RunDirectory,
    files: Files,
    settings: Settings,
    method: Method,
    data: Data,
    encoder: LoadedEncoder,
    precision: str,
    progress: Progress,
    tracker: Tracker | None,
) -> Result:
    tracker, failed = tracker or Tracker(), True
    directory.lock()
    try:
        if directory.summary is not None:  # another process ended it while this one was starting
            return Result(directory.path, directory.summary, was_finished=True)
        if not method.unlabeled:
            data = dataclasses.replace(data, unlabeled=[], hidden_tags=[])
        run = Run(settings, data, encoder.encoder, directory, precision, progress, tracker)
        tracker.begin(directory.path, to_dict(settings))
        for detail in [*data.readings, f"dev set: {data.dev_policy}", *vectors_note(settings, run.text)]:
            progress.note(detail, detail=not detail.startswith("warning: "))
        for note in data.notes:
            progress.note(note)
        foretell(run, method)
        summary = _finish(run, method, _learn(run, method), files.get("test"))
        failed = False
        return Result(directory.path, summary)
    finally:
        tracker.end(failed)
        directory.unlock()


def _learn(run: Run, method: Method) -> Tagger:
    """Adapt the encoder if the settings say so, then run the method."""
    if run.settings.adapt and method.unlabeled:
        from sequst.methods.adapt import adapt

        adapt(run)
    return method.load()(run)


def _finish(run: Run, method: Method, tagger: Tagger, test_file: DataFile | None) -> dict[str, Any]:
    """Calibrate, score, save and report; returns the summary."""
    settings, calibration, dev = run.settings, None, None
    if run.data.dev:
        if settings.calibrate:
            calibration = calibrate(tagger, run.data.dev, settings.calibration_shift, settings.abstain, run.progress.note)
        dev = evaluate(tagger, run.data.dev)
    summary = {**_summary(run, method, dev), "calibration": calibration}
    model = run.directory.path / "model"
    tagger.save(model, {**summary, "settings": to_dict(run.settings), "command": run.directory.facts["command"]})
    test = None if test_file is None else _test(tagger, test_file, run)
    if test is not None:
        summary["test"] = test.to_dict()
        add_facts(model, {"test": summary["test"]})
    try:
        write_report(run, summary, dev, test)
    except Exception as error:  # a page is not worth a run
        run.progress.note(f"warning: no report.html could be written ({type(error).__name__}: {error})")
    run.directory.finish(summary, run.settings.keep_rounds)
    return summary


def _test(tagger: Tagger, file: DataFile, run: Run) -> Evaluation:
    """Score the test file, which is read here for the first time."""
    try:
        sentences, readings = file.read("required")
    except SequstError as error:
        raise SequstError(
            f"{error}\nThe tagger is trained and in {run.directory.path / 'model'}; fix the test file, then use --resume"
        ) from None
    for reading in readings:
        run.progress.note(reading, detail=True)
    for note in overlap_warning(run.data.labeled, sentences, f"test set too: its score is too high; {DROP}"):
        run.progress.note(note)
    evaluation = evaluate(tagger, sentences)
    for type_, count in evaluation.unknown_types.items():
        run.progress.note(f"type {type_} is in the test set but never labelled: its {count} entities count as missed")
    return evaluation


def _summary(run: Run, method: Method, dev: Evaluation | None) -> dict[str, Any]:
    return {
        "method": method.name,
        "encoder": run.settings.encoder,
        "head": run.settings.head,
        "seed": run.settings.seed,
        "settings_hash": run.settings.hash(method.unused),
        "labeled_sentences": len(run.data.labeled),
        "unlabeled_sentences": len(run.data.unlabeled),
        "dev_set": run.data.dev_policy,
        "dev_f1": None if dev is None else dev.total.f1,
        "rounds": max(0, len(run.history) - 1),
        "kept_round": run.kept_round,
        "history": run.history,
        "seconds": run.seconds,
        **describe_device(run.accelerator),
    }


def overridden(settings: Settings, overrides: Mapping[str, Any], where: str) -> Settings:
    """The settings with some changed by name; error messages begin with `where`."""
    if not overrides:
        return settings
    tree = to_dict(settings)
    for name, value in overrides.items():
        both = isinstance(tree.get(name), dict) and isinstance(value, Mapping)
        tree[name] = {**tree[name], **value} if both else value
    return from_dict(tree, where)


def _located(settings: Settings) -> Settings:
    """The settings with absolute paths, so that the run can be resumed from any folder."""
    if settings.encoder not in (MINILM, BILSTM) and as_path(settings.encoder).is_dir():
        return dataclasses.replace(settings, encoder=str(Path(settings.encoder).absolute()))
    if settings.encoder == BILSTM and settings.bilstm.vectors not in ("", GLOVE):
        vectors = str(as_path(settings.bilstm.vectors).absolute())
        return dataclasses.replace(settings, bilstm=dataclasses.replace(settings.bilstm, vectors=vectors))
    return settings
