from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import transformers

import sequst
from sequst import api as running
from sequst.api import _command, _located, resume, train
from sequst.corpus.formats.write import write_sentences
from sequst.corpus.sampling import Split
from sequst.errors import SequstError, UsageError
from sequst.methods.finetune import LabelledWords
from sequst.methods.registry import METHODS, Method, find_method
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training import device as device_module
from sequst.training.data import DataFile
from sequst.training.device import make_accelerator, resolve_precision
from sequst.training.directory import RunDirectory
from sequst.training.loop import PhaseSpec
from sequst.training.progress import Progress
from sequst.training.run import Run
from sequst.training.settings import Settings
from sequst.training.steps import StepResult, Steps

SHORT = {"min_steps": 24, "epochs": 1, "learning_rate": 1e-3}


class Heard(Progress):
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def note(self, message: str, detail: bool = False) -> None:
        self.heard.append(message)


def untimed(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name != "seconds"}


def summary(run: Path) -> dict[str, Any]:
    return untimed(json.loads((run / "summary.json").read_text()))


def metrics(run: Path) -> list[dict[str, Any]]:
    return [untimed(json.loads(line)) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def files(split: Split, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "split"
    split.save(folder)
    return folder


def test_a_run_directory_has_what_it_says(files: Path, tiny_encoder: str, tmp_path: Path) -> None:
    sources = {"dev": files / "dev.conll", "test": files / "unlabeled.conll"}
    result = train(files / "labeled.conll", tmp_path / "run", **sources, encoder=tiny_encoder, teacher=SHORT, evaluations=4)
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left - {".lock"} == {"settings.yaml", "run.json", "inputs", "metrics.jsonl", "model", "report.html", "summary.json"}
    assert [line["step"] for line in metrics(tmp_path / "run")] == [6, 12, 18, 24]
    assert result.summary["dev_set"].startswith("25 sentences of dev.conll")
    assert result.summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert max(line["dev_f1"] for line in metrics(tmp_path / "run")) == result.summary["dev_f1"]
    assert len(result.tagger.predict("We play in Oslo.").tags) == 5
    assert "dev set | 25 sentences" in (tmp_path / "run" / "model" / "README.md").read_text()


def test_sentences_from_python_and_files_give_the_same(files: Path, split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    from_files = train(
        files / "labeled.conll", tmp_path / "a", dev=files / "dev.conll", encoder=tiny_encoder, teacher=SHORT, evaluations=4
    )
    from_lists = train(split.labeled, tmp_path / "b", dev=split.dev, encoder=tiny_encoder, teacher=SHORT, evaluations=4)
    assert from_files.summary["dev_f1"] == from_lists.summary["dev_f1"]
    first, second = from_files.tagger.state_dict(), from_lists.tagger.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("program", "is_ours"),
    [
        ("/usr/bin/sequst", True),
        ("sequst.exe", True),
        (str(Path(sequst.__file__).parent / "__main__.py"), True),
        (str(Path(sequst.__file__).parent / "cli" / "__main__.py"), True),
        ("/home/me/mine/__main__.py", False),
        ("notebook.py", False),
        ("", False),
    ],
)
def test_the_command_is_told_however_it_was_begun(program: str, is_ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [program, "train", "--labeled", "my file"])
    assert _command() == ("sequst train --labeled 'my file'" if is_ours else "from Python")


def test_the_encoder_is_loaded_once(split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def watch(kind: Any) -> None:
        load = kind.from_pretrained
        monkeypatch.setattr(kind, "from_pretrained", lambda *a, **o: loaded.append(kind.__name__) or load(*a, **o))

    watch(transformers.AutoModelForTokenClassification)
    watch(transformers.AutoTokenizer)
    rounds = {"max_rounds": 2, "student": SHORT, "unlabeled": split.unlabeled, "method": "sequst"}
    train(split.labeled, tmp_path / "run", dev=split.dev, encoder=tiny_encoder, teacher=SHORT, evaluations=2, **rounds)
    assert sorted(loaded) == ["AutoModelForTokenClassification", "AutoTokenizer"]


def test_another_seed_gives_other_weights(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    first, second = (
        train(
            split.labeled, tmp_path / str(seed), encoder=tiny_encoder, teacher=SHORT, evaluations=4, seed=seed
        ).tagger.state_dict()
        for seed in (1, 2)
    )
    assert not torch.equal(first["head.linear.weight"], second["head.linear.weight"])


# A process that kills itself, with SIGKILL, at a chosen moment of a run
KILLER = """
import os, signal, sys
moment, count, about = sys.argv[1], int(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]

def killing(module, name):
    import importlib
    owner = importlib.import_module(module)
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    leaf = name.split(".")[-1]
    kept = getattr(owner, leaf)
    calls = 0
    def wrapped(*arguments, **options):
        nonlocal calls
        calls += about in str(arguments[:1])
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return kept(*arguments, **options)
    setattr(owner, leaf, wrapped)

killing(*moment.split(":"))
sys.argv[0] = "sequst"
from sequst.cli import main
main()
"""
MOMENTS = {
    # the function at whose n-th call, with this text in its first argument, the process dies
    "while the run directory is made": ("sequst.training.directory:save_settings", 1, ""),
    "first step": ("sequst.training.loop:_set_rate", 1, ""),
    "mid-phase": ("sequst.training.loop:_set_rate", 14, ""),
    "while saving a state": ("sequst.files:_sync", 2, "state.pt"),
    "after the last step": ("sequst.training.directory:RunDirectory.finish_phase", 1, ""),
    "while saving the phase": ("sequst.files:_sync", 1, "done.pt"),
    "while saving the model": ("sequst.tagger.save:write_json", 1, ""),
    "while testing": ("sequst.api:_test", 1, ""),
    "while writing the report": ("sequst.files:_sync", 1, "report.html"),
    "before the summary": ("sequst.training.directory:RunDirectory.finish", 1, ""),
}
FLAGS = ["--set=evaluations=4", *(f"--set=teacher.{name}={value}" for name, value in SHORT.items())]


def command(files: Path, encoder: str, output: Path) -> list[str]:
    """The command line of the run that `whole` is made by."""
    data = {"labeled": "labeled.conll", "dev": "dev.conll", "test": "unlabeled.conll"}
    inputs = [f"--{role}={files / name}" for role, name in data.items()]
    return ["train", *inputs, f"--encoder={encoder}", f"--output={output}", "--set=checkpoint_seconds=0", *FLAGS]


@pytest.fixture(scope="module")
def whole(files: Path, tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody stopped."""
    output = tmp_path_factory.mktemp("whole") / "run"
    train(
        files / "labeled.conll",
        output,
        dev=files / "dev.conll",
        test=files / "unlabeled.conll",
        encoder=tiny_encoder,
        checkpoint_seconds=0,
        teacher=SHORT,
        evaluations=4,
    )
    return output


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_resumes_and_ends_the_same(
    moment: str, whole: Path, files: Path, tiny_encoder: str, tmp_path: Path, sequst: Callable[..., Any]
) -> None:
    place, count, about = MOMENTS[moment]
    run = tmp_path / "run"
    killer = [sys.executable, "-c", KILLER, place, str(count), about, *command(files, tiny_encoder, run)]
    killed = subprocess.run(killer, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not (run / "summary.json").exists()

    if not run.exists():  # it died too early for that: the same command begins anew
        assert sequst(*command(files, tiny_encoder, run)).returncode == 0
    resumed = sequst("train", "--resume", run, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert summary(run) == summary(whole)
    assert metrics(run) == metrics(whole)
    assert (run / "model" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()
    assert not [path for path in run.rglob("*") if path.name.endswith((".tmp", ".old"))]


def test_a_finished_run_says_so(whole: Path, sequst: Callable[..., Any]) -> None:
    assert resume(whole).was_finished
    again = sequst("train", "--resume", whole)
    assert again.returncode == 0
    assert "this run is finished" in again.stdout


def test_a_run_is_never_overwritten(whole: Path, split: Split, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds a run already; continue it with `sequst train --resume"):
        train(split.labeled, whole)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("x")
    with pytest.raises(UsageError, match="is not empty"):
        train(split.labeled, tmp_path / "full")
    assert (tmp_path / "full" / "precious.txt").read_text() == "x"


def test_nothing_is_made_where_something_is_wrong(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"encoder": "no/such"}, {"method": "finetun"}, {"max_length": 5}, {"max_length": 500}, {"dev": tmp_path / "none"},
        {"teacher": {"epochs": -1}}, {"sede": 1}, {"device": "abacus"},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(SequstError):
            train(split.labeled, tmp_path / "run", **{"encoder": tiny_encoder, **options})
        assert not (tmp_path / "run").exists(), options


def test_changed_data_is_noticed_on_resuming(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    split.save(tmp_path / "data")
    train(tmp_path / "data" / "labeled.conll", tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, evaluations=4)
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "data" / "labeled.conll").write_text("other B-X\n")
    with pytest.raises(SequstError, match="has changed since the run began"):
        resume(tmp_path / "run")


def test_two_processes_do_not_share_a_run(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, evaluations=4)
    (tmp_path / "run" / "summary.json").unlink()
    first = RunDirectory.open(tmp_path / "run")
    first.lock()
    with pytest.raises(SequstError, match="another process is working on this run"):
        resume(tmp_path / "run")
    first.unlock()
    assert not resume(tmp_path / "run").was_finished


def test_of_two_runs_that_begin_together_one_is_refused(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sequst.api as running

    kept = running.load_encoder

    def late(settings: Any, *more: Any, **options: Any) -> Any:
        monkeypatch.setattr(running, "load_encoder", kept)
        train(
            split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, evaluations=4, seed=1
        )  # the other one overtakes
        return kept(settings, *more, **options)

    monkeypatch.setattr(running, "load_encoder", late)
    with pytest.raises(UsageError, match="holds a run already"):
        train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, evaluations=4, seed=2)
    assert resume(tmp_path / "run").summary["seed"] == 1


def test_a_relative_encoder_is_found_again(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(tiny_encoder).parent)
    train(split.labeled, tmp_path / "run", encoder="tiny", teacher=SHORT, evaluations=4)
    (tmp_path / "run" / "summary.json").unlink()
    monkeypatch.chdir(tmp_path)
    assert not resume(tmp_path / "run").was_finished


def test_a_run_directory_may_be_moved(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    before = train(split.labeled, tmp_path / "run", dev=split.dev, encoder=tiny_encoder, teacher=SHORT, evaluations=4).summary
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    assert untimed(resume(tmp_path / "elsewhere").summary) == untimed(before)


def test_a_loss_that_is_not_finite_stops_the_run_with_advice(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    kept = Tagger.loss

    def broken(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return kept(*arguments) * (float("nan") if calls == 9 else 1.0)

    monkeypatch.setattr(Tagger, "loss", broken)
    with pytest.raises(
        SequstError, match=r"phase teacher of round 0: the loss is not finite at step 9 of 24(.|\n)*learning_rate=0.00025"
    ):
        train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, evaluations=4)


def test_a_full_disk_leaves_nothing_half_written_and_the_run_resumable(
    files: Path, tiny_encoder: str, tmp_path: Path, whole: Path, sequst_process: Callable[..., Any]
) -> None:
    """A limit on the size of files stands in for the disk: the write of the weights fails in the middle."""
    run = tmp_path / "run"

    def limit() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    failed = sequst_process(*command(files, tiny_encoder, run), preexec_fn=limit)
    assert failed.returncode == 1
    assert "the disk is full or a quota is reached" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (run / "model").exists()
    assert not [path for path in run.rglob("*") if path.name.endswith((".tmp", ".old"))]
    assert sequst_process("train", "--resume", run).returncode == 0
    assert "```sh\nsequst train --labeled=" in (run / "model" / "README.md").read_text()  # and not `python -m sequst`
    assert (run / "model" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()


def two_phases(run: Run) -> Tagger:
    """A method that trains twice and records between."""
    tagger = run.new_tagger(0, "teacher")
    examples = run.examples(tagger, run.data.labeled)
    for round_ in (0, 1):
        run.train(tagger, PhaseSpec("teacher", round_, run.settings.teacher, examples, LabelledWords()))
        run.record({"round": round_, "note": "between"})
    return tagger


def test_what_a_method_records_between_phases_is_neither_lost_nor_doubled(
    split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Method, "load", lambda self: two_phases)
    train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, evaluations=4, keep_rounds=True)
    before = metrics(tmp_path / "run")
    assert [line.get("note", line.get("step")) for line in before] == [6, 12, 18, 24, "between"] * 2
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "run" / "rounds" / "1" / "teacher" / "done.pt").unlink()  # the second phase is done again
    resume(tmp_path / "run")
    assert metrics(tmp_path / "run") == before


def test_another_encoder_is_noticed_on_resuming(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    train(split.labeled, tmp_path / "run", encoder=str(tmp_path / "encoder"), teacher=SHORT, evaluations=4)
    (tmp_path / "run" / "summary.json").unlink()
    torch.manual_seed(1)
    config = transformers.AutoConfig.from_pretrained(tiny_encoder)
    transformers.BertModel(config).save_pretrained(tmp_path / "encoder")
    with pytest.raises(SequstError, match="other weights than when the run began"):
        resume(tmp_path / "run")


def test_another_machine_is_told_on_resuming(
    split: Split, tiny_encoder: str, tmp_path: Path, sequst: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(split.labeled, tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, evaluations=4)
    (tmp_path / "run" / "summary.json").unlink()
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**facts, "torch": "1.0", "precision": "bf16", "threads": 3}))
    monkeypatch.setattr("sequst.api.has_bf16", lambda device: False)
    before = torch.get_num_threads()
    try:
        done = sequst("train", "--resume", tmp_path / "run")
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert "the run began with torch 1.0" in done.stderr
    assert "the run began with precision bf16 and continues with fp32" in done.stderr


@pytest.mark.parametrize("began", ["fp32", "bf16"])
def test_a_run_goes_on_in_its_precision(
    began: str, split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever would be chosen for it today."""
    options: dict[str, Any] = {"encoder": tiny_encoder, "device": "cpu", "teacher": SHORT}
    train(split.labeled, tmp_path / "run", **options)
    (tmp_path / "run" / "summary.json").unlink()
    facts = {**json.loads((tmp_path / "run" / "run.json").read_text()), "precision": began}
    (tmp_path / "run" / "run.json").write_text(json.dumps(facts))
    monkeypatch.setattr("sequst.api.has_bf16", lambda device: True)
    monkeypatch.setattr("sequst.api.resolve_precision", lambda *_: "fp32" if began == "bf16" else "bf16")
    progress = Heard()
    assert resume(tmp_path / "run", progress).summary["precision"] == began
    assert not any("its numbers may differ" in note for note in progress.heard)


def test_pipes_are_kept_like_standard_input(files: Path, tiny_encoder: str, tmp_path: Path) -> None:
    names = {"labeled": "labeled.conll", "test": "dev.conll"}
    writers = []
    for role, name in names.items():
        os.mkfifo(tmp_path / role)
        writers.append(threading.Thread(target=(tmp_path / role).write_bytes, args=((files / name).read_bytes(),)))
        writers[-1].start()
    result = train(
        tmp_path / "labeled", tmp_path / "run", test=tmp_path / "test", encoder=tiny_encoder, teacher=SHORT, evaluations=4
    )
    for writer in writers:
        writer.join()
    assert result.summary["test"]["sentences"] == 25
    (tmp_path / "run" / "summary.json").unlink()
    assert untimed(resume(tmp_path / "run").summary) == untimed(result.summary)


def test_one_sentence_is_enough(write: Callable[..., Path], tiny_encoder: str, tmp_path: Path) -> None:
    result = train(write("one.conll", "Oslo B-place\n"), tmp_path / "run", encoder=tiny_encoder, teacher=SHORT, evaluations=4)
    assert len(result.tagger.predict("We play in Oslo").tags) == 4


def test_a_folder_named_like_the_default_encoder_is_in_nobodys_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "minilm").mkdir()
    monkeypatch.chdir(tmp_path)
    assert _located(Settings()).encoder == "minilm"


@pytest.mark.parametrize(
    ("device", "has", "found"),
    [
        ("cuda", True, ["fp32", "fp32", "bf16"]),
        ("cpu", True, ["fp32", "bf16", "bf16"]),
        ("cpu", False, ["fp32", "fp32", "fp32"]),
    ],
)
def test_precision_follows_the_machine_and_the_size(
    device: str, has: bool, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(device_module, "pick_device", lambda name: torch.device(device))
    monkeypatch.setattr(device_module, "has_bf16", lambda device: has)
    monkeypatch.setattr(device_module, "Accelerator", lambda mixed_precision, cpu: asked.append(mixed_precision))
    sizes = (1_000_000, 22_000_000, 110_000_000)
    assert [resolve_precision(Settings(), size) for size in sizes] == found
    assert resolve_precision(Settings(encoder="bilstm"), 110_000_000) == "fp32"
    assert resolve_precision(Settings(precision="bf16"), 1) == "bf16"
    for precision in ("fp32", "bf16"):
        make_accelerator(Settings(), precision)
    torch.use_deterministic_algorithms(False)
    assert asked == ["no", "bf16"]


@pytest.mark.parametrize("precision", ["auto", "bf16"])
def test_phases_that_look_at_small_differences_are_in_fp32(
    precision: str, split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the others are in, unless it was asked for by name."""
    monkeypatch.setattr(running, "resolve_precision", lambda settings, parameters: "bf16")
    monkeypatch.setattr("sequst.training.encoder.require_bf16", lambda *_: None)
    seen: dict[str, set[torch.dtype]] = {}
    step = Steps._take

    def watched(steps: Steps, batch: Batch) -> StepResult:
        objective = type(steps._objective).__name__
        hook = steps._tagger.head.linear.register_forward_hook(
            lambda module, inputs, out: seen.setdefault(objective, set()).add(out.dtype)
        )
        try:
            return step(steps, batch)
        finally:
            hook.remove()

    monkeypatch.setattr(Steps, "_take", watched)
    short = {"min_steps": 2, "epochs": 0.01}
    options: dict[str, Any] = {"unlabeled": split.unlabeled[:20], "encoder": tiny_encoder, "precision": precision}
    options |= {"teacher": {**short, "min_steps": 60}, "student": short, "retune": short, "max_rounds": 1}
    half, exact = {torch.bfloat16}, {torch.float32 if precision == "auto" else torch.bfloat16}
    for method, phases in (
        ("vat", {"LabelledAndAdversarial": exact}),
        ("metast", {"LabelledWords": half, "MetaWeightedWords": half}),
    ):
        seen.clear()
        train(split.labeled, tmp_path / method, method=method, metast={"warmup": 0.0}, **options)
        assert seen == phases


def test_bf16_where_there_is_none(split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sequst.tagger.precision.has_bf16", lambda device: False)
    with pytest.raises(UsageError, match=r"setting precision=bf16: this CPU has no bf16; use fp32 or auto"):
        train(split.labeled, tmp_path / "run", encoder=tiny_encoder, device="cpu", precision="bf16")
    assert not (tmp_path / "run").exists()


def test_what_is_no_sentence_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"labeled: found 'a sentence' in it; give a file, or a list of Sentence"):
        train(["a sentence"], tmp_path / "run")  # type: ignore[list-item]
    assert not (tmp_path / "run").exists()


def test_methods_are_found_by_name() -> None:
    assert all(callable(method.load()) for method in METHODS.values())
    with pytest.raises(UsageError, match="unknown method 'fine-tune'; did you mean 'finetune'"):
        find_method("fine-tune")


@pytest.mark.skipif(os.geteuid() != 0, reason="changes its user, which only root may")
def test_an_output_folder_without_permission(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    os.seteuid(65534)
    try:
        with pytest.raises(SequstError, match="ermission"):
            RunDirectory.require_free(locked / "run")
    finally:
        os.seteuid(0)


@pytest.fixture
def splits(split: Split, tmp_path: Path) -> Any:
    """What `datasets` gives for a name of the hub: the splits of a dataset by name."""
    datasets = pytest.importorskip("datasets")
    parts = {"train": split.labeled, "raw": [s.without_tags() for s in split.unlabeled[:8]], "validation": split.dev[:9]}
    for name, sentences in parts.items():
        write_sentences(tmp_path / "parts" / name, "datasets", sentences)
    return datasets.DatasetDict({name: datasets.load_from_disk(str(tmp_path / "parts" / name)) for name in parts})


def test_a_dataset_of_the_hub_is_kept_with_the_run(
    splits: Any, split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    asked: list[str] = []

    def load_dataset(name: str, configuration: str | None = None) -> Any:
        asked.append(name)
        return splits

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    names = {role: DataFile(f"someone/ner#{name}", "datasets") for role, name in (("unlabeled", "raw"), ("dev", "validation"))}
    files = {**names, "test": names["dev"]}
    labeled = DataFile("someone/ner#train", "datasets")
    result = train(
        labeled, tmp_path / "run", **files, method="finetune", encoder=tiny_encoder, device="cpu", teacher=SHORT, evaluations=4
    )
    assert asked == ["someone/ner"] * 4
    assert result.summary["labeled_sentences"] == len(split.labeled)
    assert result.summary["dev_set"].startswith("9 sentences of someone/ner#validation")
    kept = {path.name for path in (tmp_path / "run" / "inputs").iterdir()}
    assert kept == {"labeled.parquet", "unlabeled.parquet", "dev.parquet", "test.parquet"}

    before = summary(tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    shutil.rmtree(tmp_path / "run" / "model")
    monkeypatch.delattr(datasets, "load_dataset")  # the hub is out of reach now
    resume(tmp_path / "run")
    assert summary(tmp_path / "run") == before


def test_a_split_of_a_saved_dataset(splits: Any, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splits.save_to_disk(str(tmp_path / "saved"))
    monkeypatch.chdir(tmp_path)
    result = train(
        "saved#train", "run", dev="saved#validation", encoder=tiny_encoder, device="cpu", teacher=SHORT, evaluations=4
    )
    assert result.summary["dev_set"].startswith("9 sentences of saved#validation")
    assert Path(json.loads(Path("run/run.json").read_text())["files"]["labeled"]["path"]) == tmp_path / "saved#train"


def test_a_name_that_the_hub_does_not_have(tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")

    def load_dataset(name: str, configuration: str | None = None) -> Any:
        raise ConnectionError(f"{name} cannot be had")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(SequstError, match=r"someone/nre#train, record 1: found no dataset .*cannot be had"):
        train(DataFile("someone/nre#train", "datasets"), tmp_path / "run", encoder=tiny_encoder)
    assert not (tmp_path / "run").exists()


def test_labelled_sentences_of_the_test_set_are_told_when_it_is_read(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    progress = Heard()
    for name, test in (("shared", [*split.labeled[:3], *split.unlabeled[:5]]), ("own", split.unlabeled[:5])):
        train(
            split.labeled,
            tmp_path / name,
            test=test,
            progress=progress,
            encoder=tiny_encoder,
            device="cpu",
            teacher=SHORT,
            evaluations=4,
        )
    [told] = (note for note in progress.heard if note.startswith("warning"))
    assert told.startswith(f"warning: 3 of the {len(split.labeled)} labelled sentences are in the test set too: its score")


@pytest.mark.parametrize(
    ("options", "method"),
    [({}, "sequst"), ({"effort": "quick"}, "sst"), ({"max_rounds": 1}, "sst"), ({"unlabeled": None}, "finetune")],
)
def test_auto_chooses_by_text_and_rounds_and_says_why(
    options: dict[str, Any], method: str, split: Split, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told(Progress):
        notes: ClassVar[list[str]] = []

        def note(self, message: str, detail: bool = False) -> None:
            self.notes.append(message)

    def stop(run: Any, method: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("sequst.api._learn", stop)
    sources = {"unlabeled": split.unlabeled, "encoder": tiny_encoder, "progress": Told()}
    with pytest.raises(KeyboardInterrupt):
        train(split.labeled, tmp_path / "run", **{**sources, **options})
    assert RunDirectory.open(tmp_path / "run").settings().method == method
    assert any(note.startswith(f"method {method}: ") for note in Told.notes)


def test_an_effort_and_settings_exclude_each_other(split: Split, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"train\(\): settings and effort decide the same"):
        train(split.labeled, tmp_path / "run", effort="quick", settings=Settings())
    assert not (tmp_path / "run").exists()
