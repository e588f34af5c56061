"""The benchmarks compare what is the same, and can be run: each at a tiny size."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.tagger.precision import has_bf16
from sequst.tagger.tagger import Tagger

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def beside_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    monkeypatch.delenv("SEQUST_DATA", raising=False)


@pytest.mark.parametrize("script", sorted((REPOSITORY / "benchmarks").glob("*.py")), ids=lambda script: script.stem)
def test_what_they_import_is_there(script: Path) -> None:
    """Also of those that are not run here, for want of a library."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sequst"):
            module = importlib.import_module(node.module or "")
            for name in node.names:
                assert hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}"), name.name


def told(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *options: str) -> Any:
    """What a benchmark writes that is run with these options."""
    monkeypatch.setattr(sys, "argv", [name, f"--json={tmp_path / 'found.json'}", *options])
    importlib.import_module(name).main()
    return json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))


def test_mc_dropout(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (f"--encoder={tiny_encoder}", "--sentences=8", "--passes=2", "--repeats=1")
    found = told("mc_dropout", monkeypatch, tmp_path, *options)
    speed = {name: rate["median"] for name, rate in found["words_a_second"].items()}
    assert found["ratio_naive"] == pytest.approx(speed["ours"] / speed["usual loop"])
    assert found["ratio_sorted"] == pytest.approx(speed["ours"] / speed["sorted and streamed"])
    assert 0 < found["share_of_limit"] < 1
    assert all(each["standard_errors"] < (4 if "bf16" in name else 2) for name, each in found["agreement"].items())
    assert ("ours, bf16" in speed) == has_bf16(torch.device("cpu")) == (found["limit_tflops_bf16"] is not None)


def test_the_passes_are_those_of_the_beliefs(tiny_encoder: str) -> None:
    """With labels or without: the same numbers."""
    script, common = importlib.import_module("mc_dropout"), importlib.import_module("common")
    tagger = Tagger.from_encoder(tiny_encoder, common.LABELS, seed=1)
    sentences = generate().test[:40]
    passes, beliefs = (contender(tagger, sentences, 3) for contender in (script.ours, script.labelled))
    assert np.array_equal(passes, beliefs)
    assert len(passes) == sum(map(len, sentences))


def test_mc_dropout_notices_another_computation(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, common = importlib.import_module("mc_dropout"), importlib.import_module("common")
    tagger = Tagger.from_encoder(tiny_encoder, common.LABELS, seed=1)
    monkeypatch.setattr(script, "ours", lambda tagger, sentences, passes: script.usual_loop(tagger, sentences, passes) + 0.05)
    with pytest.raises(AssertionError, match="ours is not the same computation"):
        script.check(tagger, generate().test[:4])


def test_training_step(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (f"--encoder={tiny_encoder}", "--sentences=64", "--steps=10", "--repeats=1")
    found = told("training_step", monkeypatch, tmp_path, *options)
    names = {"Trainer", "Trainer, bf16 and like lengths", "ours", "ours, weighed", "ours, whole table"}
    assert set(found["loss_after"]) - {"ours, fp32"} == names
    assert found["ratio_weighed"] > 0
    assert all(loss < found["loss_before"] for loss in found["loss_after"].values())
    assert found["ratio_trainer"] > 0


def test_whole_run(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = importlib.import_module("whole_run")
    short = {"epochs": 0.1, "min_steps": 30}
    settings = {"method": "sequst", "max_rounds": 1, "teacher": short, "student": short, "retune": short}
    monkeypatch.setattr(script, "SETTINGS", {**script.SETTINGS, **settings, "uncertainty": {"passes": 2}})
    monkeypatch.setattr(script, "POOL", 30)
    found = told("whole_run", monkeypatch, tmp_path, f"--encoder={tiny_encoder}", "--paths=ours,plain")
    for name in ("ours", "plain"):
        [line] = found[name]["runs"]
        assert set(line["phases"]) == {"teacher", "beliefs", "student", "retune"}
        assert sum(line["phases"].values()) + line["rest"] == pytest.approx(line["seconds"])


def test_tagging(tiny_encoder: str) -> None:
    script, common = importlib.import_module("tagging"), importlib.import_module("common")
    tagger = Tagger.from_encoder(tiny_encoder, common.LABELS, seed=1)
    tagger.head.linear.weight.data.mul_(30)
    found = script.measure(tagger, generate().test[:40], "cpu", 1, 1)
    assert found["agreement"].pop("ours") == 1.0
    assert all(share >= 0.9 for share in found["agreement"].values())
    assert set(found["ratio"]) == set(found["words_a_second"]) - {"ours"}
    assert ("ours, bf16" in found["ratio"]) == has_bf16(torch.device("cpu"))
    assert script._by_place(Sentence(("Oslo-", "is")), [{"start": s, "entity": str(s)} for s in (0, 4, 6)]) == ["0", "6"]


@pytest.mark.timeout(600)
def test_label_next(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--shots=2", "--counts=3,7", "--seeds=1,2", "--pool=30", "--test=20", "--passes=2", "--steps=3", "--epochs=0.1")
    ways = "random;information gain, diverse;information gain"
    found = told("label_next", monkeypatch, tmp_path, f"--encoder={tiny_encoder}", *options, f"--ways={ways}")["data"]
    assert set(found) == {"generated"}
    for run in found["generated"]["runs"]:
        for way in run["ways"].values():
            assert way["labeled"] == run["labeled"] + 7
            assert list(way["f1"]) == ["3", "7"]
    means = found["generated"]["mean"]
    gain = means["information gain"]["7"]
    assert gain["over_random"]["difference"] == pytest.approx(gain["f1"] - means["random"]["7"]["f1"])


def test_label_next_is_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of several seeds, as one."""
    parts = []
    for seed, f1 in ((12, 60.0), (21, 64.0)):
        ways = {"random": {"f1": {"50": f1}}, "information gain": {"f1": {"50": f1 + 2 + seed / 100}}}
        run = {"seed": seed, "start_f1": 50.0, "ways": ways}
        parts.append(tmp_path / f"{seed}.json")
        parts[-1].write_text(json.dumps({"data": {"x": {"mean": {}, "runs": [run]}}, "steps": 9}), encoding="utf-8")
    found = told("label_next", monkeypatch, tmp_path, "--join", *map(str, parts))
    assert found["steps"] == 9
    means = found["data"]["x"]["mean"]
    assert means["random"]["50"]["f1"] == 62.0
    assert means["information gain"]["50"]["over_random"]["difference"] == pytest.approx(2.165)
    parts[0].write_text(json.dumps({"data": {}, "steps": 8}), encoding="utf-8")
    with pytest.raises(SystemExit, match="differ in more than"):
        told("label_next", monkeypatch, tmp_path, "--join", *map(str, parts))


def test_labels_are_made_wrong_in_four_ways() -> None:
    script = importlib.import_module("suspects")
    before = generate().pool[:200]
    after, wrong = script.corrupt(before, 0.1, 3)
    entities = sum(tag.startswith("B-") for sentence in before for tag in sentence.tags or ())
    assert len(wrong) == round(0.1 * entities)
    assert len({each.sentence for each in wrong}) == len(wrong)
    changed = {place for place, pair in enumerate(zip(before, after, strict=True)) if pair[0].tags != pair[1].tags}
    assert changed == {each.sentence for each in wrong}
    more = {"type": 0, "edge": 0, "dropped": -1, "spurious": 1}
    for place, way, words in wrong:
        one, other = before[place].tags, after[place].tags
        assert words == {i for i, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]}
        assert sum(tag[0] == "B" for tag in other) - sum(tag[0] == "B" for tag in one) == more[way]
        assert [tag[0] for tag in one] == [tag[0] for tag in other] or way != "type"
        assert {tag[2:] for tag in one} == {tag[2:] for tag in other} or way != "edge"
    assert {each.way for each in wrong} == set(script.WAYS)


def test_figures_of_rankings_by_hand() -> None:
    script = importlib.import_module("suspects")
    wrong = [script.Wrong(0, "type", frozenset({1, 2})), script.Wrong(4, "edge", frozenset({3}))]
    ranking = [script.Entry(0, frozenset({2})), script.Entry(0, frozenset({1})), script.Entry(4, frozenset({3}))]
    found = script.figures(ranking, wrong, 2)
    assert (found["precision"], found["recall"]) == (100.0, 50.0)
    assert found["recall_by_way"] == {"type": 100.0, "edge": 0.0}
    entries = script.together([(0, 5), (1, 2), (0, 4), (0, 7)])
    assert entries == [script.Entry(0, frozenset({4, 5})), script.Entry(1, frozenset({2})), script.Entry(0, frozenset({7}))]


def test_suspects(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = ("--sentences=40", "--share=0.1", "--folds=2", "--steps=3", "--epochs=0.1", "--seeds=1,2")
    found = told("suspects", monkeypatch, tmp_path, f"--encoder={tiny_encoder}", *size)
    assert found["data"] == "generated"
    assert [run["seed"] for run in found["runs"]] == [1, 2]
    precision = [run["rankings"]["ours"]["precision"] for run in found["runs"]]
    spread = {"mean": pytest.approx(np.mean(precision)), "deviation": pytest.approx(np.std(precision, ddof=1))}
    assert found["mean"]["ours"]["precision"] == spread


def test_int8(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    options = ("--shots=1", "--sentences=20", "--steps=3", "--epochs=0.1", "--seeds=1,2", "--test=30")
    found = told("int8", monkeypatch, tmp_path, f"--encoder={tiny_encoder}", *options)
    assert (found["data"], found["test_sentences"]) == ("generated", 30)
    for name, runs in found["runs"].items():
        assert [run["seed"] for run in runs] == [1, 2]
        for run in runs:
            ways = run["ways"]
            assert ways["torch"]["changed"] == ways["onnx, fp32"]["changed"] == 0
            assert ways["onnx, fp32"]["f1"] == ways["torch"]["f1"]
            assert ways["onnx, int8"]["f1_less"] == pytest.approx(ways["torch"]["f1"] - ways["onnx, int8"]["f1"])
            assert run["megabytes"]["int8"] < run["megabytes"]["fp32"]
        changed = [run["ways"]["onnx, int8"]["changed"] for run in runs]
        spread = found["mean"][name]["onnx, int8"]["changed"]
        assert spread == {"mean": pytest.approx(np.mean(changed)), "deviation": pytest.approx(np.std(changed, ddof=1))}


@pytest.mark.timeout(600)
def test_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = importlib.import_module("memory")
    script.write_sentences(tmp_path / "all.jsonl", 20)
    seconds, samples = script.run_verb("predict", script.random_tagger(tmp_path), tmp_path / "all.jsonl", 2)
    assert 0 < samples[-1][0] < seconds
    assert max(memory for _, memory in samples) > 50
    runs = iter([(2.0, [(1.0, 100.0)]), (4.0, [(1.0, 130.0)]), (12.0, [(1.2 * tenth, 100.0 + tenth) for tenth in range(11)])])
    monkeypatch.setattr(script, "run_verb", lambda *_: next(runs))
    found = script.measure(tmp_path, 200, 2, "predict")
    assert found["sentences_a_second"] == 20
    assert found["growth"] == 5
    assert found["over_the_model_megabytes"] == 10
    assert found["over_the_model_of_a_tenth_megabytes"] == 30
    assert found["at_every_tenth_megabytes"] == list(range(1, 10))


@pytest.mark.timeout(600)
def test_start_up(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = importlib.import_module("start_up")
    Tagger.from_encoder(tiny_encoder, script.LABELS, seed=1).save(tmp_path / "model")
    (tmp_path / "one.txt").write_text(" ".join(script.WORDS) + "\n", encoding="utf-8")
    commands = script.commands(tmp_path / "model", tmp_path / "one.txt")
    assert "Usage" in script.run(commands["help"])[1]
    seconds, out = script.run(commands["predict"])
    assert seconds > 0
    took = iter([9.0] * 6 + [1.0, 2.0, 3.0, 4.0, 5.0, 7.0] + [1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
    monkeypatch.setattr(script, "run", lambda _: (next(took), out))
    found = script.measure(tmp_path, 2, tiny_encoder)
    assert found["seconds"]["predict"] == {"median": 8.0, "least": 7.0, "most": 9.0}
    assert found["predict_over_import"] == 2.5


def test_entities_of_the_pipeline(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = importlib.import_module("pipeline_entities")
    tagger = Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=1)
    tagger.head.linear.weight.data *= 50
    tagger.save(tmp_path / "model")
    texts = [" ".join(sentence.words) for sentence in generate().test[:20]]
    found = script.measure(str(tmp_path / "model"), [*texts, "We leave at 12:30 .", "The U.S. tour ."])
    assert sum(kind["sentences"] for kind in found["first"].values()) == 22
    assert found["first"]["plain"]["same"] == found["first"]["plain"]["sentences"] > 10
    assert found["simple"]["plain"]["same"] < found["first"]["plain"]["same"]  # sub-words of one word are entities there
