"""From one format into another. What the other cannot hold is listed, and dropped or changed only where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sequst.corpus.formats.annotated import Lost, Misfit, Policy
from sequst.corpus.formats.columns import DOCUMENT_START
from sequst.corpus.formats.detect import Format, Guess, guess_output
from sequst.corpus.formats.read import Reading, read_file
from sequst.corpus.formats.write import is_cut_by_rule, write_sentences
from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.tags import spans
from sequst.errors import SequstError, UsageError
from sequst.files import require_free, require_writable

_CUT = "words as they were cut"
_NO_PLACE: dict[Format, tuple[str, ...]] = {
    "conll": ("ids", "texts"), "datasets": ("texts",), "text": ("ids", _CUT), "brat": (_CUT,), "labelstudio": (_CUT,),
    "doccano": (_CUT,), "argilla": (_CUT,), "jsonl": ("texts of words that we would cut in another way",),
}  # fmt: skip
"""What formats of words, of texts or of lines do not hold."""
_LINE_BREAKS = str.maketrans("\r\n", "  ")


@dataclass(frozen=True)
class Conversion:
    """What was read, what it was written as, and what of it did not fit."""

    reading: Reading
    written: Guess
    sentences: list[Sentence]
    misfits: list[Misfit]

    @property
    def entities(self) -> int:
        return sum(len(spans(sentence.tags or ())) for sentence in self.sentences)

    @property
    def left_out(self) -> str:
        """What sentences have and the format has no place for, in words; empty where that is nothing."""
        given = {
            "ids": any(sentence.id != number for number, sentence in enumerate(self.reading.sentences, 1)),
            "texts": any(sentence.text is not None for sentence in self.sentences),
            "words as they were cut": not all(map(is_cut_by_rule, self.sentences)),
            "texts of words that we would cut in another way": any(
                sentence.text is not None and not is_cut_by_rule(sentence) for sentence in self.sentences
            ),
        }
        return " and ".join(name for name in _NO_PLACE.get(self.written.format, ()) if given[name])


def convert(
    source: str | Path,
    target: str | Path,
    *,
    from_: str = "auto",
    to: str = "auto",
    on_conflict: Policy = "error",
    word_column: int | None = None,
    tag_column: int | None = None,
) -> Conversion:
    """Read a file of any format and write it in another. Nothing is written where something is malformed, or does not fit and
    `on_conflict` is error; the error lists every such place."""
    written = guess_output(target, to)
    path = Path(target)
    _require_place(path, written.format, source)
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


def _require_place(path: Path, format: Format, source: str | Path) -> None:
    """An error now where the output cannot be put there."""
    if path.suffix == ".gz" and format in ("spacy", "datasets", "brat"):
        raise UsageError(f"the output {path}: {format} is not written compressed; name it {path.with_suffix('')}")
    is_folder = (format == "brat" and path.suffix != ".ann") or (format == "datasets" and path.suffix != ".parquet")
    if is_folder:
        require_free(path, "the output")
        return
    both = [Path(source).with_suffix(suffix) for suffix in (".ann", ".txt")] if Path(source).suffix == ".ann" else []
    require_writable(path, "the output", read=[source, *both])
    if format == "brat" and path.with_suffix(".txt").exists():
        raise UsageError(f"the output {path} comes with {path.with_suffix('.txt').name}, which is there already; name another")


def _held(sentences: list[Sentence], format: Format, path: Path, lost: Lost) -> Iterator[Sentence]:
    """The sentences as the format can hold them."""
    # in columns, and in one document of BRAT, either every sentence is tagged or none
    together = format == "conll" or (format == "brat" and path.suffix == ".ann")
    some_tagged = together and any(sentence.tags is not None for sentence in sentences)
    for sentence in sentences:
        place, text = sentence.source or Source(str(path), 1), sentence.as_text()[0]
        if some_tagged and sentence.tags is None:
            lost(Misfit(place, text, "no tags, where other sentences have some", "left out"))
            continue
        if format == "conll" and DOCUMENT_START in sentence.words:
            lost(Misfit(place, text, f"the word {DOCUMENT_START}, which columns set between documents", "left out"))
            continue
        entities = len(spans(sentence.tags or ()))
        if format == "text" and entities:
            lost(
                Misfit(
                    place, text, f"{entities} entit{'ies' if entities > 1 else 'y'}, which plain text cannot hold", "dropped"
                )
            )
        if format in ("text", "brat") and text.translate(_LINE_BREAKS) != text:
            lost(Misfit(place, text, "a line break in the text", "written as a space"))
            sentence = replace(sentence, text=text.translate(_LINE_BREAKS))
        yield sentence
