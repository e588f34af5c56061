from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest

import sequst
from sequst.corpus.formats.columns import write_conll
from sequst.corpus.sampling import Split
from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError
from sequst.evaluation.evaluate import evaluate
from sequst.integrations.labeler import Labeler
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.html import html
from sequst.tagger.prediction import Prediction
from sequst.tagger.tagger import Tagger
from sequst.training.configure import nested

QUICK = {"min_steps": 60, "epochs": 0.1, "learning_rate": 1e-3}
SETTINGS: dict[str, Any] = {
    "teacher": QUICK, "student": QUICK, "retune.min_steps": 8, "retune.epochs": 0.1, "max_rounds": 1, "uncertainty.passes": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(split: Split, tiny_encoder: str) -> Labeler:
    labeler = sequst.Labeler(encoder=tiny_encoder, seed=21, settings=SETTINGS)
    assert labeler.fit(split.labeled, split.unlabeled[:40], dev=split.dev) is labeler
    return labeler


def test_it_learns_as_train_does(fitted: Labeler, split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    options = {**nested(SETTINGS), "encoder": tiny_encoder, "seed": 21, "method": "sst"}
    run = sequst.train(split.labeled, tmp_path / "run", unlabeled=split.unlabeled[:40], dev=split.dev, **options)
    assert fitted.run_ is not None
    assert fitted.run_.summary["method"] == "sst"  # there is unlabelled text, and one round
    assert fitted.run_.summary["settings_hash"] == run.summary["settings_hash"]
    sentences = split.unlabeled[40:80]
    assert [p.tags for p in fitted.predict(sentences)] == [p.tags for p in run.tagger.predict(sentences)]  # type: ignore[union-attr]
    assert fitted.score(sentences) == evaluate(run.tagger, sentences).total.f1
    write_conll(tmp_path / "test.conll", sentences)
    assert fitted.score(tmp_path / "test.conll") == fitted.score(sentences)


def test_marked_sentences_of_a_list_are_not_learnt(split: Split, tiny_encoder: str) -> None:
    marked = [dataclasses.replace(sentence, judging=True) for sentence in split.dev]
    short = {"teacher.min_steps": 2, "teacher.epochs": 0.01}
    labeler = sequst.Labeler(encoder=tiny_encoder, settings=short).fit([*split.labeled, *marked])
    assert labeler.run_ is not None
    told = f"{len(marked)} sentences marked for judging; the best weights on them are kept"
    assert labeler.run_.summary["dev_set"] == told
    assert labeler.run_.summary["labeled_sentences"] == len(split.labeled)
    assert labeler.run_.summary["dev_f1"] == labeler.score(split.dev)


def test_a_fit_that_fails_leaves_the_last_one(fitted: Labeler, split: Split) -> None:
    assert fitted.run_ is not None
    run = fitted.run_
    with pytest.raises(UsageError, match=r"give .* a list of"):
        fitted.fit(["no tags"])
    fitted.settings = {**SETTINGS, "bilstm.vectors": "", "max_length": 10**6}
    with pytest.raises(UsageError, match="max_length"):
        fitted.fit(split.labeled)
    fitted.settings = SETTINGS
    assert fitted.run_ is run
    assert run.path.is_dir()


def test_it_is_saved_and_loaded(fitted: Labeler, split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = Labeler.load(tmp_path / "model")
    text = "Can Sydney conduct The Planets in Verona on Friday?"
    assert loaded.predict(text) == fitted.predict(text)
    assert Tagger.load(tmp_path / "model").predict(text) == fitted.predict(text)
    assert (loaded.encoder, loaded.seed, loaded.method) == (tiny_encoder, 21, "sst")
    assert loaded._settings() == fitted._settings().__class__(**{**vars(fitted._settings()), "method": "sst"})
    loaded.save(tmp_path / "again")
    assert Labeler.load(tmp_path / "again").predict(text) == fitted.predict(text)


def test_it_is_saved_over_a_model_and_over_nothing_else(fitted: Labeler, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("x")
    (tmp_path / "afile").write_text("y")
    fitted.save(tmp_path / "model")
    for labeler in (fitted, Labeler.load(tmp_path / "model")):
        with pytest.raises(UsageError, match="is not replaced; name another folder"):
            labeler.save(tmp_path / "precious")
        with pytest.raises(UsageError, match="afile is a file"):
            labeler.save(tmp_path / "afile")
        labeler.save(tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["afile", "model", "precious"]
    assert [path.read_text() for path in (tmp_path / "precious" / "thesis.txt", tmp_path / "afile")] == ["x", "y"]


def test_without_unlabelled_text_it_fine_tunes_and_takes_pairs(split: Split, tiny_encoder: str, tmp_path: Path) -> None:
    labeler = Labeler(encoder=tiny_encoder, settings={"teacher": QUICK}, output=tmp_path / "run")
    labeler.fit([(list(s.words), list(s.tags or ())) for s in split.labeled])
    assert labeler.run_ is not None
    assert labeler.run_.summary["method"] == "finetune"
    assert labeler.run_.summary["labeled_sentences"] == len(split.labeled)
    assert (tmp_path / "run" / "report.html").is_file()


def test_unlabelled_text_in_every_shape(split: Split, tiny_encoder: str) -> None:
    labeler = Labeler(encoder=tiny_encoder, settings=SETTINGS, method="sst")
    one, two, three, *rest = split.unlabeled[:40]
    text = [" ".join(one.words), list(two.words), three.words, ["One"], *rest]
    labeler.fit(split.labeled, text, dev=split.dev)
    assert labeler.run_ is not None
    assert labeler.run_.summary["unlabeled_sentences"] == 41


def test_arguments_are_given_back_and_changed() -> None:
    labeler = Labeler(encoder="bilstm", seed=3, settings={"teacher": {"epochs": 2}})
    assert labeler.get_params()["settings"] == {"teacher": {"epochs": 2}}
    again = Labeler(**copy.deepcopy(labeler.get_params()))
    assert again.get_params() == labeler.get_params()
    labeler.set_params(seed=4, teacher__epochs=7, teacher__batch_size=2)
    assert (labeler._settings().seed, labeler._settings().teacher.epochs, labeler._settings().teacher.batch_size) == (4, 7.0, 2)
    assert again._settings().teacher.epochs == 2.0
    with pytest.raises(UsageError, match="unknown argument 'sed' of Labeler; did you mean 'seed'"):
        labeler.set_params(sed=1)
    with pytest.raises(UsageError, match=r"unknown setting 'teacher\.epoch'"):
        labeler.set_params(teacher__epoch=1).fit([(["a"], ["O"])])


def test_settings_that_are_arguments_too_count() -> None:
    labeler = Labeler(settings={"seed": 3, "head": "crf", "teacher.epochs": 2})
    assert (labeler._settings().seed, labeler._settings().head, labeler._settings().method) == (3, "crf", "auto")
    assert labeler.get_params()["seed"] == 12  # as it was given, which is what scikit-learn copies
    assert Labeler(seed=3, settings={"seed": 3})._settings().seed == 3
    with pytest.raises(UsageError, match="Labeler: seed=4, and seed 3 among its settings; give one of them"):
        labeler.set_params(seed=4).fit([(["a"], ["O"])])
    with pytest.raises(UsageError, match="Labeler: head='crf', and head 'softmax' among its settings"):
        Labeler(head="crf", settings={"head": "softmax"}).fit([(["a"], ["O"])])


def test_dropout_has_the_seed_of_the_settings(fitted: Labeler, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    one, same, other = (Labeler.load(tmp_path / "model").set_params(seed=seed) for seed in (3, 12, 12))
    same.set_params(settings={"seed": 3})
    gains = [each.predict("Sydney plays.", uncertainty=True, passes=3).information_gains for each in (one, same, other)]
    assert gains[0] == gains[1] != gains[2]


def test_scikit_learn_takes_it_for_one_of_its_own() -> None:
    base = pytest.importorskip("sklearn.base")
    labeler = Labeler(seed=5, settings={"max_rounds": 2})
    twin = base.clone(labeler)
    assert twin is not labeler
    assert twin.get_params() == labeler.get_params()


@pytest.mark.parametrize(
    ("labeled", "unlabeled", "told"),
    [
        (3, None, "labeled: found 3; give a file, a list of Sentence with tags"),
        ([(["a", "b"], ["O"])], None, r"labeled: its item 1 is .*; give a file"),
        ([(["a"], ["B"])], None, "labeled: its item 1"),
        (["a text"], None, "labeled: its item 1 is 'a text'"),
        ([(["a"], ["B-x"])], 5, "unlabeled: found 5; give a file, or a list of texts"),
        ([(["a"], ["B-x"])], ["a text", 5], "unlabeled: its item 2 is 5"),
        (
            [(["a"], ["B-x"]), (["b", "c\ud800"], ["O", "O"])],
            None,
            r"labeled: its sentence 2 has half a character in 'c\\ud800'",
        ),
        ([(["a"], ["B-x"])], ["a text", "b", ["\udfff"]], "unlabeled: its sentence 3 has half a character"),
        ([(["a"], ["B-x\ud800"])], None, "labeled: its sentence 1 has half a character"),
    ],
)
def test_what_it_cannot_learn_from_is_said(labeled: Any, unlabeled: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Labeler().fit(labeled, unlabeled)


def test_before_it_has_learnt() -> None:
    labeler = Labeler(encoder="bilstm")
    assert repr(labeler) == "Labeler(encoder='bilstm')"
    for call in (lambda: labeler.predict("x"), lambda: labeler.score([]), lambda: labeler.save("x")):
        with pytest.raises(UsageError, match="call fit"):
            call()


def test_a_prediction_is_drawn_inline() -> None:
    sentence = Sentence(("<b>Ann", "&", "Oslo", "."), None, 1)
    prediction = Prediction(sentence, ("B-per", "O", "B-loc", "O"), (0.9, 1.0, 0.3, 1.0))
    drawn = html(prediction)
    assert prediction._repr_html_() == drawn
    assert "&lt;b&gt;Ann <small" in drawn
    assert "<b>" not in drawn
    assert "per 90%" in drawn
    assert "loc 30%" in drawn
    strengths = [float(part.split(",")[3].split(")")[0]) for part in drawn.split("hsla(")[1:]]
    assert strengths == pytest.approx([0.12 + 0.68 * 0.9, 0.12 + 0.68 * 0.3], abs=0.01)
    assert drawn.index("Ann") < drawn.index("&amp;") < drawn.index("Oslo") < drawn.rindex(".</p>")


def test_what_is_left_out_is_drawn_otherwise() -> None:
    sentence = Sentence(("Ann", "in", "<Oslo>"), None, 1)
    drawn = html(Prediction(sentence, ("B-per", "O", "B-loc"), (0.9, 1.0, 0.3), EntityCalibration(threshold=0.4)).cut())
    assert drawn.count("<mark") == 1
    assert 'title="loc 30%: left out">&lt;Oslo&gt;' in drawn
    assert "loc? 30%" in drawn
    assert "dashed" in drawn


def test_how_sure_it_must_be_can_be_asked_for(fitted: Labeler, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    texts = ["Sydney plays in Verona.", "Can Sydney conduct The Planets in Verona on Friday?"]
    everything, nothing = (Labeler.load(tmp_path / "m", min_confidence=each).predict(texts) for each in (0.0, 1.0))
    assert any(each.entities for each in everything)
    for before, after in zip(everything, nothing, strict=True):
        assert after.entities == []
        assert list(after.left_out) == before.entities


def test_with_what_it_does_not_know(fitted: Labeler) -> None:
    one = fitted.predict("Sydney plays.", uncertainty=True, passes=3)
    assert len(one.information_gains) == 3
    many = fitted.predict(["Sydney plays.", "In Verona."], uncertainty=True, passes=3)
    assert [len(each.words) for each in many] == [3, 3]
    for uncertainty in (True, False):
        with pytest.raises(UsageError, match="passes=0: at least 1"):
            fitted.predict("Sydney plays.", uncertainty=uncertainty, passes=0)
