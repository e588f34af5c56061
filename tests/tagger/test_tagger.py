from __future__ import annotations

import itertools
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers

from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError
from sequst.tagger.accel.embedding import trained_rows
from sequst.tagger.batches import collate
from sequst.tagger.capitals import WAYS
from sequst.tagger.encoders.transformer import Transformer
from sequst.tagger.predict import annotate
from sequst.tagger.tagger import Tagger, labels_of

LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
SENTENCES = [
    ["We", "play", "The", "Planets", "in", "St.", "Gallen", "."],
    ["x"],
    ["zq" * 30, "\u200b", "U.S.", "a-b_c"],
    ["Anna", "flew"] * 30,
]


def random_tagger(encoder: str, **options: Any) -> Tagger:
    """A tagger whose head is random but decided, so that its tags vary."""
    tagger = Tagger.from_encoder(encoder, LABELS, max_length=32, overlap=8, seed=1, **options)
    with torch.no_grad():
        tagger.head.linear.weight.normal_(generator=torch.Generator().manual_seed(2))
    tagger.head.standardise(torch.linspace(-0.1, 0.1, tagger.head.linear.in_features), 0.3)
    return tagger


def transformers_tags(folder: Path, sentences: list[list[str]]) -> list[tuple[str, ...]]:
    """What transformers alone makes of the folder: the label of every first sub-word."""
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tags = []
    for words in sentences:
        encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        inputs = {name: encoded[name] for name in ("input_ids", "attention_mask")}
        best = model(**inputs).logits[0].argmax(-1).tolist()
        places = encoded.word_ids()
        tags.append(tuple(model.config.id2label[best[places.index(word)]] for word in range(len(words))))
    return tags


def test_a_copied_encoder_is_trained_alone(tiny_encoder: str) -> None:
    first = Tagger.from_encoder(tiny_encoder, LABELS, seed=1)
    assert isinstance(first.encoder, Transformer)
    second = Tagger.from_encoder(first.encoder, LABELS, seed=1)
    assert second.encoder.tokenizer is first.encoder.tokenizer
    assert all(map(torch.equal, first.state_dict().values(), second.state_dict().values()))
    with torch.no_grad():
        for parameter in second.encoder.parameters():
            parameter.add_(1)
    again = Tagger.from_encoder(tiny_encoder, LABELS, seed=1)
    assert all(map(torch.equal, first.state_dict().values(), again.state_dict().values()))


def test_a_chain_is_saved_and_found_again(tiny_encoder: str, tmp_path: Path) -> None:
    tagger = random_tagger(tiny_encoder, head="crf")
    with torch.no_grad():
        for parameter in tagger.head.parameters(recurse=False):
            parameter.normal_(0.0, 3.0, generator=torch.Generator().manual_seed(3))
    before = tagger.predict(SENTENCES)
    tagger.save(tmp_path / "m")
    after = Tagger.load(tmp_path / "m").predict(SENTENCES)
    assert [p.tags for p in before] == [p.tags for p in after]
    for p, q in zip(before, after, strict=True):
        assert p.confidences == pytest.approx(q.confidences, abs=1e-4)
        for tag, following in itertools.pairwise(("O", *p.tags)):
            assert not following.startswith("I-") or tag[2:] == following[2:]
    assert len({file.stat().st_mode for file in (tmp_path / "m").iterdir()}) == 1
    assert transformers_tags(tmp_path / "m", SENTENCES[:1]) != [before[0].tags]  # it does not know the chain
    assert "so its tags differ" in (tmp_path / "m" / "README.md").read_text()


@pytest.mark.parametrize("content", [None, b"not safetensors", pickle.dumps(["anything"])])
def test_a_chain_that_is_no_chain_is_an_error(content: bytes | None, tiny_encoder: str, tmp_path: Path) -> None:
    random_tagger(tiny_encoder, head="crf").save(tmp_path / "m")
    if content is None:
        (tmp_path / "m" / "crf.safetensors").unlink()
    else:
        (tmp_path / "m" / "crf.safetensors").write_bytes(content)
    with pytest.raises(SequstError, match=r"the chain of the CRF in .*crf.safetensors|do not fit together"):
        Tagger.load(tmp_path / "m")


@pytest.mark.parametrize("change", [{"head": "mlp"}, {"head": None}, {"head": "softmax"}, {"constrained": False}])
def test_facts_that_do_not_fit_the_folder_are_an_error(change: dict[str, Any], tiny_encoder: str, tmp_path: Path) -> None:
    random_tagger(tiny_encoder, head="crf").save(tmp_path / "m")
    facts = json.loads((tmp_path / "m" / "sequst.json").read_text())
    (tmp_path / "m" / "sequst.json").write_text(json.dumps({**facts, **change}))
    with pytest.raises(SequstError, match=r"sequst\.json"):
        Tagger.load(tmp_path / "m")


def test_an_unknown_head(tiny_encoder: str) -> None:
    with pytest.raises(UsageError, match="unknown head 'CRF'; use softmax or crf"):
        Tagger.from_encoder(tiny_encoder, LABELS, head="CRF")


def test_an_entity_across_the_cut_of_a_long_sentence(tiny_encoder: str) -> None:
    """Without overlap a window may begin inside an entity: its first word must be allowed to be an I-."""
    tagger = Tagger.from_encoder(tiny_encoder, LABELS, max_length=8, overlap=0, head="crf")
    words, tags = ["a"] * 12, ["O"] * 5 + ["B-X"] + ["I-X"] * 4 + ["O"] * 2
    windows = tagger.splitter.windows([words])
    inside = [w for w in windows if w.first > 0 and w.owned[0] == 0 and tags[w.first] == "I-X"]
    assert inside
    batch = collate(windows, list(range(len(windows))), tagger.pad_id, [tagger.label_ids(tags)])
    assert batch.opens.tolist() == [True] + [False] * (len(windows) - 1)
    assert tagger.loss(batch) < 10
    with torch.no_grad():
        tagger.head.linear.bias[LABELS.index("I-X")] = 50.0
    assert tagger.predict([tuple(words)])[0].tags[inside[0].first] == "I-X"  # type: ignore[index]


def test_save_load_predict_gives_the_same_tags(tiny_encoder: str, tmp_path: Path) -> None:
    tagger = random_tagger(tiny_encoder)
    before = tagger.predict(SENTENCES)
    tagger.save(tmp_path / "m")
    after = Tagger.load(tmp_path / "m").predict(SENTENCES)
    assert [p.tags for p in before] == [p.tags for p in after]
    assert len({tag for p in before for tag in p.tags}) > 2
    for p, q in zip(before, after, strict=True):
        assert p.confidences == pytest.approx(q.confidences, abs=1e-4)
    assert {f.suffix for f in (tmp_path / "m").iterdir()} == {".json", ".md", ".safetensors"}


def test_transformers_gives_the_same_tag_at_every_first_subword(tiny_encoder: str, tmp_path: Path) -> None:
    random_tagger(tiny_encoder).save(tmp_path / "m")
    ours = Tagger.load(tmp_path / "m").predict(SENTENCES[:2])
    assert transformers_tags(tmp_path / "m", SENTENCES[:2]) == [p.tags for p in ours]


def test_batching_and_windows_do_not_change_a_sentence(tiny_encoder: str) -> None:
    tagger = random_tagger(tiny_encoder)
    together = tagger.predict(SENTENCES)
    for words, prediction in zip(SENTENCES, together, strict=True):
        alone = tagger.predict([words])[0]
        assert alone.tags == prediction.tags
        assert alone.confidences == pytest.approx(prediction.confidences, abs=1e-5)
        assert len(prediction.tags) == len(words)


def test_predicting_leaves_the_mode_as_it_was(tiny_encoder: str) -> None:
    tagger = random_tagger(tiny_encoder).train()
    assert tagger.predict("We play") == tagger.predict("We play")  # no dropout
    assert tagger.training


def byte_level_tokenizer() -> Any:
    backend = tokenizers.ByteLevelBPETokenizer(add_prefix_space=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    backend.train_from_iterator(["We play The Planets in St. Gallen ."] * 3, vocab_size=400, special_tokens=special)
    return transformers.RobertaTokenizerFast(tokenizer_object=backend._tokenizer, add_prefix_space=True)


SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48, "vocab_size": 600}
ARCHITECTURES = {
    "mpnet": transformers.MPNetConfig(**SMALL),
    "distilbert": transformers.DistilBertConfig(dim=32, n_layers=1, n_heads=2, hidden_dim=48, vocab_size=600),
    "electra": transformers.ElectraConfig(embedding_size=16, **SMALL),
    "deberta": transformers.DebertaV2Config(**SMALL),
    "modernbert": transformers.ModernBertConfig(**SMALL, pad_token_id=0, cls_token_id=2, sep_token_id=3),
    "roberta": transformers.RobertaConfig(**SMALL, pad_token_id=1),
}  # fmt: skip


def saved_encoder(name: str, tiny_encoder: str, folder: Path) -> str:
    """One of the architectures, with random weights."""
    torch.manual_seed(0)
    transformers.AutoModel.from_config(ARCHITECTURES[name]).save_pretrained(folder)
    tokenizer = byte_level_tokenizer() if name == "roberta" else transformers.AutoTokenizer.from_pretrained(tiny_encoder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_any_encoder(name: str, tiny_encoder: str, tmp_path: Path) -> None:
    tagger = random_tagger(saved_encoder(name, tiny_encoder, tmp_path / "encoder"))
    before = tagger.predict(SENTENCES)
    tagger.save(tmp_path / "m")
    assert [p.tags for p in Tagger.load(tmp_path / "m").predict(SENTENCES)] == [p.tags for p in before]
    assert [len(p.tags) for p in before] == [len(words) for words in SENTENCES]
    assert transformers_tags(tmp_path / "m", SENTENCES[:2]) == [p.tags for p in before[:2]]
    again = Tagger.from_encoder(str(tmp_path / "encoder"), LABELS, max_length=32, overlap=8, seed=1).encoder.state_dict()
    first = tagger.encoder.state_dict()
    assert all(torch.equal(first[name], again[name]) for name in again), "what the checkpoint lacks must come from the seed"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_any_encoder_learns_the_words_in_use_alone(name: str, tiny_encoder: str, tmp_path: Path) -> None:
    tagger = random_tagger(saved_encoder(name, tiny_encoder, tmp_path / "encoder")).eval()
    windows = tagger.splitter.windows(SENTENCES)
    batch = collate(windows, list(range(len(windows))), tagger.pad_id, [[0] * len(words) for words in SENTENCES])
    table = tagger.encoder.model.get_input_embeddings()  # type: ignore[operator, union-attr]
    tagger.loss(batch).backward()
    whole, rows = table.weight.grad, batch.input_ids.unique()
    with trained_rows(tagger.encoder, rows):
        assert len(table.weight) < len(whole)
        tagger.loss(batch).backward()
        places = torch.searchsorted(torch.cat([rows, torch.tensor([tagger.pad_id, tagger.encoder.mask_id])]).unique(), rows)
        torch.testing.assert_close(table.weight.grad[places], whole[rows])


def test_shapes_of_input(tiny_encoder: str) -> None:
    tagger = random_tagger(tiny_encoder)
    assert tagger.predict("We play.").words == ("We", "play", ".")
    assert tagger.predict(["We", "play"]).words == ("We", "play")  # type: ignore[union-attr]
    assert tagger.predict(("We", "play it")).words == ("We", "play it")
    assert [p.words for p in tagger.predict(["We play", "hi"])] == [("We", "play"), ("hi",)]  # type: ignore[union-attr]
    assert [p.words for p in tagger.predict([["We"], ["hi"]])] == [("We",), ("hi",)]  # type: ignore[union-attr]
    assert tagger.predict(Sentence(("a",), id=7)).to_dict()["id"] == 7
    assert tagger.predict([]) == []
    assert tagger.predict("").tags == ()
    for bad in (3, None, [3], [["a", 3]], {"a": 1}):
        with pytest.raises(UsageError, match="a text"):
            tagger.predict(bad)  # type: ignore[call-overload]


def test_entities_and_offsets(tiny_encoder: str) -> None:
    tagger = random_tagger(tiny_encoder)
    text = "We play The Planets, in St. Gallen; at 3.5!"
    record = tagger.predict(text).to_dict()
    assert record["entities"]
    for entity in record["entities"]:
        assert text[entity["start_char"] : entity["end_char"]] == entity["text"]
        assert 0 < entity["confidence"] <= 1
    from_words = tagger.predict(["We", "play"]).to_dict()  # type: ignore[union-attr]
    assert all(entity["start_char"] is None for entity in from_words["entities"])


def test_predicting_streams(tiny_encoder: str) -> None:
    taken = 0

    def endless() -> Iterator[Sentence]:
        nonlocal taken
        while True:
            taken += 1
            yield Sentence(("We", "play"), id=taken)

    predictions = annotate(random_tagger(tiny_encoder), endless(), chunk=10)
    assert [next(predictions).sentence.id for _ in range(25)] == list(range(1, 26))
    assert taken == 30


def test_labels_are_o_then_begin_and_inside_of_each_type() -> None:
    assert labels_of([Sentence(("a", "b"), ("B-Y", "O")), Sentence(("a",), ("B-X",))]) == LABELS


def test_what_is_no_model(tmp_path: Path, tiny_encoder: str) -> None:
    with pytest.raises(UsageError, match="no model in"):
        Tagger.load(tmp_path)
    random_tagger(tiny_encoder).save(tmp_path / "run" / "model")
    with pytest.raises(UsageError, match=r"did you mean .*model"):
        Tagger.load(tmp_path / "run")
    model = transformers.AutoModelForTokenClassification.from_pretrained(tiny_encoder)
    model.save_pretrained(tmp_path / "other")
    with pytest.raises(SequstError, match="labels are not IOB2 tags: LABEL_0"):
        Tagger.load(tmp_path / "other")
    closed = {0: "O", 1: "S-X"}
    model = transformers.AutoModelForTokenClassification.from_pretrained(tiny_encoder, num_labels=2, id2label=closed)
    model.save_pretrained(tmp_path / "closed")
    with pytest.raises(SequstError, match="labels are not IOB2 tags: O, S-X"):
        Tagger.load(tmp_path / "closed")


def test_a_model_is_written_over_a_model_and_over_nothing_else(tiny_encoder: str, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("x")
    (tmp_path / "afile").write_text("y")
    tagger = random_tagger(tiny_encoder)
    with pytest.raises(UsageError, match=r"precious is not empty and has no sequst\.json, so it is not replaced"):
        tagger.save(tmp_path / "precious")
    with pytest.raises(UsageError, match="afile is a file; name a folder"):
        tagger.save(tmp_path / "afile")
    assert {path.name for path in tmp_path.rglob("*")} == {"afile", "precious", "thesis.txt"}
    random_tagger(tiny_encoder, head="crf").save(tmp_path / "m")
    tagger.save(tmp_path / "m")
    assert Tagger.load(tmp_path / "m").head.kind == "softmax"


def test_raw_tags_are_those_of_transformers_on_a_thousand_sentences(tiny_encoder: str, tmp_path: Path) -> None:
    """Whatever the tagger decodes with; those that IOB2 allows differ in many sentences."""
    tagger = random_tagger(tiny_encoder, valid=True)
    tagger.head.capitals = torch.randn(1 + len(WAYS), len(tagger.labels), generator=torch.Generator().manual_seed(3))
    tagger.save(tmp_path / "m")
    sentences = [list(sentence.words) for sentence in generate(pool=1000, test=1).pool]
    expected = transformers_tags(tmp_path / "m", sentences)
    found: Any = Tagger.load(tmp_path / "m", raw_tags=True).predict(sentences)
    assert [prediction.tags for prediction in found] == expected
    valid: Any = Tagger.load(tmp_path / "m").predict(sentences)
    assert sum(a.tags != b for a, b in zip(valid, expected, strict=True)) > 100
    random_tagger(tiny_encoder, head="crf").save(tmp_path / "crf")
    with pytest.raises(UsageError, match="it has no raw ones"):
        Tagger.load(tmp_path / "crf", raw_tags=True)


def test_a_tagger_remembers_that_its_tags_are_valid(tiny_encoder: str, tmp_path: Path) -> None:
    tagger = random_tagger(tiny_encoder, valid=True)
    tagger.save(tmp_path / "valid")
    loaded = Tagger.load(tmp_path / "valid")
    assert loaded.head.valid  # type: ignore[union-attr]
    found, raw = ([p.tags for p in each.predict(SENTENCES)] for each in (loaded, random_tagger(tiny_encoder)))
    for tags in found:
        for tag, following in itertools.pairwise(("O", *tags)):
            assert not following.startswith("I-") or tag[2:] == following[2:]
    assert found != raw


@pytest.mark.timeout(300)
def test_transformers_alone_gives_the_same_tags_to_a_thousand_sentences(tiny_encoder: str, tmp_path: Path) -> None:
    corpus = generate()
    known = [list(s.words) for s in [*corpus.pool, *corpus.test]]
    sentences = [*known, *(words[::-1] for words in known)][:1000]
    tagger = Tagger.from_encoder(tiny_encoder, LABELS, max_length=128, seed=1)
    with torch.no_grad():
        tagger.head.linear.weight.normal_(generator=torch.Generator().manual_seed(2))
    tagger.save(tmp_path / "m")
    own = [p.tags for p in tagger.predict(sentences)]  # type: ignore[union-attr]
    assert len(own) == 1000
    assert len({tag for tags in own for tag in tags}) > 3
    assert transformers_tags(tmp_path / "m", sentences) == own

    # its pipeline too, where no word has punctuation within
    pipe = transformers.pipeline("token-classification", str(tmp_path / "m"), aggregation_strategy="first")
    texts = [" ".join(words) for words in sentences if all(re.fullmatch(r"[A-Za-z]+|[.,?!]", word) for word in words)][:200]
    assert len(texts) > 100
    for text, prediction in zip(texts, tagger.predict([*texts]), strict=True):  # type: ignore[arg-type]
        ours = [(e["type"], e["start_char"], e["end_char"]) for e in prediction.to_dict()["entities"]]
        assert [(group["entity_group"], group["start"], group["end"]) for group in pipe(text)] == ours


def test_half_a_character_is_told(tiny_encoder: str) -> None:
    tagger = Tagger.from_encoder(tiny_encoder, ["O"])
    for inputs in (["a whole text", "half \ud800"], [["fine"], ["half", "\ud800"]]):
        with pytest.raises(UsageError, match="sentence 2: found half a character"):
            tagger.predict(inputs)
