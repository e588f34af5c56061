from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers

from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans
from sequst.errors import UsageError
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.predict import annotate_with_uncertainty

spacy = pytest.importorskip("spacy")
import sequst.integrations.spacy_pipe  # noqa: E402, F401  # what the entry point does where sequst is installed

MakeTagger = Callable[..., Tagger]
WORDS = [list(sentence.words) for sentence in generate(pool=40, test=1).pool]


def pipeline(model: Path, **config: Any) -> Any:
    nlp = spacy.blank("en")
    nlp.add_pipe("sequst", config={"model": str(model), **config})
    return nlp


def entities(doc: Any) -> list[tuple[str, int, int, float]]:
    return [(span.label_, span.start, span.end, round(span._.confidence, 6)) for span in doc.ents]


def expected(tagger: Tagger, words: list[str], first: int = 0) -> list[tuple[str, int, int, float]]:
    prediction: Any = tagger.predict(Sentence(tuple(words)))
    return [(e.type, first + e.start, first + e.end, round(e.confidence, 6)) for e in prediction.entities]


def test_the_entities_are_those_of_the_tagger(model: Path) -> None:
    nlp, tagger = pipeline(model), Tagger.load(model, "cpu")
    docs = [spacy.tokens.Doc(nlp.vocab, words) for words in WORDS]
    assert sum(len(doc.ents) for doc in docs) == 0
    for words, doc in zip(WORDS, nlp.pipe(docs, batch_size=7), strict=True):
        wanted = expected(tagger, words)
        assert [found[:3] for found in entities(doc)] == [each[:3] for each in wanted]
        assert [found[3] for found in entities(doc)] == pytest.approx([each[3] for each in wanted], abs=1e-5)
        assert all(span._.information_gain is None for span in doc.ents)
    assert sum(len(doc.ents) for doc in docs) > 40


def test_how_sure_it_must_be_can_be_asked_for(model: Path) -> None:
    everything, sure = pipeline(model, min_confidence=0.0), pipeline(model, min_confidence=0.5)
    before, after = (
        [found for words in WORDS for found in entities(nlp(spacy.tokens.Doc(nlp.vocab, words)))] for nlp in (everything, sure)
    )
    assert after == [found for found in before if found[3] >= 0.5]
    assert 0 < len(after) < len(before)
    with pytest.raises(UsageError, match=r"min_confidence 2\.0: must be at least 0 and at most 1"):
        pipeline(model, min_confidence=2.0)


def test_a_batch_is_tagged_at_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sequst.tagger import predict as predicting

    sizes, plain = [], predicting.annotate

    def counted(tagger: Tagger, sentences: Any) -> Any:
        held = list(sentences)
        sizes.append(len(held))
        return plain(tagger, held)

    monkeypatch.setattr(predicting, "annotate", counted)
    assert len(list(pipeline(model).pipe(["We play in Oslo."] * 10, batch_size=4))) == 10
    assert sizes == [4, 4, 2]


def test_white_space_is_no_word_and_no_edge(model: Path) -> None:
    nlp, tagger = pipeline(model), Tagger.load(model, "cpu")
    text = " \n ".join(" ".join(words) for words in WORDS[:8]) + "   "
    doc = nlp(text)
    kept = [token.i for token in doc if not token.is_space]
    assert len(kept) < len(doc) - 7
    found = expected(tagger, [doc[i].text for i in kept])
    assert [each[:3] for each in entities(doc)] == [(label, kept[start], kept[end - 1] + 1) for label, start, end, _ in found]
    assert not any(span[0].is_space or span[-1].is_space for span in doc.ents)
    assert any(token.is_space for span in doc.ents for token in span)  # it may lie within
    assert len(kept) > 64  # and it was more than a window
    assert [nlp(odd).ents for odd in ("", " \n ")] == [(), ()]


def test_sentences_are_tagged_by_themselves(model: Path) -> None:
    nlp, tagger = pipeline(model), Tagger.load(model, "cpu")
    words = WORDS[0] + WORDS[1]
    starts = [i in (0, len(WORDS[0])) for i in range(len(words))]
    doc = nlp(spacy.tokens.Doc(nlp.vocab, words, sent_starts=starts))
    apart = expected(tagger, WORDS[0]) + expected(tagger, WORDS[1], len(WORDS[0]))
    assert [each[:3] for each in entities(doc)] == [each[:3] for each in apart]
    whole = nlp(spacy.tokens.Doc(nlp.vocab, words))
    assert [each[:3] for each in entities(whole)] == [each[:3] for each in expected(tagger, words)] != [a[:3] for a in apart]


def test_what_it_does_not_know(model: Path) -> None:
    nlp, tagger = pipeline(model, uncertainty=True, passes=4, seed=3), Tagger.load(model, "cpu")
    doc = nlp(spacy.tokens.Doc(nlp.vocab, WORDS[0]))
    [prediction] = annotate_with_uncertainty(tagger, [Sentence(tuple(WORDS[0]))], passes=4, seed=3)
    gains = [max(prediction.information_gains[start:end]) for _, start, end in spans(prediction.tags)]
    assert [span._.information_gain for span in doc.ents] == pytest.approx(gains)
    assert len(set(gains)) > 1
    other = pipeline(model, uncertainty=True, passes=4, seed=4)(spacy.tokens.Doc(nlp.vocab, WORDS[0]))
    assert [span._.information_gain for span in other.ents] != pytest.approx(gains)


def test_entities_that_are_there_are_kept_where_asked(model: Path) -> None:
    def doc_with_one() -> Any:
        doc = spacy.tokens.Doc(nlp.vocab, WORDS[0])
        doc.set_ents([spacy.tokens.Span(doc, alone.start, alone.start + 1, label="MINE")])
        return doc

    nlp = pipeline(model)
    alone = nlp(spacy.tokens.Doc(nlp.vocab, WORDS[0])).ents[0]
    found = {(span.label_, span.start, span.end) for span in nlp(doc_with_one()).ents}
    assert ("MINE", alone.start, alone.start + 1) not in found
    kept = {(span.label_, span.start, span.end) for span in pipeline(model, overwrite_ents=False)(doc_with_one()).ents}
    assert kept == {("MINE", alone.start, alone.start + 1)} | {each for each in found if each[1] > alone.start}


def test_a_pipeline_is_saved_with_its_model(model: Path, tmp_path: Path) -> None:
    nlp = pipeline(model, overwrite_ents=False)
    before = [entities(nlp(" ".join(words))) for words in WORDS[:5]]
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    shutil.rmtree(model)  # neither may need it any more
    loaded = spacy.load(tmp_path / "pipeline")
    assert [entities(loaded(" ".join(words))) for words in WORDS[:5]] == before
    from_bytes = spacy.lang.en.English.from_config(nlp.config).from_bytes(data)
    assert [entities(from_bytes(" ".join(words))) for words in WORDS[:5]] == before
    from_bytes.to_disk(tmp_path / "again")
    files = [sorted(p.name for p in (tmp_path / name / "sequst").iterdir()) for name in ("pipeline", "again")]
    assert files[0] == files[1] != []


def test_a_pipeline_takes_the_place_of_an_earlier_one(
    make_tagger: MakeTagger, tiny_encoder: str, model: Path, tmp_path: Path
) -> None:
    make_tagger(tiny_encoder, head="crf").save(tmp_path / "crf")
    Tagger.from_encoder("bilstm", ["O", "B-X", "I-X"], text=[["a", "b"]]).save(tmp_path / "bilstm")
    transformers.AutoModelForTokenClassification.from_pretrained(model).save_pretrained(tmp_path / "others")
    transformers.AutoTokenizer.from_pretrained(model).save_pretrained(tmp_path / "others")
    text = " ".join(WORDS[0])
    for name in ("bilstm", "model", "crf", "model", "others", "others", "bilstm", "crf"):
        nlp = pipeline(tmp_path / name)
        nlp.to_disk(tmp_path / "pipeline")
        again = spacy.load(tmp_path / "pipeline")
        assert entities(again(text)) == entities(nlp(text))
        again.to_disk(tmp_path / "pipeline")  # over the model that it has from there
        assert entities(spacy.load(tmp_path / "pipeline")(text)) == entities(nlp(text))
    assert sorted(path.name for path in (tmp_path / "pipeline").iterdir() if path.name.startswith(".")) == []


def test_a_component_takes_no_place_of_anothers(model: Path, tmp_path: Path) -> None:
    (tmp_path / "pipeline" / "sequst").mkdir(parents=True)
    (tmp_path / "pipeline" / "sequst" / "thesis.txt").write_text("x")
    with pytest.raises(UsageError, match=r"sequst is not empty and has no sequst\.json, so it is not replaced"):
        pipeline(model).to_disk(tmp_path / "pipeline")
    assert (tmp_path / "pipeline" / "sequst" / "thesis.txt").read_text() == "x"


def test_an_export_serves_too(make_tagger: MakeTagger, tiny_encoder: str, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from sequst.integrations.onnx.exporting import export

    export(Tagger.load(model, "cpu"), tmp_path / "onnx")
    texts = [" ".join(words) for words in WORDS]
    for one, other in zip(pipeline(model).pipe(texts), pipeline(tmp_path / "onnx").pipe(texts), strict=True):
        assert [each[:3] for each in entities(one)] == [each[:3] for each in entities(other)]
    with pytest.raises(UsageError, match=r"uncertainty: .*onnx is an export.*name the model that it was made from"):
        pipeline(tmp_path / "onnx", uncertainty=True)
    for device in ("cuda", "gpu9"):
        with pytest.raises(UsageError, match=f"device {device}: .*onnx is an export, which runs on the CPU"):
            pipeline(tmp_path / "onnx", device=device)
    for folder in (tmp_path / "onnx", model, tmp_path / "onnx"):
        pipeline(folder).to_disk(tmp_path / "pipeline")
        assert {path.name for path in (tmp_path / "pipeline" / "sequst").iterdir()} == {path.name for path in folder.iterdir()}


def test_mistakes_are_told(tmp_path: Path, model: Path) -> None:
    with pytest.raises(UsageError, match="no model given"):
        spacy.blank("en").add_pipe("sequst")
    with pytest.raises(UsageError, match="passes=0: at least 1"):
        pipeline(model, passes=0)
    with pytest.raises(UsageError, match="unknown device 'gpu9'; use auto, cpu, cuda"):
        pipeline(model, device="gpu9")
    with pytest.raises(UsageError, match=r"no model in .*it has no config\.json"):
        pipeline(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"did you mean .*model"):
        pipeline(model.parent)
    with pytest.raises(Exception, match=r"extra fields|Extra inputs|modle"):
        pipeline(model, modle="x")
    with pytest.raises(Exception, match="passes"):
        pipeline(model, passes="many")
    gone = pipeline(model)
    config = gone.config
    shutil.rmtree(model)
    with pytest.raises(UsageError, match="there is no such folder, so it cannot be saved"):
        gone.to_disk(tmp_path / "out")
    for nlp in (gone, spacy.lang.en.English.from_config(config)):  # which nothing has been loaded into
        with pytest.raises(UsageError, match=r"no model in .*it has no config\.json"):
            nlp("We play")


def test_no_import_of_sequst_is_needed(model: Path, tmp_path: Path) -> None:
    """With the entry point of pyproject.toml, as an installed sequst has it."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    facts = tmp_path / "site" / "as_installed-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: as-installed\nVersion: 1\n")
    rows = [f"{name} = {target}" for name, target in project["entry-points"]["spacy_factories"].items()]
    (facts / "entry_points.txt").write_text("\n".join(["[spacy_factories]", *rows]))
    code = (
        "import spacy\n"
        "nlp = spacy.blank('en')\n"
        f"nlp.add_pipe('sequst', config={{'model': {str(model)!r}}})\n"
        f"print(len(nlp({' '.join(WORDS[0])!r}).ents))"
    )
    path = os.pathsep.join([str(facts.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(pipeline(model)(" ".join(WORDS[0])).ents) > 0
