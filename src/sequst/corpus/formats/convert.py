"""Convert between formats. What the target cannot hold is listed, and dropped or changed only on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sequst.corpus.formats.annotated import Misfit, recut
from sequst.corpus.formats.brat import ids_as_names
from sequst.corpus.formats.columns import no_columns
from sequst.corpus.formats.detect import Guess, guess_output
from sequst.corpus.formats.read import Reading, read_file
from sequst.corpus.formats.registry import CUT, FORMATS, MARKS, OTHER_CUT
from sequst.corpus.formats.write import write_sentences
from sequst.corpus.sentence import LINE_BREAKS, Sentence, Source, require_short
from sequst.corpus.tags import spans
from sequst.corpus.words import split_words
from sequst.errors import Malformed, SequstError, UsageError, shorten
from sequst.files import require_free, require_writable


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion, with what did not fit."""

    reading: Reading
    path: Path
    written: Guess
    sentences: list[Sentence]
    misfits: list[Misfit]

    @property
    def left_out(self) -> dict[str, list[Sentence]]:
        """What the format has no place for, and the sentences that have it."""
        given = self.reading.sentences
        own_cut = [sentence for sentence in given if not sentence.is_cut_by_rule()]
        named = self.written.format == "brat" and self.path.suffix != ".ann" and ids_as_names(self.sentences)
        found = {
            "ids": [] if named else [sentence for number, sentence in enumerate(given, 1) if sentence.id != number],
            "tags": [sentence for sentence in given if sentence.tags is not None],
            "texts": [sentence for sentence in given if sentence.text is not None],
            CUT: own_cut,
            OTHER_CUT: [sentence for sentence in own_cut if sentence.text is not None],
            MARKS: [sentence for sentence in given if sentence.judging],
        }
        return {name: found[name] for name in FORMATS[self.written.format].lacks if found[name]}


def convert(
    source: str | Path,
    target: str | Path,
    *,
    from_: str = "auto",
    to: str = "auto",
    on_conflict: str = "error",
    word_column: int | None = None,
    tag_column: int | None = None,
) -> Conversion:
    """Read a file of any format and write it in another. Nothing is written where something is malformed, or does not fit and
    `on_conflict` is error; the error lists every such place."""
    path, written = Path(target), guess_output(target, to)
    _require_place(path, written.format, Path(source))
    reading = read_file(
        source, format=from_, tag_use="optional", word_column=word_column, tag_column=tag_column, on_conflict=on_conflict
    )
    misfits: list[Misfit] = []
    sentences = list(_held(reading.sentences, written.format, path, on_conflict == "trim", misfits.append))
    bad = [str(problem) for problem in reading.problems]
    if on_conflict == "error":
        bad += [str(misfit._replace(done="not written; see --on-conflict")) for misfit in misfits]
    if bad:
        raise SequstError("\n".join([f"nothing was written, because of {len(bad)} place{'s' * (len(bad) > 1)}:", *bad]))
    if not sentences:
        raise SequstError(f"{reading.name}: no sentence to write (read as {reading.guess})")
    write_sentences(path, written.format, sentences)
    return Conversion(reading, path, written, sentences, [*reading.misfits, *misfits])


def _require_place(path: Path, format: str, source: Path) -> None:
    """Raise an error if the output cannot be written there."""
    if path.suffix == ".gz" and format in ("spacy", "datasets", "brat"):
        raise UsageError(f"the output {path}: {format} is not written compressed; name it {path.with_suffix('')}")
    if FORMATS[format].in_folder and path.suffix not in FORMATS[format].endings:
        require_free(path, "the output")
        return
    text = source.with_suffix(".txt") if source.suffix == ".ann" else source
    require_writable(path, "the output", read=[source, text])
    if format == "brat" and path.with_suffix(".txt").exists():
        raise UsageError(f"the output {path} comes with {path.with_suffix('.txt').name}, which is there already; name another")


def _held(sentences: list[Sentence], format: str, path: Path, trim: bool, lost: Callable[[Misfit], None]) -> Iterator[Sentence]:
    """The sentences as the format can hold them, so that its reader takes all of them."""
    some_tagged = format == "conll" and any(sentence.tags is not None for sentence in sentences)
    one_document = format == "brat" and path.suffix == ".ann"
    number, ids = 0, Counter(sentence.id for sentence in sentences if FORMATS[format].unique_ids)
    for sentence in sentences:
        place, text = sentence.source or Source(str(path), 1), sentence.as_text()[0]
        why_not = no_columns(sentence.words, sentence.tags is not None) if format == "conll" else ""
        if some_tagged and sentence.tags is None:
            why_not = "no tags, where other sentences have some"
        changes: list[tuple[str, str]] = []
        if format not in ("conll", "jsonl", "datasets"):
            why_not, sentence, changes = _as_text(sentence, format, trim)
        if one_document and sentence.tags is None:
            why_not = "no tags, which a document with annotations cannot tell from no entities"
        if why_not:
            lost(Misfit(place, text, why_not, "left out"))
            continue
        number += 1
        if ids[sentence.id] > 1:
            # the reader gives it this number again, which nobody may have meant as an id
            if sentence.id != number:
                changes.append((f"the id {shorten(sentence.id)}, which another sentence has too", "written without id"))
            ids[sentence.id] -= 1
            sentence = replace(sentence, id=None)
        for what, done in changes:
            lost(Misfit(place, text, what, done))
        yield sentence


def _as_text(sentence: Sentence, format: str, trim: bool) -> tuple[str, Sentence, list[tuple[str, str]]]:
    """(why a text with marks cannot hold the sentence, or the sentence that it holds, and what was changed for it)."""
    text, own = sentence.as_text()
    offsets = tuple(split_words(text) if CUT in FORMATS[format].lacks else (word for word in own if text[slice(*word)].strip()))
    try:
        require_short(text[start:end] for start, end in offsets)
    except Malformed as bad:
        return bad.found, sentence, []
    blank = [word for word in sentence.words if not word.strip()]
    if not offsets:
        return "no words but white space", sentence, []
    changes = [(f"the word {shorten(word)}, which is white space", "dropped") for word in blank]
    if format == "text":
        entities = len(spans(sentence.tags or ()))
        if entities:
            changes.append((f"{entities} entit{'ies' if entities > 1 else 'y'}, which plain text cannot hold", "dropped"))
        sentence = sentence.without_tags()
    sentence, misfits = recut(sentence, offsets, trim)
    if format in ("text", "brat") and (line := text.translate(LINE_BREAKS)) != text:
        misfits.append(("a line break in the text", "written as a space"))
        sentence = replace(sentence, text=line)
    return "", sentence, changes + misfits
