"""Sentences of a corpus that are too long for one window, and words that the tokenizer drops."""

from __future__ import annotations

from collections.abc import Mapping

from sequst.corpus.checking import Finding
from sequst.corpus.formats.read import Reading
from sequst.tagger.encoders.pretrained import load_tokenizer
from sequst.tagger.encoders.shape import BILSTM
from sequst.tagger.encoders.vocabulary import Vocabulary, WordSplitter
from sequst.tagger.windows import Splitter, SubwordSplitter


def check_coverage(readings: Mapping[str, Reading], encoder: str, max_length: int) -> list[Finding]:
    splitter: Splitter
    if encoder == BILSTM:
        unit, splitter = "words", WordSplitter(Vocabulary([], []), max_length, overlap=0)
    else:
        unit, splitter = "sub-words", SubwordSplitter(load_tokenizer(encoder), max_length, overlap=0)
    findings = []
    for reading in readings.values():
        split: list[str] = []
        silent: list[str] = []
        for sentence, words in zip(reading.sentences, splitter.subwords([s.words for s in reading.sentences]), strict=True):
            if sum(map(len, words)) > splitter.room:
                split.append(str(sentence.source))
            silent += [f"{sentence.source} {word!r}" for word, pieces in zip(sentence.words, words, strict=True) if not pieces]
        if split:
            told = f"{len(split)} sentences are longer than {max_length} {unit} and will be split, e.g. {split[0]}"
            findings.append(Finding("note", "length", f"{reading.name}: {told}"))
        if silent:
            told = f"{encoder} has no sub-word for {len(silent)} words, which are read as unknown, e.g. {silent[0]}"
            findings.append(Finding("warning", "no-subword", f"{reading.name}: {told}"))
    return findings
