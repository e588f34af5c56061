"""Every verb from the outside: what it prints, what it writes, how it exits."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from sequst.api import train
from sequst.corpus.sampling import Split

Cli = Callable[..., Any]
Write = Callable[..., Path]
SHORT = ["--set=teacher.min_steps=4", "--set=teacher.epochs=0.1", "--set=evaluations=1"]


@pytest.fixture(scope="module")
def model(split: Split, tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger of the tiny encoder that has learnt enough to find something."""
    run = tmp_path_factory.mktemp("model") / "run"
    phase = {"min_steps": 150, "learning_rate": 3e-3}
    train([*split.labeled, *split.unlabeled[:100]], run, encoder=tiny_encoder, teacher=phase)
    return run / "model"


def test_predict_text(model: Path, write: Write, sequst: Cli) -> None:
    texts = ["Anna Lindqvist is flying to Lisbon tomorrow.", "", "We play  The Planets in Oslo on Friday ."]
    done = sequst("predict", model, write("in.txt", "\n".join(texts)))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["id"] for record in records] == [1, 2]
    for record, text in zip(records, (texts[0], texts[2]), strict=True):
        assert set(record) == {"id", "words", "tags", "entities"}
        assert len(record["words"]) == len(record["tags"])
        assert record["entities"]
        for entity in record["entities"]:
            assert set(entity) == {"type", "start", "end", "start_char", "end_char", "text", "confidence"}
            assert text[entity["start_char"] : entity["end_char"]] == entity["text"]
            assert record["words"][entity["start"]] in entity["text"]


def test_predict_is_deterministic_in_every_form(model: Path, write: Write, tmp_path: Path, sequst: Cli) -> None:
    path = write("in.jsonl", '{"id": "a", "words": ["Anna", "sings"]}\n{"text": "In Oslo", "id": 9}\n{"text": ""}\n')
    to_screen = sequst("predict", model, path)
    assert sequst("predict", model, path, "--output", tmp_path / "out.jsonl.gz").returncode == 0
    by_pipe = sequst("predict", model, "-", "--input-format", "jsonl", stdin=gzip.compress(path.read_bytes()))
    assert to_screen.stdout == by_pipe.stdout == gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()).decode()
    first, second, third = map(json.loads, to_screen.stdout.splitlines())
    assert (first["id"], second["id"], third["id"], third["words"]) == ("a", 9, 3, [])


def test_predict_with_uncertainty(model: Path, write: Write, sequst: Cli) -> None:
    path = write("in.txt", "Anna Lindqvist is flying to Lisbon tomorrow.\nWe play The Planets in Oslo .\n")
    plain = [json.loads(line) for line in sequst("predict", model, path).stdout.splitlines()]
    done = sequst("predict", model, path, "--uncertainty", "--passes", 5)
    assert done.stdout == sequst("predict", model, path, "--uncertainty", "--passes", 5).stdout
    for record, without in zip(map(json.loads, done.stdout.splitlines()), plain, strict=True):
        assert len(record["confidence"]) == len(record["information_gain"]) == len(record["words"])
        assert record["tags"] == without["tags"]
        for entity, same in zip(record["entities"], without["entities"], strict=True):
            words = slice(entity["start"], entity["end"])
            assert entity.pop("mc_confidence") == pytest.approx(fmean(record["confidence"][words]), abs=2e-6)
            assert entity.pop("information_gain") == max(record["information_gain"][words]) > 0
            assert entity == same
    assert "use jsonl" in sequst("predict", model, path, "--uncertainty", "--format", "conll").stderr
    assert "at least 1" in sequst("predict", model, path, "--uncertainty", "--passes", 0).stderr
    for flag in ("--passes", "--last-layers"):
        done = sequst("predict", model, path, flag, 1)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{flag} needs --uncertainty" in done.stderr


def test_predict_for_an_annotation_tool(model: Path, write: Write, tmp_path: Path, sequst: Cli) -> None:
    path = write("in.txt", "👍 Anna Lindqvist is flying to Lisbon tomorrow.\nWe play The Planets in Oslo .\n")
    plain = [json.loads(line) for line in sequst("predict", model, path).stdout.splitlines()]
    assert sequst("predict", model, path, "--format", "labelstudio", "--output", tmp_path / "tasks.json").returncode == 0
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert [task["data"]["id"] for task in tasks] == [1, 2]
    for task, record in zip(tasks, plain, strict=True):
        [prediction] = task["predictions"]
        regions = [(r["value"]["start"], r["value"]["text"], r["value"]["labels"], r["score"]) for r in prediction["result"]]
        assert regions == [(e["start_char"], e["text"], [e["type"]], e["confidence"]) for e in record["entities"]]
        assert prediction["score"] == min(e["confidence"] for e in record["entities"])
    again = sequst("predict", model, tmp_path / "tasks.json")  # predictions are no answers: its text is tagged anew
    assert [json.loads(line) for line in again.stdout.splitlines()] == plain


def test_convert(write: Write, tmp_path: Path, sequst: Cli) -> None:
    records = [
        {"id": 1, "text": "👍 Anna sings", "label": [[2, 6, "PER"]]},
        {"id": 2, "text": "Oslo", "label": [[0, 3, "LOC"]]},
    ]
    path = write("in.jsonl", "\n".join(json.dumps(record) for record in records))
    done = sequst("convert", path, tmp_path / "out.conll")
    assert done.returncode == 1
    assert "nothing was written, because of 1 place:\n" in done.stderr
    assert "in.jsonl:2: found LOC 'Osl' cuts 'Oslo' in 'Oslo'; expected" in done.stderr
    assert not (tmp_path / "out.conll").exists()
    done = sequst("convert", path, tmp_path / "out.conll", "--on-conflict", "trim")
    assert done.returncode == 0, done.stderr
    assert f"{path}: read as doccano, by its content: line 1 has label" in done.stderr
    assert "in.jsonl:2: 'Oslo': LOC 'Osl' cuts 'Oslo'; trimmed to 'Oslo'" in done.stderr
    assert "out.conll: written as conll, by its extension .conll" in done.stderr
    assert done.stdout == f"2 sentences, 2 entities written to {tmp_path / 'out.conll'}; did not fit: 1\n"
    assert (tmp_path / "out.conll").read_text() == "👍\tO\nAnna\tB-PER\nsings\tO\n\nOslo\tB-LOC\n\n"
    assert "did you mean 'trim'" in sequst("convert", path, tmp_path / "x.conll", "--on-conflict", "trin").stderr
    assert "did you mean 'doccano'" in sequst("convert", path, tmp_path / "x.conll", "--from", "docano").stderr
    assert sequst("convert", path, tmp_path / "x.conll", "--to", "nothing").returncode == 2


def test_verbs_read_what_annotation_tools_write(write: Write, tmp_path: Path, sequst: Cli) -> None:
    rows = "".join(f"w{i}\tB-X\n\n" for i in range(6))
    assert sequst("convert", write("a.conll", rows), tmp_path / "docs", "--to", "brat").returncode == 0
    done = sequst("check", "--labeled", tmp_path / "docs", "--encoder", "none")
    assert "6 sentences, 6 words, 6 entities of 1 types" in done.stdout
    assert sequst("sample", tmp_path / "docs", "--shots", 2, "--output", tmp_path / "split").returncode == 0


def test_train_on_a_folder_that_changes(write: Write, tmp_path: Path, tiny_encoder: str, sequst: Cli) -> None:
    sequst("convert", write("a.conll", "".join(f"w{i}\tB-X\n\n" for i in range(6))), tmp_path / "docs", "--to", "brat")
    run = ["--encoder", tiny_encoder, "--output", tmp_path / "run", *SHORT]
    done = sequst("train", "--labeled", tmp_path / "docs", *run)
    assert done.returncode == 0, done.stderr
    from sequst.training.data import DataFile

    before = DataFile(str(tmp_path / "docs")).stamped()
    (tmp_path / "docs" / "1.ann").write_text("")
    assert DataFile(str(tmp_path / "docs")).stamped().sha256 != before.sha256


def test_predict_columns(model: Path, write: Write, sequst: Cli) -> None:
    done = sequst("predict", model, write("in.conll", "Anna\tNNP\nsings\tVBZ\n\nOslo\tNNP\n"), "--format", "conll")
    rows = done.stdout.split("\n")
    assert [row.split("\t")[0] for row in rows] == ["Anna", "sings", "", "Oslo", "", ""]
    assert all(len(row.split("\t")) == 2 for row in rows if row)


def test_predict_into_an_empty_folder_named_by_a_dot(write: Write, tmp_path: Path, sequst: Cli) -> None:
    path = write("l.conll", "a B-X\n\nb B-X\n")
    (tmp_path / "empty").mkdir()
    assert sequst("sample", path, "--shots", 1, "--output", ".", cwd=tmp_path / "empty").returncode == 0
    assert (tmp_path / "empty" / "summary.json").is_file()


def test_predict_survives_odd_words(model: Path, write: Write, sequst: Cli) -> None:
    done = sequst("predict", model, write("in.txt", f"{'x' * 100_000} \u200b and {'. ' * 3000}\n"))
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert len(record["words"]) == len(record["tags"]) == 3003


def test_predict_writes_nothing_where_the_input_breaks_off(model: Path, write: Write, tmp_path: Path, sequst: Cli) -> None:
    done = sequst("predict", model, write("in.jsonl", '{"words": ["a"]}\n{"words": 1}\n'), "--output", tmp_path / "out")
    assert done.returncode == 1
    assert "in.jsonl:2: found words 1" in done.stderr
    assert not list(tmp_path.glob("*out*"))


def test_predict_into_a_closed_pipe(model: Path, write: Write) -> None:
    path = write("in.txt", "We play in Oslo .\n" * 1000)
    shell = f"{sys.executable} -m sequst predict {model} {path} | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, check=False)
    assert len(done.stdout.splitlines()) == 1
    assert b"Traceback" not in done.stderr
    assert b"bug" not in done.stderr


def test_evaluate(model: Path, split: Split, tmp_path: Path, sequst: Cli) -> None:
    from sequst.corpus.formats.columns import write_conll

    write_conll(tmp_path / "dev.conll", split.dev)
    done = sequst("evaluate", model, tmp_path / "dev.conll", "--json")
    scores = json.loads(done.stdout)
    assert set(scores) >= {"precision", "recall", "f1", "types", "ece", "sentences"}
    assert scores["sentences"] == 25
    assert 20 < scores["f1"] <= 100
    assert set(scores["types"]) == {"person", "place", "company", "work", "date"}
    table = sequst("evaluate", model, tmp_path / "dev.conll").stdout
    assert f"{scores['f1']:.2f}" in table
    assert "expected calibration error" in table


def test_evaluate_with_types_the_model_does_not_know(model: Path, write: Write, sequst: Cli) -> None:
    done = sequst("evaluate", model, write("t.conll", "a B-NEW\n\nb B-NEW\n"), "--json")
    assert done.returncode == 0
    assert "does not know the type NEW; its 2 entities count as missed" in done.stderr
    assert json.loads(done.stdout)["types"]["NEW"]["fn"] == 2


def test_check(write: Write, tmp_path: Path, tiny_encoder: str, sequst: Cli) -> None:
    good = write("good.conll", "".join(f"w{i} B-X\n\n" for i in range(5)) + "long O\n" * 100 + "\n\u200b O\n")
    done = sequst("check", "--labeled", good, "--encoder", tiny_encoder)
    assert done.returncode == 0, done.stdout
    assert "training may start" in done.stdout
    assert "1 sentences are longer than 64 sub-words and will be split" in done.stdout
    assert "no sub-word for 1 words" in done.stdout
    bad = write("bad.conll", "a B-X\n\nb\n\nc Y\n")
    done = sequst("check", "--labeled", bad, "--dev", good, "--encoder", "none", "--json")
    assert done.returncode == 1
    errors = [f["message"] for f in json.loads(done.stdout)["findings"] if f["level"] == "error"]
    assert len(errors) == 2
    assert "bad.conll:3" in errors[0]
    test = write("test.conll", "w3 B-X\n")
    assert (
        "1 sentences of labeled are in test too" in sequst("check", "--labeled", good, "--test", test, "--encoder=none").stdout
    )
    clean = ["--encoder=none", "--drop-overlap", "--output", tmp_path / "clean"]
    done = sequst("check", "--labeled", good, "--test", test, *clean)
    assert done.returncode == 0
    assert "1 sentences of labeled left out: test has them too" in done.stdout
    assert "w3" not in (tmp_path / "clean" / "labeled.jsonl").read_text()


def test_sample(write: Write, tmp_path: Path, sequst: Cli) -> None:
    rows = "".join(f"w{i} B-X\nv O\n\nu{i} B-Y\n\n" for i in range(20))
    done = sequst("sample", "-", "--shots", 3, "--seed", 5, "--output", tmp_path / "s", "--sampler", "mentions", stdin=rows)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "s" / "summary.json").read_text())
    assert (summary["labeled"]["mentions"], summary["dev"]["mentions"], summary["unlabeled"]["mentions"]) == (6, 6, 28)
    assert {path.name for path in (tmp_path / "s").iterdir()} == {
        "labeled.conll",
        "dev.conll",
        "unlabeled.conll",
        "summary.json",
    }


def test_train_from_standard_input_and_resume_it(split: Split, tiny_encoder: str, tmp_path: Path, sequst: Cli) -> None:
    split.save(tmp_path / "data")
    rows = (tmp_path / "data" / "labeled.conll").read_text()
    begin = ("train", "--labeled", "-", "--encoder", tiny_encoder, *SHORT, "--output")
    done = sequst(*begin, tmp_path / "run", stdin=rows)
    assert done.returncode == 0, done.stderr
    assert "dev set: none" in done.stdout
    assert "read as" not in done.stderr
    assert "<stdin>: read as conll" in sequst(*begin, tmp_path / "told", "--verbose", stdin=rows).stderr
    (tmp_path / "run" / "summary.json").unlink()
    assert sequst("train", "--resume", tmp_path / "run").returncode == 0


def test_methods_and_settings(sequst: Cli, write: Write) -> None:
    listed = {row["name"]: row for row in json.loads(sequst("methods", "--json").stdout)}
    assert {"finetune", "sst", "sequst", "without-selection", "without-gcr"} <= set(listed)
    assert not listed["finetune"]["unlabeled"]
    assert listed["sequst"]["unlabeled"]
    template = sequst("settings").stdout
    assert "  # Peak learning rate of the encoder." in template
    from sequst.training.configure import load_settings
    from sequst.training.settings import Settings

    assert load_settings(write("all.yaml", template)) == Settings()


LABELED = "Anna B-PER\nsings O\n"
CASES: dict[str, tuple[str | bytes, list[str], int, str]] = {
    # what is in l.conll, further flags, the exit code, what the message says
    "no flags": ("", ["--no-such-flag"], 2, "No such option"),
    "empty": ("", [], 1, "l.conll is empty"),
    "no entity": ("a O\n", [], 1, "no entity at all"),
    "NUL": (b"a\0 O\n", [], 1, "l.conll:1: found a NUL byte"),
    "not UTF-8": (b"\xe9t\xe9 O\n", [], 1, "l.conll:1: found byte 0xe9"),
    "no tags": ("just words here\n", ["--labeled-format=text"], 1, "has no tags"),
    "words alone": ("Anna\nsings\n", [], 1, "expected at least 2, for a word and its tag"),
    "unknown method": (LABELED, ["--method=finetun"], 2, "unknown method 'finetun'; did you mean 'finetune'?"),
    "unknown setting": (LABELED, ["--set=techer.epochs=1"], 2, "did you mean 'teacher'?"),
    "unknown format": (LABELED, ["--labeled-format=conl"], 2, "did you mean 'conll'?"),
    "missing dev file": (LABELED, ["--dev=nowhere.conll"], 2, "nowhere.conll: no such file"),
    "missing encoder": (LABELED, ["--encoder=no/such"], 1, "cannot load the encoder 'no/such'"),
    "dev twice": (LABELED, ["--dev=l.conll", "--dev-fraction=0.5"], 2, "exclude each other"),
    "dev thrice": (LABELED, ["--dev-shots=2", "--dev-fraction=0.5"], 2, "--dev-fraction and --dev-shots exclude each other"),
    "one sentence, a fraction": (LABELED, ["--dev-fraction=0.5"], 1, "at least two labelled sentences"),
    "resume and more": (LABELED, ["--resume=run", "--seed=0"], 2, "leave out --labeled, --output, --seed"),
    "unknown device": (LABELED, ["--device=meta"], 2, "unknown device 'meta'"),
    "too long": (LABELED, ["--set=max_length=600"], 2, "max_length 600: the encoder minilm does not take so many"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_to_train(case: str, write: Write, tmp_path: Path, sequst: Cli) -> None:
    content, flags, code, message = CASES[case]
    write("l.conll", content)
    before = {path.name for path in tmp_path.iterdir()}
    done = sequst("train", "--labeled", "l.conll", "--output", "run", *flags, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before
    errors = done.stderr[done.stderr.find("error:") :].strip().splitlines()
    assert len(errors) <= 3


def test_a_file_of_one_broken_sentence_is_not_empty(write: Write, sequst: Cli) -> None:
    done = sequst("check", "--labeled", write("l.conll", "Anna B-PER\nsings\n"))
    assert done.returncode == 1
    assert "l.conll:2" in done.stdout + done.stderr
    assert "is empty" not in done.stdout + done.stderr


def test_a_type_that_was_drawn_for_others_is_told(write: Write, tmp_path: Path, sequst: Cli) -> None:
    both = "".join(f"{name} B-PER\nin O\nOslo B-LOC\n\n" for name in ("Anna", "Bea", "Carl", "Dora"))
    rest = "".join(f"{name} B-LOC\n\n" for name in ("Bonn", "Paris", "Rome"))
    done = sequst("sample", write("l.conll", both + rest), "--shots", 2, "--output", tmp_path / "s")
    assert done.returncode == 0, done.stderr
    assert "type LOC has too few: 2 labelled, 1 dev sentences of 2 drawn for it" in done.stderr


def test_one_standard_input(sequst: Cli) -> None:
    assert "only one of the files" in sequst("check", "--labeled", "-", "--dev", "-").stderr


def test_odd_types_are_printed_as_they_are(write: Write, tmp_path: Path, sequst: Cli) -> None:
    path = write("m.jsonl", '{"words": ["a"], "tags": ["B-[/b]"]}\n{"words": ["b"], "tags": ["B-[/b]"]}\n')
    done = sequst("sample", path, "--shots", 1, "--output", tmp_path / "s")
    assert done.returncode == 0, done.stderr
    assert "[/b]" in done.stdout


def test_predict_to_what_is_no_file(model: Path, write: Write, tmp_path: Path, sequst: Cli) -> None:
    path = write("in.txt", "We play .\n")
    assert "is a folder" in sequst("predict", model, path, "--output", tmp_path).stderr
    assert "there is no folder" in sequst("predict", model, path, "--output", tmp_path / "no" / "out").stderr
    assert sequst("predict", model, path, "--output", "/dev/null").returncode == 0
    assert not Path("/dev/null").is_file()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sequst", "predict", model, path],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "cannot write <stdout>: the disk is full" in done.stderr


def test_debug_shows_the_traceback(write: Write, tmp_path: Path, sequst: Cli) -> None:
    done = sequst("train", "--labeled", write("l.conll", ""), "--output", tmp_path / "run", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["predict", "nowhere", "in.txt"], 2, "in.txt: no such file"),
        (["predict", "nowhere", "l.conll"], 2, "no model in 'nowhere'"),
        (["predict", "nowhere", "l.conll", "--format", "xml"], 2, "--format xml"),
        (["predict", "nowhere", "l.conll", "--output", "l.conll"], 2, "is also an input"),
        (["next", "nowhere", "l.conll", "--output", "l.conll"], 2, "is also an input"),
        (["suspects", "l.conll", "--output", "./l.conll"], 2, "is also an input"),
        (["convert", "l.conll", "l.conll"], 2, "is also an input"),
        (["evaluate", "nowhere", "l.conll"], 2, "no model in 'nowhere'"),
        (["sample", "l.conll", "--shots", "0", "--output", "s"], 2, "--shots 0"),
        (["sample", "l.conll", "--shots", "1", "--output", "."], 2, "is not empty"),
        (["train", "--resume", "."], 2, "no run is there"),
        (["train", "--labeled", "l.conll"], 2, "missing --output"),
        (["demo", "--output", "."], 2, "is not empty"),
        (["demo", "--output", "d", "--seed", "-1"], 2, "seed=-1"),
        (["demo", "--output", "d", "--method", "sts"], 2, "unknown method 'sts'"),
    ],
)
def test_misuse(arguments: list[str], code: int, message: str, write: Write, tmp_path: Path, sequst: Cli) -> None:
    write("l.conll", LABELED)
    done = sequst(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["l.conll"]


def test_a_bilstm_from_the_outside(write: Write, split: Split, tmp_path: Path, sequst: Cli) -> None:
    split.save(tmp_path / "data")
    inputs = ["--labeled", tmp_path / "data" / "labeled.conll", "--encoder", "bilstm"]
    long = "\n".join(["word O"] * 70)
    done = sequst("check", "--labeled", write("long.conll", f"{long}\n\nOslo B-X\n"), "--encoder", "bilstm")
    assert "1 sentences are longer than 64 words" in done.stdout
    vectors = write("v.txt", "the 1 2\n")
    done = sequst("train", *inputs, "--head=crf", f"--set=bilstm.vectors={vectors}", "--output", tmp_path / "run", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "% of the words of the text have a vector" in done.stderr
    assert "warning: " in done.stderr  # it is a poor file
    text = write("in.txt", "We play in Oslo .\n")
    tagged = json.loads(sequst("predict", tmp_path / "run" / "model", text, "--uncertainty").stdout)
    assert len(tagged["tags"]) == len(tagged["information_gain"]) == 5
    scores = json.loads(sequst("evaluate", tmp_path / "run" / "model", tmp_path / "data" / "dev.conll", "--json").stdout)
    assert scores["sentences"] == len(split.dev)
    done = sequst("train", *inputs, "--set=bilstm.vectors=no.txt", "--output", tmp_path / "other")
    assert (done.returncode, (tmp_path / "other").exists()) == (2, False)
    assert "no.txt: no such file" in done.stderr


def test_the_help_of_every_verb_has_an_example_that_it_understands(sequst: Cli) -> None:
    import typer

    from sequst.cli.app import make_app

    root: Any = typer.main.get_command(make_app())
    names = [[name] for name in root.commands]
    names += [["experiment", name] for name in root.commands["experiment"].commands]
    assert len(names) >= 19
    for name in names:
        examples = [line.split() for line in sequst(*name, "--help").stdout.splitlines() if line.startswith("    sequst ")]
        assert examples
        for example in examples:
            assert example[1 : 1 + len(name)] == name
            flags = [word for word in example if word.startswith("--")]
            verb = example[1:3] if name == ["experiment"] else name  # that of the group is of a verb in it
            assert all(f"{flag} " in sequst(*verb, "--help").stdout for flag in flags)
