"""Convert between formats. What the target cannot hold is listed, and dropped or changed only on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sequst.corpus.formats.annotated import Misfit
from sequst.corpus.formats.columns import DOCUMENT_START
from sequst.corpus.formats.detect import Guess, guess_output
from sequst.corpus.formats.read import Reading, read_file
from sequst.corpus.formats.registry import CUT, FORMATS, OTHER_CUT
from sequst.corpus.formats.write import write_sentences
from sequst.corpus.sentence import LINE_BREAKS, Sentence, Source
from sequst.corpus.tags import spans
from sequst.errors import SequstError, UsageError
from sequst.files import require_free, require_writable


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion, with what did not fit."""

    reading: Reading
    written: Guess
    sentences: list[Sentence]
    misfits: list[Misfit]

    @property
    def left_out(self) -> str:
        """What the format has no place for, in words; empty if nothing."""
        own_cut = [sentence for sentence in self.sentences if not sentence.is_cut_by_rule()]
        given = {
            "ids": any(sentence.id != number for number, sentence in enumerate(self.reading.sentences, 1)),
            "texts": any(sentence.text is not None for sentence in self.sentences),
            CUT: bool(own_cut),
            OTHER_CUT: any(sentence.text is not None for sentence in own_cut),
        }
        return " and ".join(name for name in FORMATS[self.written.format].lacks if given[name])


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
    sentences = list(_held(reading.sentences, written.format, path, misfits.append))
    bad = [str(problem) for problem in reading.problems]
    if on_conflict == "error":
        bad += [str(misfit._replace(done="not written; see --on-conflict")) for misfit in misfits]
    if bad:
        raise SequstError("\n".join([f"nothing was written, because of {len(bad)} place{'s' * (len(bad) > 1)}:", *bad]))
    if not sentences:
        raise SequstError(f"{reading.name}: no sentence to write (read as {reading.guess})")
    write_sentences(path, written.format, sentences)
    return Conversion(reading, written, sentences, [*reading.misfits, *misfits])


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


def _held(sentences: list[Sentence], format: str, path: Path, lost: Callable[[Misfit], None]) -> Iterator[Sentence]:
    """The sentences, changed so that the format can hold them."""
    # in columns, and in one document of BRAT, either every sentence is tagged or none
    together = format == "conll" or (format == "brat" and path.suffix == ".ann")
    some_tagged = together and any(sentence.tags is not None for sentence in sentences)
    for sentence in sentences:
        place, text = sentence.source or Source(str(path), 1), sentence.as_text()[0]
        if some_tagged and sentence.tags is None:
            lost(Misfit(place, text, "no tags, where other sentences have some", "left out"))
        elif format == "conll" and DOCUMENT_START in sentence.words:
            lost(Misfit(place, text, f"the word {DOCUMENT_START}, which columns set between documents", "left out"))
        elif format in ("text", "brat"):
            yield _on_a_line(sentence, place, text, format, lost)
        else:
            yield sentence


def _on_a_line(sentence: Sentence, place: Source, text: str, format: str, lost: Callable[[Misfit], None]) -> Sentence:
    """The sentence without line breaks."""
    entities = len(spans(sentence.tags or ()))
    if format == "text" and entities:
        what = f"{entities} entit{'ies' if entities > 1 else 'y'}, which plain text cannot hold"
        lost(Misfit(place, text, what, "dropped"))
    line = text.translate(LINE_BREAKS)
    if line == text:
        return sentence
    lost(Misfit(place, text, "a line break in the text", "written as a space"))
    return replace(sentence, text=line)
