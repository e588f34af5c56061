"""spaCy's DocBin (.spacy): docs of tokens with entities. Words are the tokens, without those of white space."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sequst import inputs
from sequst.corpus.formats.annotated import Annotated, Lost, Mark, marks_of, sentences_of, words_of
from sequst.corpus.formats.records import each, is_for_judging, is_small, mark_of, numbered
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Offsets, Sentence, Source
from sequst.errors import Malformed, SequstError, shorten
from sequst.extras import needed
from sequst.files import write_bytes


def read(request: Request) -> Iterator[Sentence]:
    tokens, vocab = needed("spacy.tokens", "spacy"), needed("spacy.vocab", "spacy").Vocab()
    docs: list[Any] = []
    data = request.source.data(request.report)
    try:
        inputs.require_small(request.source.name, len(zlib.decompressobj().decompress(data, inputs.LARGEST_WHOLE + 1)))
        docs += tokens.DocBin().from_bytes(data).get_docs(vocab)
    except SequstError:
        raise
    except Exception as error:  # damaged data ends in many kinds of error
        found = f"no DocBin ({type(error).__name__}: {shorten(str(error))})"
        expected = "a whole file of spaCy 3, as DocBin.to_disk writes it"
        request.report(Source(request.source.name, 1, unit="record").problem(found, expected))
    read = functools.partial(_whole_record, with_tags=request.with_tags)
    return sentences_of(each(numbered(request.source, docs), read, request.report), request)


def _whole_record(doc: Any, *_: Any, with_tags: bool) -> Annotated:
    try:
        return _record(doc, with_tags)
    except Malformed:
        raise
    except Exception as error:  # spaCy looks at what a doc holds when it is asked for it
        raise Malformed(f"a doc that spaCy cannot read ({shorten(str(error))})", "docs with valid entities and spans") from None


def _record(doc: Any, with_tags: bool) -> Annotated:
    id_, words = doc.user_data.get("id"), words_of(doc.text, [(token.idx, token.idx + len(token.text)) for token in doc])
    judging = is_for_judging(doc.user_data)
    if not with_tags:
        return Annotated(doc.text, id_, words, judging=judging)
    lost = [
        Lost(f"{span.label_} {shorten(span.text)} of the span group {group}")
        for group, members in doc.spans.items()
        for span in members
    ]
    if not doc.has_annotation("ENT_IOB"):
        return Annotated(doc.text, id_, words, lost=lost, judging=judging)
    unknown = sum(not token.ent_iob_ for token in doc)
    if unknown:
        lost.append(Lost(f"{unknown} tokens whose entity is unknown", "read as no entity"))
    marks = [Mark(entity.start_char, entity.end_char, entity.label_) for entity in doc.ents]
    return Annotated(doc.text, id_, words, [marks], lost, judging=judging)


def write(path: Path, sentences: Sequence[Sentence]) -> None:
    """The words are tokens, and so is white space between them but a single space, which belongs to the word before it."""
    tokens, vocab = needed("spacy.tokens", "spacy"), needed("spacy.vocab", "spacy").Vocab()
    docs = tokens.DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True)
    for sentence in sentences:
        text, marks = marks_of(sentence)
        words, spaces = _tokens(text, sentence.as_text()[1])
        doc = tokens.Doc(vocab, words=words, spaces=spaces)
        if sentence.id is not None:
            doc.user_data["id"] = sentence.id if is_small(sentence.id) else str(sentence.id)
        doc.user_data |= mark_of(sentence)
        if sentence.tags is not None:
            doc.set_ents([doc.char_span(mark.start, mark.end, label=mark.type) for mark in marks])
        docs.add(doc)
    write_bytes(path, docs.to_bytes(), "nothing half-written was left behind")


def _tokens(text: str, offsets: Offsets) -> tuple[list[str], list[bool]]:
    """(tokens, whether a space follows each)."""
    words: list[str] = []
    spaces: list[bool] = []
    at = 0
    for start, end in (*offsets, (len(text), len(text))):
        between = text[at:start]
        if words and between.startswith(" "):
            spaces[-1], between = True, between[1:]
        for token in filter(None, (between, text[start:end])):
            words.append(token)
            spaces.append(False)
        at = end
    return words, spaces
