from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
import yaml

from sequst.errors import UsageError
from sequst.training.configure import (
    EFFORTS,
    describe,
    from_dict,
    from_model,
    layered,
    leaves,
    load_settings,
    of_effort,
    parse_yaml,
    recipe_names,
    replaced,
    save_settings,
    template,
)
from sequst.training.loop import MOST_EPOCHS, count_steps
from sequst.training.settings import SELECTORS, PhaseSettings, Settings, to_dict

Write = Callable[..., Path]


def test_later_wins(write: Write) -> None:
    path = write("s.yaml", "seed: 1\nmax_length: 32\nteacher:\n  epochs: 7\n  learning_rate: 1e-5\n")
    settings = load_settings(path, ["teacher.epochs=9", "max_length=48"], seed=3, encoder=None)
    assert (settings.seed, settings.max_length) == (3, 48)
    assert (settings.teacher.epochs, settings.teacher.learning_rate) == (9.0, 1e-5)
    assert settings.encoder == Settings().encoder


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("techer.epochs=3", "unknown setting 'techer'; did you mean 'teacher'"),
        ("teacher.epoch=3", "unknown setting 'teacher.epoch'; did you mean 'teacher.epochs'"),
        ("sead=3", "did you mean 'seed'"),
        ("seed=x", "seed must be a whole number; found 'x'"),
        ("seed=1.5", "seed must be a whole number"),
        ("standardise=3", "standardise must be true or false"),
        ("teacher=3", "teacher is a group of settings"),
        ("seed.x=3", "seed must be a whole number"),
        ("teacher.learning_rate=-1", "setting teacher.learning_rate=-1.0: must be above 0"),
        ("teacher.learning_rate=nan", "must be a finite number"),
        ("gcr.weight=-1", "must be at least 0"),
        ("selection.share=50", "must be above 0 and at most 1"),
        ("selection.share=0", "must be above 0 and at most 1"),
        ("robust.tau=0.5", "must be 0 or at least 1"),
        ("dev_fraction=1.5", "must be at least 0 and below 1"),
        ("precision=fp8", "must be one of auto, fp32, bf16"),
        ("teacher.epochs", "write it as name=value"),
        ("seed=[", "not valid YAML"),
    ],
)
def test_wrong_settings_are_named(override: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        load_settings(None, [override])
    assert message in str(error.value)


@pytest.mark.parametrize("content", ["- a\n- b\n", "a: [", "just text", b"\xff\xfe"])
def test_bad_files(write: Write, content: str | bytes) -> None:
    with pytest.raises(UsageError, match=r"--settings .*s\.yaml"):
        load_settings(write("s.yaml", content))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_settings(tmp_path / "none.yaml")


def test_saved_settings_read_back(tmp_path: Path) -> None:
    settings = load_settings(None, ["teacher.epochs=2.5", "encoder=bert-base-uncased"])
    save_settings(settings, tmp_path / "s.yaml")
    assert load_settings(tmp_path / "s.yaml") == settings


def test_every_setting_has_a_docstring_and_the_template_is_the_defaults() -> None:
    assert all(item.help for item in describe())
    assert from_dict(yaml.safe_load(template())) == Settings()
    assert to_dict(Settings()) == to_dict(from_dict(yaml.safe_load(template())))


def test_the_hash_is_of_what_decides_the_numbers() -> None:
    base = Settings()
    assert base.hash() == load_settings(None, ["seed=99", "device=cpu"]).hash()
    assert base.hash() == load_settings(None, ["encoder=/some/where/minilm"]).hash()
    assert base.hash() != load_settings(None, ["teacher.epochs=6"]).hash()
    other = load_settings(None, ["gcr.weight=0.25"])
    assert base.hash() != other.hash()
    assert base.hash() != load_settings(None, ["learn_judging=true"]).hash()
    assert base.hash(["gcr"]) == other.hash(["gcr"])
    assert load_settings(None, ["encoder=bilstm", "adapt=true"]).hash() == load_settings(None, ["encoder=bilstm"]).hash()
    assert base.hash() == load_settings(None, ["bilstm.layers=1"]).hash()  # of another encoder


def test_recipes_go_by_their_names(write: Write) -> None:
    """`paper` pins all that an effort may set, so the defaults may change and the paper stays."""
    assert recipe_names() == ["paper", "quick", "thorough"]
    paper, quick, thorough = ({name for name, _ in leaves(yaml.safe_load(text_of(recipe)))} for recipe in recipe_names())
    assert paper >= quick | thorough
    assert load_settings("paper", ["max_rounds=3"]).max_rounds == 3
    assert load_settings(write("paper", "max_rounds: 4\n")).max_rounds == 4  # a file of that name, by its path
    with pytest.raises(UsageError, match=r"--settings papr: no such file.*paper or quick or thorough"):
        load_settings("papr")


def test_an_effort_comes_before_all_other_settings(write: Write) -> None:
    path = write("s.yaml", "max_rounds: 3\nteacher:\n  epochs: 7\n")
    quick, own = load_settings(effort="quick"), load_settings(path, ["student.min_steps=9"], effort="quick", seed=3)
    assert (own.max_rounds, own.teacher.epochs, own.student.min_steps, own.seed) == (3, 7.0, 9, 3)
    assert (own.round_size, own.teacher.min_steps) == (quick.round_size, quick.teacher.min_steps)
    assert load_settings(effort="default") == Settings()
    with pytest.raises(UsageError, match="unknown effort 'fast'; it must be one of quick, default, thorough"):
        load_settings(effort="fast")
    with pytest.raises(UsageError, match="--settings paper and --effort quick decide the same settings"):
        load_settings("paper", effort="quick")


@pytest.mark.parametrize("first", EFFORTS)
@pytest.mark.parametrize("second", EFFORTS)
def test_an_effort_takes_the_place_of_another(first: str, second: str) -> None:
    changed = from_dict(layered(to_dict(load_settings(effort=first, seed=5)), of_effort(second)))
    assert changed == load_settings(effort=second, seed=5)


def test_the_steps_of_a_phase() -> None:
    phase = PhaseSettings(epochs=5.0, min_steps=600)
    assert count_steps(phase, 200) == 1000  # its epochs
    assert count_steps(phase, 5) == 600  # few sentences: `min_steps`
    assert count_steps(phase, 1) == MOST_EPOCHS  # hardly any: no more than that often
    assert count_steps(PhaseSettings(epochs=5.0, min_steps=600, max_steps=50), 200) == 50
    assert count_steps(PhaseSettings(epochs=200.0, min_steps=0), 2) == 400  # asked for


def text_of(recipe: str) -> str:
    return resources.files("sequst.training").joinpath(f"recipes/{recipe}.yaml").read_text(encoding="utf-8")


def test_a_group_given_in_part_keeps_its_own_defaults() -> None:
    settings = load_settings(None, ["retune.epochs=3"])
    assert settings.retune.learning_rate == Settings().retune.learning_rate != Settings().teacher.learning_rate


def test_a_key_that_is_given_twice_is_named_with_its_lines(write: Write) -> None:
    with pytest.raises(UsageError, match=r"s\.yaml: .*line 4: 'epochs' again, which line 2 has"):
        load_settings(write("s.yaml", "teacher:\n  epochs: 1\n  batch_size: 4\n  epochs: 2\n"))
    merged = "student: &short\n  epochs: 3\nretune:\n  <<: *short\n  epochs: 4\n"  # which a merge may override
    settings = load_settings(write("m.yaml", merged))
    assert (settings.student.epochs, settings.retune.epochs) == (3, 4)


def test_what_was_read_once_is_read_again_as_it_was() -> None:
    """Files and values are remembered; what is put into one does not show in the next."""
    first = load_settings("paper", ["teacher.epochs=2", "seed=3"])
    assert (first.teacher.epochs, first.seed) == (2, 3)
    again = load_settings("paper")
    assert (again.teacher.epochs, again.seed) == (Settings().teacher.epochs, Settings().seed)
    parse_yaml("a: {b: 1}")["a"]["b"] = 2
    assert parse_yaml("a: {b: 1}") == {"a": {"b": 1}}


@pytest.mark.parametrize("selector", sorted({*SELECTORS} - {"sampled"}))
def test_what_takes_every_word_has_no_share(selector: str) -> None:
    asked = [f"selection.selector={selector}", "selection.share=0.8"]
    with pytest.raises(UsageError, match=rf"setting selection\.share: the selector {selector} takes every word"):
        load_settings(None, asked)
    assert load_settings(None, [*asked, "selection.selector=sampled"]).selection.share == 0.8


OLD_PHASE = "learning_rate head_learning_rate epochs min_steps max_steps batch_size weight_decay warmup max_gradient_norm"
OLD_PHASE += " evaluations average swap hide"
OLD = {f"{phase}.{leaf}" for phase in ("adaptation", "teacher", "student", "retune") for leaf in OLD_PHASE.split()}
OLD |= {
    "successions",
    "optimism",
    "pseudo_labels",
    "sharpness",
    "mix_labeled",
    "swap_from",
    "crf.constrained",
    "crf.learning_rate",
    "bilstm.word_size",
    "bilstm.character_size",
    "bilstm.filters",
    "bilstm.dropout",
    "bilstm.rate",
    "uncertainty.dropout",
    "uncertainty.calibrated",
    "selection.weight",
    "selection.unit",
    "selection.each_epoch",
    "selection.rest",
    "selection.doubtful",
    "ensemble.memory",
    "gcr.start",
    "gcr.detach",
    "gcr.selected_only",
    "vat.step",
    "vat.warmup",
    "vat.entropy",
    "cvt.warmup",
    "cvt.hidden",
    "cvt.learning_rate",
    "metast.labels",
    "metast.batch_size",
    "metast.refresh",
    "metast.smoothing",
    "metast.retune",
}
"""Settings of version 0.1, those aside that never changed."""


@pytest.mark.parametrize("name", sorted(OLD - {item.name for item in describe()}))
def test_a_setting_that_is_gone_says_what_to_use(name: str) -> None:
    with pytest.raises(UsageError) as error:
        load_settings(None, [f"{name}=1"])
    group = name.split(".")[0]
    assert f"the setting {name!r} is gone; " in str(error.value) or f"the setting {group!r} is gone; " in str(error.value)
    assert replaced(name)


def test_a_model_of_an_earlier_version_keeps_the_settings_that_are_left() -> None:
    kept = {"seed": 5, "successions": 1.0, "teacher": {"epochs": 7.0, "average": 0.9}, "crf": {"constrained": True}}
    settings = from_model(kept, "settings in sequst.json")
    assert (settings.seed, settings.teacher.epochs) == (5, 7.0)


def test_the_paper_is_the_paper() -> None:
    paper = load_settings("paper")
    assert (paper.valid_tags, paper.transitions, paper.abstain, paper.choose) == (False, 0.0, False, "best")
    assert (paper.selection.selector, paper.selection.share, paper.student.hide) == ("sampled", 0.5, 0.0)
    assert (paper.robust.loss, paper.gcr.weight, paper.gcr.samples) == ("phce", 0.5, 3)
