"""The data of a run: files, formats, and what training may see."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sequst.corpus.counts import count_types
from sequst.corpus.formats.detect import open_input
from sequst.corpus.formats.read import read_file
from sequst.corpus.formats.registry import TagUse, place_and_split
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError
from sequst.evaluation.evaluate import unknown_types
from sequst.files import require_regular
from sequst.training.seeds import derive
from sequst.training.settings import Settings


@dataclass(frozen=True)
class DataFile:
    """A file and how to read it. `sha256` is set when a run begins, so that resuming it notices changed data; `shown` is the
    name for messages where it is not the path."""

    path: str
    format: str = "auto"
    word_column: int | None = None
    tag_column: int | None = None
    sha256: str = ""
    shown: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether its values are of the types that they must be: run.json may be damaged."""
        columns = (self.word_column, self.tag_column)
        texts = (self.path, self.format, self.sha256, self.shown)
        return all(isinstance(text, str) for text in texts) and all(type(column) in (int, type(None)) for column in columns)

    def read(self, tag_use: TagUse) -> tuple[list[Sentence], list[str]]:
        """(sentences, how the file was read)."""
        reading = read_file(
            self.path,
            format=self.format,
            tag_use=tag_use,
            word_column=self.word_column,
            tag_column=self.tag_column,
            name=self.shown or None,
        )
        return reading.require(), reading.notes

    def located(self, root: Path) -> DataFile:
        """The same file with a path that holds everywhere; a relative one is taken from `root`."""
        return dataclasses.replace(self, path=str((root / self.path).absolute()))

    def stamped(self) -> DataFile:
        return dataclasses.replace(self, sha256=_hash_of(place_and_split(self.path)[0]))


def _hash_of(path: Path) -> str:
    """The sha256 of a file; for a folder, that of the names and hashes of its files."""
    if path.is_dir():
        files = sorted(place for place in path.rglob("*") if place.is_file())
        listed = "".join(f"{file.relative_to(path)} {_hash_of(file)}\n" for file in files)
        return hashlib.sha256(os.fsencode(listed)).hexdigest()
    require_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Files = dict[str, DataFile]
"""The files of a run by role: labeled, unlabeled, dev, test."""


Tags = tuple[str, ...] | None


class Pool(NamedTuple):
    """Unlabelled sentences, and the tags that their file has for them: for diagnosis only."""

    sentences: Sequence[Sentence]
    tags: Sequence[Tags]


@dataclass(frozen=True)
class Data:
    """The data that training sees. The test set is read at the end."""

    labeled: list[Sentence]
    dev: list[Sentence]
    unlabeled: list[Sentence]
    hidden_tags: list[Tags]
    """Tags of the unlabelled file, if it has any: for diagnosis only."""
    dev_policy: str
    """Description of the dev set: where it comes from and what it decides."""
    readings: list[str]
    """How every file was read."""
    notes: list[str]

    def pool(self, round_: int, size: int) -> Pool:
        """The unlabelled sentences of a round: all, or the next `size` of them, from the first again after the last."""
        count = len(self.unlabeled)
        if not 0 < size < count:
            return Pool(self.unlabeled, self.hidden_tags)
        places = [place % count for place in range((round_ - 1) * size, round_ * size)]
        return Pool([self.unlabeled[i] for i in places], [self.hidden_tags[i] for i in places])


def load_data(files: Files, settings: Settings) -> Data:
    """Read and check everything but the test file, of which only the existence is checked."""
    _require_one_dev_set(files, settings)
    parts: dict[str, list[Sentence]] = {}
    notes: list[str] = []
    readings: list[str] = []
    for role, file in files.items():
        if role == "test":
            open_input(file.path, format=file.format)
        else:
            parts[role], told = file.read("hidden" if role == "unlabeled" else "required")
            readings += told
    name = files["labeled"].shown or files["labeled"].path
    labeled, marked, of_marked = _without_marked(name, parts["labeled"], settings.learn_judging)
    labeled, dev, policy = _with_dev_set(labeled, parts.get("dev", []), files.get("dev"), settings)
    if marked:
        policy = f"{of_marked}, and {policy}" if dev else f"{of_marked}; the best weights on them are kept"
        known = {sentence.words for sentence in dev}
        dev = [*dev, *(sentence for sentence in marked if sentence.words not in known)]
    _require_entities(name, labeled)
    for type_ in unknown_types(count_types(labeled).mentions, (s.tags or () for s in dev)):
        notes.append(f"type {type_} is in the dev set but never labelled: it cannot be learnt, and counts as missed")
    way_out = DROP if "dev" in files else "--dev-shots leaves copies of a sentence out"
    notes += overlap_warning(labeled, dev, f"dev set too: it chooses badly which weights to keep; {way_out}")
    pool = parts.get("unlabeled", [])
    unlabeled, hidden = [sentence.without_tags() for sentence in pool], [sentence.tags for sentence in pool]
    return Data(labeled, dev, unlabeled, hidden, policy, readings, notes)


def _require_one_dev_set(files: Files, settings: Settings) -> None:
    asked = {"--dev": "dev" in files, "--dev-fraction": settings.dev_fraction > 0, "--dev-shots": settings.dev_shots > 0}
    if sum(asked.values()) > 1:
        both = " and ".join(flag for flag, given in asked.items() if given)
        raise UsageError(f"{both} exclude each other; use one of them")


def _without_marked(name: str, labeled: list[Sentence], learn: bool) -> tuple[list[Sentence], list[Sentence], str]:
    """(what may be learnt, the sentences marked for judging, what to say of these). Copies of a marked one are not learnt."""
    marked = [] if learn else [sentence for sentence in labeled if sentence.judging]
    words = {sentence.words for sentence in marked}
    kept = [sentence for sentence in labeled if sentence.words not in words]
    if not kept:
        raise SequstError(
            f"{name}: every labelled sentence is marked for judging, so none is left to learn from; label others, or use "
            "--set learn_judging=true"
        )
    copies = len(labeled) - len(kept) - len(marked)
    told = f"{len(marked)} sentence{'s' * (len(marked) > 1)} marked for judging"
    return kept, marked, told + (f", {copies} more with the same words left out" if copies else "")


def _with_dev_set(
    labeled: list[Sentence], dev: list[Sentence], file: DataFile | None, settings: Settings
) -> tuple[list[Sentence], list[Sentence], str]:
    """(what is left to learn from, dev set, policy)."""
    if settings.dev_fraction > 0:
        return _set_aside(labeled, settings.dev_fraction, settings.seed)
    if settings.dev_shots > 0:
        return _draw_shots(labeled, settings.dev_shots, settings.seed)
    if file is None:
        return labeled, dev, "none; the weights of the last step are kept"
    return labeled, dev, f"{len(dev)} sentences of {file.shown or Path(file.path).name}; the best weights on it are kept"


def _require_entities(name: str, labeled: Sequence[Sentence]) -> None:
    if not any(tag != "O" for sentence in labeled for tag in sentence.tags or ()):
        raise SequstError(
            f"{name}: no entity at all, every tag of the sentences to learn from is O; label some entities before training"
        )


DROP = "sequst check --drop-overlap --output DIR leaves them out of the labelled file"


def overlap_warning(labeled: Sequence[Sentence], others: Sequence[Sentence], what: str) -> list[str]:
    """A warning that ends with `what` if labelled sentences are among the others."""
    words = {sentence.words for sentence in others}
    count = sum(sentence.words in words for sentence in labeled)
    return [f"warning: {count} of the {len(labeled)} labelled sentences are in the {what}"] if count else []


def _draw_shots(labeled: list[Sentence], shots: int, seed: int) -> tuple[list[Sentence], list[Sentence], str]:
    """(what is left to learn from, dev set, policy): K sentences of every type, and never more than half of a type's."""
    from sequst.corpus.sampling import sample_dev

    places, short = sample_dev(labeled, shots, derive(seed, "dev"))
    if not places:
        raise SequstError(f"--dev-shots {shots}: no type has a second labelled sentence to set aside; leave it out")
    dev = [labeled[i] for i in places]
    drawn = {sentence.words for sentence in dev}
    kept = [sentence for sentence in labeled if sentence.words not in drawn]
    policy = f"{len(dev)} of the {len(labeled)} labelled sentences, {shots} of every type"
    policy += f" (fewer of {', '.join(short)})" if short else ""
    copies = len(labeled) - len(kept) - len(dev)
    policy += f", {copies} more with the same words left out" if copies else ""
    return kept, dev, f"{policy}, drawn with seed {seed}; the best weights on it are kept"


def _set_aside(labeled: list[Sentence], share: float, seed: int) -> tuple[list[Sentence], list[Sentence], str]:
    if len(labeled) < 2:
        raise SequstError("--dev-fraction needs at least two labelled sentences; leave it out to train without a dev set")
    count = min(max(1, round(share * len(labeled))), len(labeled) - 1)
    chosen = set(random.Random(derive(seed, "dev")).sample(range(len(labeled)), count))
    policy = f"{share:.0%} of the labelled sentences, {count} of {len(labeled)}, drawn with seed {seed}"
    kept = [sentence for i, sentence in enumerate(labeled) if i not in chosen]
    return kept, [labeled[i] for i in sorted(chosen)], f"{policy}; the best weights on it are kept"
