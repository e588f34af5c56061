"""The commands and the Python of the README and of every page: run in one process, with a tiny encoder and short phases."""

from __future__ import annotations

import dataclasses
import gzip
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sequst import api as running
from sequst.corpus.formats.columns import write_conll
from sequst.corpus.formats.write import write_sentences
from sequst.corpus.generated import generate
from sequst.corpus.sampling import sample
from sequst.experiments.cells import Cell
from sequst.experiments.engines import ENGINES, Ended, Job
from sequst.tagger.precision import has_bf16
from sequst.training.settings import Ensemble, PhaseSettings, Settings, StudentSettings

REPOSITORY = Path(__file__).parent.parent.parent
EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
STUDY = REPOSITORY / "docs" / "study"  # a closed record, of settings that are gone
PAGES = sorted({REPOSITORY / "README.md", *(p for p in (REPOSITORY / "docs").rglob("*.md") if STUDY not in p.parents)})
OWN_TESTS = {
    "use-your-annotation-tool.md", "choose-what-to-label.md", "find-wrong-labels.md", "serve.md", "serve-behind-nginx.md",
    "label-with-label-studio.md", "label-in-the-studio.md",
}  # fmt: skip
"""Pages whose blocks are run, and looked at, in tests of their own."""
ELSEWHERE = ("ls ", ". .venv/bin/activate", "nvidia-cuda-mps-control")
"""Lines that show, or set up, a machine."""
LONG = ("experiment run screening", "sequst studio ", "demo ", "vectors=glove", "--download", "--engine", "--mps")
"""Commands that take hours, a person, a network, a GPU, a cluster or what is not installed: they are understood, and that is
all that is tried."""
if not has_bf16(torch.device("cpu")):
    LONG += ("--precision bf16",)
NARROW = {"--dataset": ["conll03"], "--method": ["finetune"], "--head": ["softmax"], "--seed": ["12"]}
"""What is run of an experiment, where its command does not say."""
SHELL: dict[str, Callable[[list[str], int], list[str]]] = {
    "cat": lambda rows, _: rows,
    "shuf": lambda rows, count: rows[: count or None],
    "sort": lambda rows, _: list(dict.fromkeys(rows)),
    "head": lambda rows, count: rows[:count],
    "tail": lambda rows, first: rows[first - 1 :],  # tail -n +51: from the 51st on
}
"""What other commands make of the rows of files, in a way that a test can know."""
GIVEN = ["--labeled", "labeled.conll", "--dev", "dev.conll", "--output", "run"]
ONE = Ensemble(teachers=1)
QUICK = PhaseSettings(min_steps=3, epochs=0.01, learning_rate=1e-3, batch_size=4)


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"```(sh|python|py)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def lines(block: str) -> list[str]:
    """Its commands, joined where one goes on in the next line, without comments."""
    joined = block.replace("\\\n", " ").splitlines()
    return [line.strip() for line in joined if line.strip() and not line.lstrip().startswith("#")]


@pytest.fixture
def folder(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where what the pages name is there, and training is short: phases of three steps, which teach something all the
    same, for the first teacher has a few more."""
    split = sample(generate().pool, 10)
    parts = {"labeled": split.labeled, "dev": split.dev, "test": generate().test[:20], "all": generate().pool}
    for role, part in parts.items():
        write_conll(tmp_path / f"{role}.conll", part)
    (tmp_path / "raw.txt").write_text("\n".join(" ".join(s.words) for s in split.unlabeled[:70]) + "\n")
    corpus = tmp_path / "build" / "demo" / "corpus"
    corpus.mkdir(parents=True)
    for role in ("labeled", "dev", "test"):
        shutil.copy(tmp_path / f"{role}.conll", corpus)
    write_conll(corpus / "unlabeled.conll", split.unlabeled[:30])
    shutil.copytree(corpus, tmp_path / "d" / "corpus")
    for name, part in (("export.json", split.labeled), ("export-2.json", split.dev)):
        write_sentences(tmp_path / name, "labelstudio", part)
    (tmp_path / "first.txt").write_text("We play in Oslo.\n")
    with gzip.open(tmp_path / "cc.de.300.vec.gz", "wt", encoding="utf-8") as vectors:
        vectors.writelines(
            f"{word} 0.5 {number}\n" for number, word in enumerate({w.lower() for s in split.labeled for w in s.words})
        )
    kept = running._located

    def located(settings: Settings) -> Settings:
        encoder = settings.encoder if settings.encoder == "bilstm" else tiny_encoder
        teacher = dataclasses.replace(QUICK, min_steps=100)
        phases = {"teacher": teacher, "student": StudentSettings(**dataclasses.asdict(QUICK)), "retune": QUICK}
        quick = dataclasses.replace(
            settings, encoder=encoder, max_rounds=1, device="cpu", ensemble=ONE, head_rate=3.0, **phases
        )
        return kept(dataclasses.replace(quick, uncertainty=dataclasses.replace(quick.uncertainty, passes=2)))

    monkeypatch.setattr(running, "_located", located)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Here:
    """Runs the cells of a grid in this process, where phases are short."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.cells: list[Cell] = []

    def room(self) -> int:
        return 1 - len(self.cells)

    def begin(self, cell: Cell) -> None:
        self.cells.append(cell)

    def wait(self, seconds: float | None) -> list[Ended]:
        cell = self.cells.pop()
        return [(cell, self.job.attempt(cell))]

    def end(self) -> None:
        pass


@pytest.fixture
def benchmarks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generated corpus as two benchmarks, in the folders that the pages name, and grids that run here."""
    for place, name in (("DIR", "conll03"), ("DIR", "mine"), ("benchmarks", "conll03")):
        (folder / place / name).mkdir(parents=True)
        write_conll(folder / place / name / "train.txt.gz", generate().pool[:300])
        write_conll(folder / place / name / "test.txt.gz", generate().test[:20])
    monkeypatch.setitem(ENGINES, "local", Here)


def set_up(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a line sets up a machine, and what it names is there: an extra, a target of the Makefile, a folder of logs."""
    words = shlex.split(line, comments=True)
    if words[0] == "export":
        monkeypatch.setenv(*words[1].split("="))
    elif words[:2] == ["pip", "install"]:
        extra = re.fullmatch(r"\.\[(\w+)\]", words[2])
        makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
        assert extra[1] in EXTRAS if extra else words[2] == "." or f"ENCODER := {words[-1]}\n" in makefile, line
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}: ", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), line
    elif words[0] == "python":
        script = (REPOSITORY / words[1]).read_text(encoding="utf-8")
        assert all(re.search(rf"{flag}\b", script) for flag in words if flag.startswith("--")), line
    elif words[0] == "tensorboard":
        assert list((folder / words[2]).rglob("events.*")), line
    else:
        return line.startswith(ELSEWHERE)
    return True


def narrowed(words: list[str]) -> list[str]:
    """An experiment of a few cells."""
    more = [] if words[3].endswith(".jsonl") else NARROW.items()
    return words + [each for flag, values in more if flag not in words for value in values for each in (flag, value)]


def run(line: str, sequst: Callable[..., Any], folder: Path) -> None:
    """One line of a shell: a command of ours, maybe with something piped in or its output sent to a file."""
    before, _, command = line.rpartition(" | ")
    words = shlex.split(command, comments=True)
    if words[0] == "printf":
        (folder / words[-1]).write_text(words[1].replace("\\n", "\n"))
        return
    if words[0] in SHELL:
        names = words[3:-2] if words[1] == "-n" else [word for word in words[1:-2] if word[0] != "-"]  # head -n 50 FILE > FILE
        rows = [row for name in names for row in (folder / name).open()]
        (folder / words[-1]).write_text("".join(SHELL[words[0]](rows, int(words[2]) if words[1] == "-n" else 0)))
        return
    if words[0] == "--set":
        words = ["sequst", "train", *GIVEN, "--unlabeled", "raw.txt", *words]
    words = words[1:] if words[0].startswith("RAY_ADDRESS=") else words
    assert words[0] == "sequst", line
    if any(part in " ".join(words) for part in LONG):
        shown = sequst(*words[1 : 3 if words[1] == "experiment" else 2], "--help").stdout
        assert all(re.search(rf"{flag}\b", shown) for flag in re.findall(r"--[a-z0-9-]+", " ".join(words))), line
        return
    words, _, written = (words[: words.index(">")], *words[words.index(">") :]) if ">" in words else (words, "", "")
    words = [each for word in words for each in (GIVEN if word == "..." else [word])]
    words = narrowed(words) if words[1:3] == ["experiment", "run"] else words
    if "--output" in words and words[1] == "train":
        shutil.rmtree(folder / words[words.index("--output") + 1], ignore_errors=True)
    done = sequst(*words[1:], cwd=folder, stdin=f"{shlex.split(before)[1]}\n" if before else "")
    assert done.returncode == 0, (line, done.stderr)
    if written:
        (folder / written).write_text(done.stdout, encoding="utf-8")


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in OWN_TESTS and blocks(page)], ids=lambda p: p.stem)
def test_every_block_runs(page: Path, folder: Path, sequst: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf-8")
    if "run/model" in text or "--resume run" in text:
        running.train("labeled.conll", "run", dev="dev.conll")
    if trained := re.search(r"project/models/\d+", text):
        shutil.copytree(running.train("labeled.conll", "trained", dev="dev.conll").path / "model", trained[0])
    if recipe := re.search(r"```yaml\n(about: .*?)```", text, re.DOTALL):
        (folder / "mine.yaml").write_text(recipe[1], encoding="utf-8")
    for kind, block in blocks(page):
        if kind == "sh":
            for line in lines(block):
                if not set_up(line, folder, monkeypatch):
                    run(line, sequst, folder)
        elif "needs a network" not in block and page.name != "README.md":  # whose own test runs it at full length
            shutil.rmtree(folder / "run2", ignore_errors=True)
            exec(block.replace('"run"', '"run2"') if "sequst.train" in block else block, {})
