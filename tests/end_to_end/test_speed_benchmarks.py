"""The benchmarks compare what is the same, and can be run: each at a tiny size."""

from __future__ import annotations

import functools
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sequst.api import train
from sequst.corpus.generated import generate
from sequst.corpus.sampling import Split
from sequst.corpus.sentence import Sentence
from sequst.evaluation.evaluate import evaluate
from sequst.evaluation.spans import score_spans
from sequst.tagger.batches import collate
from sequst.tagger.precision import has_bf16
from sequst.tagger.tagger import Tagger, labels_of
from sequst.uncertainty.labelling import best_valid

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def beside_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    monkeypatch.delenv("SEQUST_DATA", raising=False)


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


def test_last_layers(tiny_encoder: str) -> None:
    script, common = importlib.import_module("last_layers"), importlib.import_module("common")
    one = np.array([1.0, 2.0, 2.0, 7.0])
    assert script.ranks(one).tolist() == [0.0, 1.5, 1.5, 3.0]
    assert script.rank_correlation(one, -one) == pytest.approx(-1.0)
    assert script.auroc(np.array([0.1, 0.9, 0.4, 0.8]), np.array([False, True, False, False])) == 1.0
    assert script.auroc(np.ones(4), np.array([False, True, False, True])) == 0.5
    tagger = Tagger.from_encoder(tiny_encoder, common.LABELS, seed=1)
    found = script.measure(tagger, generate().test[:8], 4)
    assert list(found["last_layers"]) == ["all", "all, another seed", "1"]


def test_training_step(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (f"--encoder={tiny_encoder}", "--sentences=64", "--steps=10", "--repeats=1")
    found = told("training_step", monkeypatch, tmp_path, *options)
    names = {"Trainer", "Trainer, bf16 and like lengths", "ours", "ours, weighed", "ours, whole table"}
    assert set(found["loss_after"]) - {"ours, fp32"} == names
    assert found["ratio_weighed"] > 0
    assert all(loss < found["loss_before"] for loss in found["loss_after"].values())
    assert found["ratio_trainer"] > 0


def test_sharing(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (f"--encoder={tiny_encoder}", "--processes=1,2", "--seconds=0.3", "--rows=4")
    found = told("sharing", monkeypatch, tmp_path, *options)
    assert set(found["steps_a_second"]["by turns"]) == {"1", "2"}
    assert all(rate > 0 for rate in found["steps_a_second"]["by turns"].values())


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
    found = told("label_next", monkeypatch, tmp_path, "--join", *map(str, parts), f"--figure={tmp_path / 'figure.png'}")
    assert found["steps"] == 9
    means = found["data"]["x"]["mean"]
    assert means["random"]["50"]["f1"] == 62.0
    assert means["information gain"]["50"]["over_random"]["difference"] == pytest.approx(2.165)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    parts[0].write_text(json.dumps({"data": {}, "steps": 8}), encoding="utf-8")
    with pytest.raises(SystemExit, match="differ in more than"):
        told("label_next", monkeypatch, tmp_path, "--join", *map(str, parts))


def test_calibration(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (f"--encoder={tiny_encoder}", "--shots=5", "--test=60", "--steps=60", "--seeds=1,2")
    found = told("calibration", monkeypatch, tmp_path, *options)["data"]["generated"]
    assert len(found["runs"]) == 2
    for way, mean in found["mean"].items():
        assert mean["ece"] == pytest.approx(sum(run["ways"][way]["ece"] for run in found["runs"]) / 2)
        assert 0 <= mean["auroc"] <= 1
    assert found["mean"]["as they are"] != found["mean"]["one function for all"]


def test_decoding(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = importlib.import_module("decoding")
    quick = "teacher.learning_rate=1e-3 teacher.head_learning_rate=3e-3 teacher.epochs=0.1"
    options = (f"--encoder={tiny_encoder}", "--seeds=1,2", "--pool=10", "--test=60", "--steps=120", f"--more={quick}")
    found = told("decoding", monkeypatch, tmp_path, *options)
    strengths = {f"{each:g}" for each in script.STRENGTHS}
    assert all(set(run["f1"]) == strengths for run in found["runs"])
    assert all(len({ways["all"] for ways in run["f1"].values()}) > 2 for run in found["runs"])
    assert any(ways["abstaining"] != ways["all"] for run in found["runs"] for ways in run["f1"].values())
    assert found["gain"]["0"]["over none"] == {"mean": 0.0, "error": 0.0}
    apart = [run["f1"]["1"]["abstaining"] - run["f1"]["1"]["all"] for run in found["runs"]]
    assert found["gain"]["1"]["of abstaining"]["mean"] == pytest.approx(sum(apart) / 2)


def test_what_is_decoded_there_is_what_a_tagger_says(tiny_encoder: str, tmp_path: Path, split: Split) -> None:
    script = importlib.import_module("decoding")
    phase = {"min_steps": 120, "epochs": 0.1, "learning_rate": 1e-3, "head_learning_rate": 3e-3}
    run = train(split.labeled, tmp_path / "run", dev=split.dev, encoder=tiny_encoder, teacher=phase, calibrate=False)
    dev, held = (script.seen(run.tagger, some) for some in (split.dev, split.unlabeled[:200]))
    found = script.judged(run.tagger.labels, split.labeled, dev, held, 0.23)
    assert found["1"]["all"] == pytest.approx(evaluate(run.tagger, split.unlabeled[:200]).total.f1)


def test_retuning(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = importlib.import_module("retuning")
    short = {"epochs": 0.1, "min_steps": 30}
    monkeypatch.setattr(script, "train", functools.partial(script.train, teacher={**short, "min_steps": 120}, retune=short))
    monkeypatch.setattr(script, "LONG", {"min_steps": 60})
    options = (f"--encoder={tiny_encoder}", "--seeds=1,2", "--pool=60", "--test=60", "--steps=60", "--passes=2")
    found = told("retuning", monkeypatch, tmp_path, *options)
    ways = {"student", "none", "labelled", "text", "trusted", "long", "long, text"}
    assert all(set(run["f1"]) == ways for run in found["runs"])
    assert all(len(set(run["f1"].values())) > 3 for run in found["runs"])
    assert set(found["gain"]) == ways - {"none"}
    pairs = [run["f1"]["long"] - run["f1"]["none"] for run in found["runs"]]
    assert found["gain"]["long"]["mean"] == pytest.approx(sum(pairs) / 2)
    (tmp_path / "one.json").write_text(json.dumps(found))
    joined = told("retuning", monkeypatch, tmp_path, f"--join={tmp_path / 'one.json'},{tmp_path / 'one.json'}")
    assert len(joined["runs"]) == 4
    assert joined["gain"]["text"]["mean"] == pytest.approx(found["gain"]["text"]["mean"])


def test_effects_are_found_again() -> None:
    """Of changes that are balanced, each is the difference of means."""
    script = importlib.import_module("effects")
    rng = np.random.default_rng(1)
    lines = [
        {"dataset": dataset, "seed": seed, "recipe": f"base {'a=1' if a else ''} {'b=1 c=1' if b else ''}", "f1": f1}
        for dataset in ("x", "y")
        for seed in (1, 2)
        for a in (0, 1)
        for b in (0, 1)
        for f1 in [70.0 + 5 * (dataset == "x") + 2.0 * a - 1.0 * b + 0.1 * rng.standard_normal()]
    ]
    first, second = script.effects(lines)
    assert (first["change"], second["change"]) == ("a=1", "b=1 c=1")
    on = [np.mean([line["f1"] for line in lines if ("a=1" in line["recipe"]) == way]) for way in (True, False)]
    assert first["effect"] == pytest.approx(on[0] - on[1])
    assert first["effect"] == pytest.approx(2.0, abs=0.2)
    assert second["effect"] == pytest.approx(-1.0, abs=0.2)
    assert first["p"] < 0.001
    assert first["interval"] == pytest.approx(2.2281 * first["error"], rel=1e-4)  # Student's t of 16 runs less 6 unknowns
    figure = script.figure_of({"one": (16, [first, second]), "other": (16, [second])})
    assert [row[:2] for row in figure.rows] == [("one", "a=1"), ("one", "b=1 c=1"), ("other", "b=1 c=1")]
    assert figure.png().startswith(b"\x89PNG")
    inverted = [{**line, "ece": 100 - line["f1"]} for line in lines]
    assert [row["effect"] for row in script.effects(inverted, "ece")] == pytest.approx([-second["effect"], -first["effect"]])
    with pytest.raises(SystemExit, match="do not tell"):
        script.effects(lines[:2])


SHORT = ("--pool=30", "--test=40", "--steps=3", "--passes=2", "--teacher=3", "--retune=3")


def test_merging(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (f"--encoder={tiny_encoder}", *SHORT, "--rounds=2", "--teachers=2", "--seeds=1,2")
    found = told("merging", monkeypatch, tmp_path, *options)
    for run in found["runs"]:
        assert set(run["ways"]) == {
            "last", "last 2", "last 2, together", "towards 0.5", "towards 0.75", "towards 1.25", "first", "first, merged",
            "first, together",
        }  # fmt: skip
    each = [run["ways"]["last 2"]["f1"] - run["ways"]["last"]["f1"] for run in found["runs"]]
    assert found["gain"]["f1"]["last 2"]["mean"] == pytest.approx(np.mean(each))
    joined = tmp_path / "one.json"
    joined.write_text(json.dumps(found))
    twice = told("merging", monkeypatch, tmp_path, f"--join={joined},{joined}")
    assert len(twice["runs"]) == 4
    assert twice["gain"]["f1"]["last 2"]["mean"] == pytest.approx(np.mean(each))


def test_heads_on_one_encoder_are_merged_to_the_mean_of_their_scores(tiny_encoder: str) -> None:
    merge = importlib.import_module("merging").merge
    taggers = []
    for seed in (1, 2, 3):  # each head sees states that are standardised in its own way
        taggers.append(Tagger.from_encoder(tiny_encoder, labels_of(generate().pool), seed=seed))
        width = taggers[-1].head.linear.in_features
        taggers[-1].head.standardise(torch.randn(width, generator=torch.Generator().manual_seed(seed)), 0.5 * seed)
        taggers[-1].encoder.load_state_dict(taggers[0].encoder.state_dict())
    states = torch.randn(5, width, generator=torch.Generator().manual_seed(7))
    one, two, merged = taggers
    with torch.inference_mode():
        expected = 0.25 * one.head.scores(states) + 0.75 * two.head.scores(states)
    merge(merged, [one.state_dict(), two.state_dict()], [1.0, 3.0])
    with torch.inference_mode():
        torch.testing.assert_close(merged.head.scores(states), expected, atol=1e-4, rtol=1e-4)
    two.encoder.load_state_dict({name: value + 1 for name, value in one.encoder.state_dict().items()})
    merge(merged, [one.state_dict(), two.state_dict()])
    for name, weight in merged.encoder.named_parameters():
        torch.testing.assert_close(weight, dict(one.encoder.named_parameters())[name] + 0.5)


def test_what_several_say_together(tiny_encoder: str) -> None:
    """Of one tagger it is what the tagger says, of two the best valid path of their mean, sentence by sentence."""
    script = importlib.import_module("merging")
    sentences, states, means = generate().test[:30], [], [0.0] * 30
    for seed in (1, 2):
        tagger = Tagger.from_encoder(tiny_encoder, labels_of(generate().pool), seed=seed, valid=True)
        tagger.head.linear.weight.data *= 50
        states.append({name: value.clone() for name, value in tagger.state_dict().items()})
        windows = tagger.splitter.windows([sentence.words for sentence in sentences])
        assert len(windows) == 30
        with torch.inference_mode():
            for row in range(30):
                means[row] = means[row] + tagger(collate(windows, [row], tagger.pad_id))[0].exp().numpy() / 2
    paths = [best_valid(mean, np.array([0, len(mean)]), tagger.labels) for mean in means]
    expected = score_spans([s.tags or () for s in sentences], [[tagger.labels[i] for i in path] for path in paths]).total.f1
    judge = script.Judge(tagger, sentences, sentences)
    alone = [judge.together([state])["f1"] for state in states]
    assert alone == [judge.merged([state])["f1"] for state in states]
    assert judge.together(states)["f1"] == pytest.approx(expected)
    assert expected not in alone


def test_what_a_run_never_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    common = importlib.import_module("common")
    for held in (40, 10_000):
        found = common.few_shot("conll03", 12, 1000, held)
        assert found.pool
        assert 40 <= len(found.held) <= held
        parts = [sentence for part in found for sentence in part]
        assert len({id(sentence) for sentence in parts}) == len(parts)


def test_students(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = "selection.selector=sampled"
    ways = f"one: {drawn}; same: {drawn} student.min_steps=3; other: selection.selector=all"
    found = told("students", monkeypatch, tmp_path, f"--encoder={tiny_encoder}", *SHORT, f"--ways={ways}")
    [run] = found["runs"]
    assert run["ways"]["one"].pop("teacher") is not None  # which the others have of it
    assert run["ways"]["one"] == run["ways"]["same"]
    assert run["ways"]["other"]["selected"] == 100 > run["ways"]["one"]["selected"]
    assert found["gain"]["student"]["same"]["mean"] == 0
    assert found["settings"]["ways"] == ways
    with pytest.raises(SystemExit, match="share their first teacher, and teacher would change it"):
        told("students", monkeypatch, tmp_path, f"--encoder={tiny_encoder}", *SHORT, "--ways=a: ; b: teacher.swap=0.5")


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
    assert script.of_sentences([4, 1, 0], wrong, 2) == {"precision": 50.0, "recall": 50.0}
    entries = script.together([(0, 5), (1, 2), (0, 4), (0, 7)])
    assert entries == [script.Entry(0, frozenset({4, 5})), script.Entry(1, frozenset({2})), script.Entry(0, frozenset({7}))]


def test_suspects(tmp_path: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = ("--sentences=40", "--share=0.1", "--folds=2", "--steps=3", "--epochs=0.1", "--seeds=1,2")
    options = (*size, f"--judged={tmp_path / 'judged'}")
    found = told("suspects", monkeypatch, tmp_path, f"--encoder={tiny_encoder}", *options)
    assert found["data"] == "generated"
    assert [run["seed"] for run in found["runs"]] == [1, 2]
    precision = [run["rankings"]["ours"]["precision"] for run in found["runs"]]
    spread = {"mean": pytest.approx(np.mean(precision)), "deviation": pytest.approx(np.std(precision, ddof=1))}
    assert found["mean"]["ours"]["precision"] == spread
    monkeypatch.setattr("suspects.judge", None)  # what was judged is not judged again
    again = told("suspects", monkeypatch, tmp_path, f"--encoder={tiny_encoder}", *options)
    assert [run["rankings"] for run in again["runs"]] == [run["rankings"] for run in found["runs"]]
    assert [run["seconds"] for run in again["runs"]] == [None, None]


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


def test_optimism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Confidences that are too high by a known shift of their logits, another for every dataset and seed."""

    def line(dataset: str, seed: int, method: str, high: float) -> str:
        logits = np.array([-1.0, 0.5, 3.0])
        right, sure = (1.0 / (1.0 + np.exp(-each)) for each in (logits, logits + high))
        bins = [{"confidence": c, "accuracy": a, "count": n} for c, a, n in zip(sure, right, (5, 7, 9), strict=True)]
        return json.dumps({"dataset": dataset, "seed": seed, "method": method, "bins": bins})

    learnt, judged = tmp_path / "learnt.jsonl", tmp_path / "judged.jsonl"
    highs = {("a", 1): (0.1, 0.3), ("a", 2): (0.6,), ("b", 1): (1.0,)}
    learnt.write_text("\n".join(line(*group, "m", high) for group, some in highs.items() for high in some))
    judged.write_text("\n".join([line("a", 3, "m", 1.0), line("a", 2, "m", 1.0), line("b", 3, "m", 0.0)]))
    found = told("calibration_shift", monkeypatch, tmp_path, str(learnt), "--judge", str(judged))
    assert found["groups"] == {
        "a": {"1": pytest.approx(-0.2, abs=1e-5), "2": pytest.approx(-0.6, abs=1e-5)},
        "b": {"1": pytest.approx(-1.0, abs=1e-5)},
    }
    assert found["shift"] == pytest.approx(-0.6, abs=1e-5)  # of three groups, not of four runs
    assert found["error"] == pytest.approx(0.4 / 3**0.5, abs=1e-5)
    of_m = found["judged"]["m"]
    a, b = of_m["by_dataset"]["a"], of_m["by_dataset"]["b"]
    assert a["as_it_is"] > 5.0
    assert a["shifted"] == pytest.approx(0.0, abs=1e-3)  # by that of b, -1: never by its own
    assert b["shifted"] > b["as_it_is"] == 0.0
    new = of_m["new_dev_sets"]
    assert new["runs"] == 2  # the third has a seed that a shift was found with
    assert new["change"] == pytest.approx((b["shifted"] - a["as_it_is"]) / 2, abs=1e-3)
    assert new["error"] == pytest.approx(abs(b["shifted"] + a["as_it_is"]) / 2, abs=1e-3)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("verb", ["predict", "next"])
def test_memory(tmp_path: Path, verb: str) -> None:
    found = importlib.import_module("memory").measure(tmp_path, 200, 2, verb)
    assert len(found["at_every_tenth_megabytes"]) == 9
    assert found["over_the_model_megabytes"] < 1000


@pytest.mark.timeout(600)
def test_start_up(tmp_path: Path, tiny_encoder: str) -> None:
    seconds = importlib.import_module("start_up").measure(tmp_path, 1, tiny_encoder)["seconds"]
    assert (
        seconds["python"]["median"]
        < seconds["help"]["median"]
        < seconds["transformers"]["median"]
        < seconds["predict"]["median"]
    )


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
