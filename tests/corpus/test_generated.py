from __future__ import annotations

from sequst.corpus.counts import count_types
from sequst.corpus.generated import generate
from sequst.corpus.tags import spans, violations


def test_the_same_seed_gives_the_same_corpus() -> None:
    assert generate(3) == generate(3)
    assert generate(3).pool != generate(4).pool


def test_tags_are_valid_and_every_type_is_there() -> None:
    generated = generate()
    for part in (generated.pool, generated.test):
        assert all(violations(s.tags or (), "IOB2") == [] for s in part)
        assert set(count_types(part).mentions) == {"person", "place", "company", "work", "date"}


def test_it_is_ambiguous_and_the_test_set_has_something_new() -> None:
    generated = generate()

    def values(part: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for sentence in getattr(generated, part):
            for span in spans(sentence.tags or ()):
                found.setdefault(sentence.excerpt(span.start, span.end), set()).add(span.type)
        return found

    pool, test = values("pool"), values("test")
    assert sum(len(types) > 1 for types in pool.values()) >= 10
    assert len(set(test) - set(pool)) >= 30
    assert not {s.words for s in generated.pool} & {s.words for s in generated.test}
