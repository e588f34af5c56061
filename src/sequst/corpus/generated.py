"""A corpus of our own making, for the demo and the tests: messages to an assistant of a travelling orchestra.

Five types, hard on purpose. Values are shared between types (Jordan, Victoria and Florence are people and places; Mercury and
Orion are companies and works), so that only the phrasing tells them apart. Half of the values and a third of the phrasings of
the test set never occur in the pool. One sentence in five carries noise: lower case, a typing error in a word, a filler. Tags
are always right. The lists were written once and are not tuned to any method.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Span, tags_of

# (values of the pool, values that only the test set adds)
_VALUES: dict[str, tuple[list[str], list[str]]] = {
    "person": (
        ["Jordan", "Victoria", "Florence", "Anna Lindqvist", "Marek Dvorak", "Sofia", "Chelsea", "Diego Fuentes", "Ines",
         "Tom Becker", "Madison", "Priya Raman", "Austin", "Yuki Tanaka", "Carmen", "Ada Osei", "Paris Moreau",
         "Elena Petrova"],
        ["Sydney", "Georgia", "Lukas Brandt", "Noor Haddad", "Verona", "Mei Chen", "Jackson", "Brigitte Faure", "Kofi Mensah"],
    ),
    "place": (
        ["Jordan", "Victoria", "Florence", "Sofia", "Madison", "Austin", "Paris", "Lisbon", "Buenos Aires", "Oslo", "Kyoto",
         "New Haven", "Trieste", "Cape Town", "Lima", "St. Gallen", "Chelsea", "Ghent"],
        ["Sydney", "Georgia", "Verona", "Jackson", "Porto Alegre", "Bergen", "Osaka", "Salt Lake City", "Nantes"],
    ),
    "company": (
        ["Mercury", "Orion", "Delta Freight", "Lufthansa", "Blue Harbor Hotels", "Carmen", "Northwind", "Amazon",
         "Atlas Coaches", "Hilton", "Aurora", "Swift & Sons", "Apollo Tours", "Iberia", "Vega"],
        ["Titan", "Hermes Logistics", "Finnair", "Phoenix", "Rosewood", "Nordic Rail", "Juno", "Grand Budapest"],
    ),
    "work": (
        ["Carmen", "The Planets", "Mercury", "Orion", "La Mer", "Aurora", "The Firebird", "Egmont", "Don Giovanni", "Finlandia",
         "Symphony No. 5", "The Magic Flute", "Apollo", "Winter Journey", "Paris", "Rhapsody in Blue"],
        ["Phoenix", "Juno", "Titan", "Peer Gynt", "The Four Seasons", "Tosca", "Symphony No. 9", "Enigma Variations"],
    ),
    "date": (
        ["Friday", "tomorrow", "May 3", "next week", "the 12th of June", "tonight", "Monday morning", "August", "this weekend",
         "two weeks from now", "March 2024", "Sunday"],
        ["Thursday evening", "the day after tomorrow", "October 9", "in a fortnight", "New Year's Eve", "late July"],
    ),
}  # fmt: skip

# (phrasings of the pool, phrasings that only the test set adds); words are separated by spaces
_PHRASINGS: tuple[list[str], list[str]] = (
    [
        "{person} is flying to {place} {date} .",
        "Please book a room for {person} at {company} in {place} .",
        "We play {work} in {place} on {date} .",
        "Can {person} conduct {work} {date} ?",
        "{company} will carry the instruments from {place} to {place} .",
        "Tell {person} that {company} cancelled the bus .",
        "The rehearsal of {work} moved to {date} .",
        "How long is the drive to {place} ?",
        "{person} and {person} will share a taxi .",
        "Send the invoice of {company} to {person} .",
        "Is there a hall free in {place} {date} ?",
        "I would rather hear {work} than {work} .",
        "Ask {company} whether the truck reaches {place} by {date} .",
        "The scores of {work} are still with {person} .",
        "Nobody answered the phone this afternoon .",
        "The second violins need new stands .",
        "{person} lost a passport in {place} .",
        "Does {company} fly to {place} ?",
        "Who plays the solo in {work} ?",
        "{date} we rest , says {person} .",
        "Our contract with {company} ends {date} .",
        "Remind me {date} to call {person} about {work} .",
        "The audience in {place} loved {work} .",
        "All tickets are gone .",
    ],
    [
        "Did {person} ever perform {work} outside {place} ?",
        "{company} lost two cellos between {place} and {place} .",
        "For {date} , {person} suggests {work} instead .",
        "What does {company} charge for a night in {place} ?",
        "{work} , {date} , {place} : sold out !",
        "Forward this to {person} ( {company} ) .",
        "From {place} the choir travels on with {company} .",
        "Nothing on {date} yet , unless {person} agrees .",
        "{person} grew up near {place} .",
        "The parking lot was full again .",
    ],
)
_FILLERS = ["um", "please", "hey", "ok", "sorry ,", "so"]
_SLOT = re.compile(r"\{(\w+)\}")
_NOISE = 0.2

Words = tuple[str, ...]


@dataclass(frozen=True)
class Generated:
    """A pool for few-shot sets, and a test set with values and phrasings that the pool does not have."""

    pool: list[Sentence]
    test: list[Sentence]


def generate(seed: int = 12, pool: int = 600, test: int = 300) -> Generated:
    """The same seed gives the same corpus. No sentence of the pool is in the test set."""
    rng = random.Random(seed)
    drawn = [_draw(rng, unseen=False) for _ in range(pool)]
    known = {words for words, _ in drawn}
    unseen: list[tuple[Words, Words]] = []
    while len(unseen) < test:
        words, tags = _draw(rng, unseen=True)
        if words not in known:
            unseen.append((words, tags))
    parts = ([Sentence(words, tags, number) for number, (words, tags) in enumerate(part, 1)] for part in (drawn, unseen))
    return Generated(*parts)


def _draw(rng: random.Random, unseen: bool) -> tuple[Words, Words]:
    phrasing = rng.choice(_PHRASINGS[1] if unseen and rng.random() < 1 / 3 else _PHRASINGS[0])
    words: list[str] = []
    found: list[Span] = []
    for piece in phrasing.split():
        slot = _SLOT.fullmatch(piece)
        if slot is None:
            words.append(piece)
            continue
        known, new = _VALUES[slot[1]]
        value = rng.choice(new if unseen and rng.random() < 0.5 else known).split()
        found.append(Span(slot[1], len(words), len(words) + len(value)))
        words += value
    tags = tags_of(found, len(words))
    return _noisy(rng, words, tags) if rng.random() < _NOISE else (tuple(words), tags)


def _noisy(rng: random.Random, words: list[str], tags: Words) -> tuple[Words, Words]:
    kind = rng.randrange(3)
    if kind == 0:
        return tuple(word.lower() for word in words), tags
    if kind == 1:
        filler = rng.choice(_FILLERS).split()
        return (*filler, *words), ("O",) * len(filler) + tags
    at = rng.randrange(len(words))
    word = words[at]
    if len(word) > 3:
        cut = rng.randrange(1, len(word) - 1)
        word = word[:cut] + word[cut + 1] + word[cut] + word[cut + 2 :]  # two neighbouring letters change places
    return (*words[:at], word, *words[at + 1 :]), tags
