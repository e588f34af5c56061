"""spaCy's DocBin (.spacy): docs of tokens with entities. The tokens are the words, but for those of white space alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Loss, mark_of
from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.records import SEPARATORS, Ids, Malformed, Remark, is_small
from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.tags import spans
from sequst.errors import shorten
from sequst.extras import needed
from sequst.files import write_bytes
from sequst.inputs import Input, Report


def read_docbin(source: Input, tag_use: TagUse, report: Report, remark: Remark) -> Iterator[Annotated]:
    tokens, vocab = needed("spacy.tokens", "spacy"), needed("spacy.vocab", "spacy").Vocab()
    try:
        docs = list(tokens.DocBin().from_bytes(source.data(report)).get_docs(vocab))
    except Exception as error:  # damaged data ends in many kinds of error
        found = f"no DocBin ({type(error).__name__}: {shorten(str(error))})"
        report(Source(source.name, 1, unit="record").problem(found, "a whole file of spaCy 3, as DocBin.to_disk writes it"))
        return
    ids = Ids()
    for ordinal, doc in enumerate(docs, 1):
        place = Source(source.name, ordinal, unit="record")
        try:
            yield _record(doc, tag_use, ordinal, place, ids)
        except Malformed as bad:
            report(place.problem(bad.found, bad.expected))


def _record(doc: Any, tag_use: TagUse, ordinal: int, place: Source, ids: Ids) -> Annotated:
    id_ = ids.of(doc.user_data.get("id"), ordinal, place)
    words = tuple((token.idx, token.idx + len(token.text)) for token in doc if token.text.strip())
    for start, end in words:
        if SEPARATORS.search(doc.text[start:end]):
            raise Malformed(f"token {shorten(doc.text[start:end])}", "tokens without tabs and line ends in them")
    if tag_use == "ignored":
        return Annotated(doc.text, None, id_, place, words)
    losses = [
        Loss(f"{span.label_} {shorten(span.text)} of the span group {group}", "left out")
        for group, members in doc.spans.items()
        for span in members
    ]
    if not doc.has_annotation("ENT_IOB"):
        return Annotated(doc.text, None, id_, place, words, tuple(losses))
    marks = tuple(mark_of(doc.text, entity.start_char, entity.end_char, entity.label_) for entity in doc.ents)
    unknown = sum(not token.ent_iob_ for token in doc)
    if unknown:
        losses.append(Loss(f"{unknown} tokens whose entity is unknown", "read as no entity"))
    return Annotated(doc.text, marks, id_, place, words, tuple(losses))


def docbin_bytes(sentences: Sequence[Sentence]) -> bytes:
    tokens, vocab = needed("spacy.tokens", "spacy"), needed("spacy.vocab", "spacy").Vocab()
    docs = tokens.DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True)
    for sentence in sentences:
        docs.add(_doc(sentence, tokens, vocab))
    data: bytes = docs.to_bytes()
    return data


def _doc(sentence: Sentence, tokens: Any, vocab: Any) -> Any:
    """The words, and a token for every white space between them but a single space, which belongs to the word before it."""
    text, offsets = sentence.as_text()
    words: list[str] = []
    spaces: list[bool] = []
    places: list[int] = []  # of every word among the tokens
    at = 0
    for start, end in (*offsets, (len(text), len(text))):
        between = text[at:start]
        if between and words:
            spaces[-1] = between[0] == " "
            between = between.removeprefix(" ")
        if between:
            words.append(between)
            spaces.append(False)
        if start < end:
            places.append(len(words))
            words.append(text[start:end])
            spaces.append(False)
        at = end
    doc = tokens.Doc(vocab, words=words, spaces=spaces)
    if sentence.id is not None:
        doc.user_data["id"] = sentence.id if is_small(sentence.id) else str(sentence.id)
    if sentence.tags is not None:
        found = spans(sentence.tags)
        doc.set_ents([tokens.Span(doc, places[s.start], places[s.end - 1] + 1, label=s.type) for s in found])
    return doc


def write_docbin(path: Path, sentences: Sequence[Sentence]) -> None:
    write_bytes(path, docbin_bytes(sentences), "nothing half-written was left behind")
