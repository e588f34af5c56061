from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.formats.columns import write_conll
from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError
from sequst.tagger.capitals import count_capitals
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.tagger import Tagger, labels_of

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from sequst.integrations.onnx.exporting import export, quantise
from sequst.integrations.onnx.tagger import OnnxTagger

Cli = Callable[..., Any]
MakeTagger = Callable[..., Tagger]
ODD = [
    Sentence((), id="none"),
    Sentence(("zq" * 30, "\u200b", "U.S.", "a-b_c")),
    Sentence(("Anna", "flew") * 30),  # several windows, some of which begin inside an entity
    Sentence(("New York", "é")),
]
SENTENCES = [*generate(pool=1000, test=1).pool, *ODD]
CAPITALS = count_capitals(((s.words, s.tags or ()) for s in SENTENCES[:30]), labels_of(SENTENCES[:1000]))
HEADS: dict[str, dict[str, Any]] = {
    "softmax": {},
    "valid": {"valid": True},
    "transitions": {"valid": True, "transitions": {"O B": -1.5, "B I": 2.0, "B same": -4.0, "I I": 1.0, "I other": -1.0}},
    "capitals": {"valid": True, "capitals": CAPITALS},
    "crf": {"head": "crf"},
    "crf with capitals": {"head": "crf", "capitals": CAPITALS},
}


def test_raw_tags(make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path, sequst: Cli) -> None:
    for head in ("capitals", "crf"):
        tagger = make_tagger(tiny_encoder, **HEADS[head])
        tagger.save(tmp_path / head)
        export(tagger, tmp_path / f"{head}-onnx")
    (tmp_path / "in.txt").write_text("".join(" ".join(sentence.words) + "\n" for sentence in SENTENCES[:200]))
    found = [
        sequst("predict", folder, "in.txt", "--format", "conll", *more, cwd=tmp_path).stdout
        for folder in ("capitals", "capitals-onnx")
        for more in ([], ["--raw-tags"])
    ]
    assert found[0] == found[2] != found[1] == found[3]
    for folder in ("crf", "crf-onnx"):
        refused = sequst("predict", folder, "in.txt", "--raw-tags", cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "it has no raw ones" in refused.stderr


def test_how_sure_it_must_be(make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path, sequst: Cli) -> None:
    tagger = make_tagger(tiny_encoder, **HEADS["transitions"])
    tagger.entity_calibration = EntityCalibration(threshold=0.45)
    tagger.save(tmp_path / "m")
    export(tagger, tmp_path / "m-onnx")
    tagged = generate(pool=60, test=1).pool
    write_conll(tmp_path / "gold.conll", tagged)
    counts = []
    for more in ([], ["--min-confidence", "0"], ["--min-confidence", "0.8"]):
        found = [sequst("predict", folder, "gold.conll", *more, cwd=tmp_path) for folder in ("m", "m-onnx")]
        lines = [[json.loads(line) for line in each.stdout.splitlines()] for each in found]
        told = [[(e["type"], e["start"], e["end"]) for line in each for e in line["entities"]] for each in lines]
        assert told[0] == told[1]
        assert all(("left_out" in line) == (more[1:] != ["0"]) for each in lines for line in each)
        counts.append((len(told[0]), sum(len(line.get("left_out", ())) for line in lines[0])))
        scored = [sequst("evaluate", folder, "gold.conll", "--json", *more, cwd=tmp_path).stdout for folder in ("m", "m-onnx")]
        scores = [json.loads(each) for each in scored]
        assert scores[0]["tp"] + scores[0]["fp"] == scores[1]["tp"] + scores[1]["fp"] == len(told[0])
    (some, left), (all_, none), (few, most) = counts
    assert few < some < all_
    assert (some + left, few + most, none) == (all_, all_, 0)
    for verb in ("predict", "evaluate"):
        refused = sequst(verb, "m", "gold.conll", "--min-confidence", "80", cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "'--min-confidence': 80.0 is not in the range 0.0<=x<=1.0" in refused.stderr


@pytest.mark.parametrize(
    ("encoder", "head"),
    [
        *itertools.product(["bert"], HEADS),
        *itertools.product(("mpnet", "distilbert", "roberta", "modernbert", "deberta"), ["softmax"]),
    ],
)
def test_a_thousand_sentences_have_the_same_tags(
    encoder: str, head: str, encoders: dict[str, str], make_tagger: MakeTagger, tmp_path: Path
) -> None:
    tagger = make_tagger(encoders[encoder], **HEADS[head])
    assert bool(tagger.capitals) == ("capitals" in HEADS[head])
    tagger.entity_calibration = EntityCalibration(
        1.7, -0.3, ((tagger.types[0], 0.5),), threshold=0.4 if head == "transitions" else 0.0
    )
    expected: Any = tagger.predict(SENTENCES)
    export(tagger, tmp_path / "onnx")
    found: Any = OnnxTagger.load(tmp_path / "onnx").predict(SENTENCES)
    assert [p.tags for p in found] == [p.tags for p in expected]
    assert [type(p) for p in found] == [type(p) for p in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.sentence is theirs.sentence
        assert ours.confidences == pytest.approx(theirs.confidences, abs=1e-4)
        assert ours.entity_calibration == theirs.entity_calibration
    tags = {tag for prediction in found for tag in prediction.tags}
    assert len(tags) >= len(tagger.labels) - 2  # nearly all occur: few are right by never being asked for


def test_a_graph_that_gives_other_scores_is_not_kept(
    make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sequst.integrations.onnx import exporting

    made = exporting._write_graph

    def other(tagger: Tagger, path: Path) -> None:
        made(make_tagger(tiny_encoder, head="crf"), path)
        tagger.head.linear.bias.data += 0.5

    monkeypatch.setattr(exporting, "_write_graph", other)
    with pytest.raises(SequstError, match=r"its scores are up to 0\.5 apart"):
        export(make_tagger(tiny_encoder), tmp_path / "onnx")
    assert not list(tmp_path.iterdir())


def test_eight_bits_keep_most_tags(make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path) -> None:
    tagger = make_tagger(tiny_encoder, head="crf")
    export(tagger, tmp_path / "fp32")
    quantise(tmp_path / "fp32", tmp_path / "int8")
    assert [OnnxTagger.load(tmp_path / name).precision for name in ("fp32", "int8")] == ["fp32", "int8"]
    ways: Any = [tagger.predict(SENTENCES), OnnxTagger.load(tmp_path / "int8").predict(SENTENCES)]
    exact, rounded = ([tag for prediction in way for tag in prediction.tags] for way in ways)
    changed = sum(one != other for one, other in zip(exact, rounded, strict=True)) / len(exact)
    assert 0 < changed < 0.1


def test_an_export_is_written_over_an_export_and_over_nothing_else(
    make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("x")
    (tmp_path / "afile").write_text("y")
    tagger = make_tagger(tiny_encoder)
    tagger.save(tmp_path / "model")
    export(tagger, tmp_path / "onnx")
    export(tagger, tmp_path / "onnx")
    quantise(tmp_path / "onnx", tmp_path / "onnx")
    assert OnnxTagger.load(tmp_path / "onnx").precision == "int8"
    for name, told in (
        ("precious", r"has no sequst\.json, so it is not replaced; name another folder"),
        ("afile", "is a file"),
        ("model", r"has no model\.onnx, so it is not replaced"),
    ):
        with pytest.raises(UsageError, match=told):
            export(tagger, tmp_path / name)
        with pytest.raises(UsageError, match=told):
            quantise(tmp_path / "onnx", tmp_path / name)
    assert [path.read_text() for path in (tmp_path / "precious" / "thesis.txt", tmp_path / "afile")] == ["x", "y"]


def test_it_is_predicted_without_torch(make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path, sequst: Cli) -> None:
    tagger = make_tagger(tiny_encoder, head="crf")
    tagger.save(tmp_path / "model")
    export(tagger, tmp_path / "onnx")
    (tmp_path / "in.txt").write_text("Anna Lindqvist is flying to Lisbon tomorrow.\n\nWe play  The Planets in Oslo .\n")
    for format in ("jsonl", "conll"):
        arguments = ["predict", str(tmp_path / "onnx"), str(tmp_path / "in.txt"), "--format", format]
        code = (
            f"import sys; sys.argv = ['sequst', *{arguments!r}]\n"
            "from sequst.cli import main\n"
            "try: main()\n"
            "except SystemExit as end: assert not end.code\n"
            "sys.exit(bool({'torch', 'transformers', 'accelerate'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
        assert done.returncode == 0, done.stderr
        expected = sequst("predict", "model", "in.txt", "--format", format, cwd=tmp_path).stdout
        if format == "conll":
            assert done.stdout == expected
            continue
        for ours, theirs in zip(map(json.loads, done.stdout.splitlines()), map(json.loads, expected.splitlines()), strict=True):
            for entity, other in zip(ours["entities"], theirs["entities"], strict=True):
                assert entity.pop("confidence") == pytest.approx(other.pop("confidence"), abs=1e-4)
            assert ours == theirs
            assert ours["entities"]


def test_a_bilstm_is_refused(tmp_path: Path) -> None:
    tagger = Tagger.from_encoder("bilstm", ["O", "B-X", "I-X"], text=[["a", "b"]])
    with pytest.raises(UsageError, match="on a bilstm cannot be exported"):
        export(tagger, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_the_command_measures_what_it_wrote(model: Path, tmp_path: Path, sequst: Cli) -> None:
    write_conll(tmp_path / "test.conll", generate(pool=60, test=1).pool)
    arguments = ["export", model, "--to", "onnx", "--int8", "--output", tmp_path / "onnx", "--test", tmp_path / "test.conll"]
    done = sequst(*arguments)
    assert done.returncode == 0, done.stderr
    rows = {line[:10].strip(): line[10:].split() for line in done.stdout.splitlines()[1:4]}
    assert list(rows) == ["torch", "onnx, fp32", "onnx, int8"]
    assert rows["onnx, fp32"][1:] == ["0.00", "%", rows["torch"][1]]  # the same tags, and so the same F1
    f1 = {
        folder: json.loads(sequst("evaluate", folder, tmp_path / "test.conll", "--json").stdout)["f1"]
        for folder in (model, tmp_path / "onnx")
    }
    assert float(rows["torch"][-1]) == pytest.approx(f1[model], abs=0.005)
    assert float(rows["onnx, int8"][-1]) == pytest.approx(f1[tmp_path / "onnx"], abs=0.005)
    speeds = [float(rows[name][0].replace(",", "")) for name in rows]
    gain = re.search(r"onnx, int8: ([\d.]+) times the speed of onnx, fp32", done.stdout)
    assert gain is not None
    assert float(gain[1]) == pytest.approx(speeds[2] / speeds[1], abs=0.01)
    assert "is not empty" in sequst(*arguments).stderr


def test_what_an_export_cannot_do_is_said(
    model: Path, make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path, sequst: Cli
) -> None:
    export(make_tagger(tiny_encoder), tmp_path / "onnx")
    (tmp_path / "in.txt").write_text("We play\n")
    for flags, message in (
        (["--uncertainty"], "uncertainty: {0} is an export, which has no dropout"),
        (["--last-layers", 1], "--last-layers needs --uncertainty"),
        (["--device", "cuda"], "device cuda: {0} is an export"),
        (["--precision", "bf16"], "precision bf16: {0} is an export"),
    ):
        done = sequst("predict", tmp_path / "onnx", tmp_path / "in.txt", *flags)
        assert (done.returncode, done.stdout) == (2, "")
        assert message.format(tmp_path / "onnx") in done.stderr
    with pytest.raises(UsageError, match="is an export for onnxruntime; name the model that it was made from"):
        Tagger.load(tmp_path / "onnx")
    assert "--to tflite: known: onnx" in sequst("export", model, "--to", "tflite", "--output", tmp_path / "x").stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.onnx", "no graph", "cannot load .*model.onnx"),
        ("tokenizer.json", "{}", "cannot load the model in"),
        ("sequst.json", '{"labels": ["O"]}', "damaged or not written by sequst .KeyError: 'head'"),
        ("sequst.json", "[]", "damaged or not written by sequst"),
        ("transitions.safetensors", "", "cannot load the model in"),
    ],
)
def test_a_spoilt_folder(
    name: str, content: str, message: str, make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path
) -> None:
    export(make_tagger(tiny_encoder, head="crf"), tmp_path / "onnx")
    (tmp_path / "onnx" / name).write_text(content)
    with pytest.raises(SequstError, match=message):
        OnnxTagger.load(tmp_path / "onnx")


@pytest.mark.parametrize("head", ["softmax", "valid", "crf"])
def test_transitions_are_there_where_they_belong_and_nowhere_else(
    head: str, make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path
) -> None:
    export(make_tagger(tiny_encoder, **HEADS[head]), tmp_path / "onnx")
    export(make_tagger(tiny_encoder, **HEADS["valid"]), tmp_path / "other")
    file = tmp_path / "onnx" / "transitions.safetensors"
    if head == "softmax":
        shutil.copy(tmp_path / "other" / file.name, file)
    else:
        file.unlink()
    message = f"its {file.name} " + ("does not belong there" if head == "softmax" else "is missing")
    with pytest.raises(SequstError, match=message):
        OnnxTagger.load(tmp_path / "onnx")
    with pytest.raises(SequstError, match=message):
        quantise(tmp_path / "onnx", tmp_path / "int8")


def test_no_export_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it has no model\.onnx; make one with `sequst export`"):
        OnnxTagger.load(tmp_path)
