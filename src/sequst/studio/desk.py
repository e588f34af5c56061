"""Which sentence each person gets next."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sequst.corpus.tags import Span
from sequst.studio.events import spans_of
from sequst.studio.project import Project
from sequst.studio.types import after

ANYBODY = "annotator"
"""The name of a person who gives none."""
LEASE = 600.0
"""Seconds that a sentence is kept for the tab that asked for it."""
AGREEMENT_EVERY = 3
"""At most one of so many sentences of a person is one that another person has labelled."""
NOTHING = "every sentence is labelled or skipped; add text to go on"
WHY_JUDGING = "Drawn at random to judge the model, so it comes without suggestions."
WHY_SECOND = "Another person labels it too, to measure how far you agree. It comes without suggestions."
WHY_RANDOM = "Drawn at random, because the next sentences have not been chosen yet."


@dataclass(frozen=True)
class Given:
    """A sentence for a person, and why."""

    sentence: int
    why: str
    suggestions: list[dict[str, Any]]
    second: bool = False


@dataclass
class _Lease:
    who: str
    tab: str
    given: Given
    until: float

    def is_of(self, who: str, tab: str) -> bool:
        """Whether it is of this tab. Somebody who gives a name keeps the sentence that is shown."""
        return self.tab == tab and (self.who == who or (tab != "" and self.who == ANYBODY))


class Desk:
    """Leases are in memory: after a restart a tab asks again."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._leases: dict[int, _Lease] = {}
        self._lock = threading.Lock()

    def next(self, who: str, tab: str) -> Given | None:
        """The sentence that the tab holds, or a new one for it; None where nothing is left."""
        with self._lock:
            self._expire()
            held = next((lease for lease in self._leases.values() if lease.is_of(who, tab)), None)
            if held is not None and self._is_open(held):
                held.who, held.until = who, time.monotonic() + LEASE
                return held.given
            self._release(who, tab)
            given = self._choose(who)
            if given is not None:
                self._leases[given.sentence] = _Lease(who, tab, given, time.monotonic() + LEASE)
            return given

    def take(self, who: str, tab: str, sentence: int) -> None:
        """Give this sentence to the tab, which goes back to it."""
        with self._lock:
            self._release(who, tab)
            row = self._project.row(sentence)
            why = WHY_JUDGING if row["judging"] else "You go back to it."
            given = Given(sentence, why, [], second=row["status"] != "raw")
            self._leases[sentence] = _Lease(who, tab, given, time.monotonic() + LEASE)

    def done(self, sentence: int) -> None:
        with self._lock:
            self._leases.pop(sentence, None)

    @property
    def people(self) -> set[str]:
        """Those who hold a sentence."""
        with self._lock:
            self._expire()
            return {lease.who for lease in self._leases.values()}

    def _expire(self) -> None:
        now = time.monotonic()
        self._leases = {id_: lease for id_, lease in self._leases.items() if lease.until > now}

    def _release(self, who: str, tab: str) -> None:
        self._leases = {id_: lease for id_, lease in self._leases.items() if not lease.is_of(who, tab)}

    def _is_open(self, lease: _Lease) -> bool:
        """Whether the person has not answered it since, say in another tab."""
        row = self._project.row(lease.given.sentence)
        return row["status"] == "raw" or (lease.given.second and row["who"] != lease.who)

    def _choose(self, who: str) -> Given | None:
        settings, counts, held = self._project.settings, self._project.counts(), set(self._leases)
        second = self._second(who, settings.agreement_share, held)
        if second is not None:
            return Given(second, WHY_SECOND, [], second=True)
        held_judging = sum(self._project.row(id_)["judging"] for id_ in held)
        answered = counts["labeled"] + len(held)
        if counts["judging"] + held_judging < settings.judging_share * (answered + 1):
            judging = self._project.draw_judging(held)
            if judging is not None:
                return Given(judging, WHY_JUDGING, [])
        return self._chosen(held) or self._random(held)

    def _chosen(self, held: Collection[int]) -> Given | None:
        """The first in the queue that nobody has or holds. A cross join lets SQLite begin with the queue."""
        rows = self._project.database.reading.execute(
            "SELECT queue.* FROM queue CROSS JOIN sentences ON sentences.id = queue.sentence"
            " WHERE status = 'raw' AND NOT judging ORDER BY place LIMIT ?",
            (len(held) + 1,),
        )
        for row in rows.fetchall():
            if row["sentence"] not in held:
                return Given(row["sentence"], row["why"], renamed(json.loads(row["suggestions"]), self._project, row["event"]))
        return None

    def _random(self, held: Collection[int]) -> Given | None:
        most = len(held) + 1
        for sentence in self._project.raw(most) or self._project.last_raw(most):
            if sentence.id not in held:
                assert isinstance(sentence.id, int)
                return Given(sentence.id, WHY_RANDOM, [])
        judging = self._project.draw_judging(held)  # those that were drawn and let go again
        return None if judging is None else Given(judging, WHY_JUDGING, [])

    def _second(self, who: str, share: float, held: Collection[int]) -> int | None:
        """A judging sentence that one other person has labelled, now and then."""
        reading = self._project.database.reading
        if reading.execute("SELECT 1 FROM answers WHERE who != ? AND who NOT LIKE 'file %' LIMIT 1", (who,)).fetchone() is None:
            return None
        total, shared = reading.execute(
            "SELECT count(*), coalesce(sum((SELECT count(*) FROM answers AS theirs WHERE theirs.sentence = mine.sentence"
            " AND theirs.kind = 'labels') > 1), 0) FROM answers AS mine WHERE mine.who = ? AND mine.kind = 'labels'",
            (who,),
        ).fetchone()
        if AGREEMENT_EVERY * (shared + 1) > total + 1:
            return None
        rows = reading.execute(
            "SELECT id, draw FROM sentences WHERE judging AND status = 'labels' AND who != ? AND who NOT LIKE 'file %'"
            " AND (SELECT count(*) FROM answers WHERE sentence = sentences.id) = 1 ORDER BY event",
            (who,),
        )
        wanted = (row["id"] for row in rows.fetchall() if row["draw"] % 1000 < 1000 * share and row["id"] not in held)
        return next(wanted, None)


def renamed(suggestions: list[list[Any]], project: Project, event: int) -> list[dict[str, Any]]:
    """What was suggested when the project stood at an event, with the names that types have now."""
    ops, names = project.since(event), {each.name for each in project.types()}
    told = []
    for type_, start, end, confidence in suggestions:
        for span in after([Span(type_, start, end)], ops):
            if span.type in names:
                told.append({**span._asdict(), "confidence": confidence})
    return told


def labels_of(entities: str | None) -> list[dict[str, Any]]:
    return [span._asdict() for span in spans_of(entities)]
