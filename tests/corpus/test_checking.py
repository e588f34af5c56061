from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sequst.corpus.checking import Finding, check, drop_overlap, without_overlap, write_readings
from sequst.corpus.formats.read import read, read_file

Write = Callable[..., Path]


def kinds(findings: list[Finding], level: str) -> set[str]:
    return {finding.kind for finding in findings if finding.level == level}


def test_clean_data_has_no_error(write: Write) -> None:
    rows = "".join(f"w{i} B-X\nv{i} O\n\n" for i in range(6))
    findings = check({"labeled": read_file(write("l.conll", rows))})
    assert {finding.level for finding in findings} == {"note"}
    assert any("6 sentences, 12 words, 6 entities of 1 types" in finding.message for finding in findings)


def test_marks_for_judging_are_counted_and_kept(write: Write, tmp_path: Path) -> None:
    lines = ['{"words": ["a"], "tags": ["B-X"], "judging": true}', '{"words": ["b"], "tags": ["B-X"]}']
    readings = {
        "labeled": read_file(write("l.jsonl", "\n".join(lines))), "dev": read_file(write("d.jsonl", lines[1])),
    }  # fmt: skip
    assert any("2 entities of 1 types, 1 sentences marked for judging" in finding.message for finding in check(readings))
    write_readings(without_overlap(readings)[0], tmp_path / "clean")
    assert [(s.words, s.judging) for s in read(tmp_path / "clean" / "labeled.jsonl")] == [(("a",), True)]


def test_every_kind_of_finding(write: Write) -> None:
    long_span = "a B-X\n" + "b I-X\n" * 11
    labeled = write("l.conll", f"{long_span}\n. B-Y\n\nsame B-X\n\nsame O\n\nsame O\n\nshared B-X\n")
    dev = write("d.conll", "shared B-X\n\nnew B-NEW\n")
    findings = check({"labeled": read_file(labeled), "dev": read_file(dev)})
    messages = "\n".join(finding.message for finding in findings)
    assert kinds(findings, "warning") == {"few", "span", "duplicates", "unknown-type", "overlap"}
    assert "type Y has 1 example only" in messages
    assert "1 entities longer than 10 words" in messages
    assert "without a letter or digit" in messages
    assert f"{labeled}:16 and {labeled}:18" in messages  # tagged differently
    assert "2 of 6 sentences repeat another" in messages
    assert "type NEW (1 entities) is never labelled" in messages
    assert "1 sentences of labeled are in dev too" in messages


def test_errors(write: Write) -> None:
    malformed = check({"labeled": read_file(write("m.conll", "a B-X\n\nb\n\nc Y\n"))})
    assert [f.kind for f in malformed if f.level == "error"] == ["malformed", "malformed"]
    assert kinds(check({"labeled": read_file(write("o.conll", "a O\n"))}), "error") == {"no-entity"}
    assert kinds(check({"labeled": read_file(write("e.conll", ""))}), "error") == {"empty"}


def test_overlap_is_dropped_from_the_less_protected_file(write: Write, tmp_path: Path) -> None:
    readings = {
        "labeled": read_file(write("l.conll", "a B-X\n\nb B-X\n\nc B-X\n")),
        "unlabeled": read_file(write("u.conll", "a\n\nd\n\nb\n"), tag_use="optional"),
        "dev": read_file(write("d.conll", "b B-X\n\nc B-X\n")),
        "test": read_file(write("t.conll", "c B-X\n")),
    }
    kept, dropped = drop_overlap({role: reading.sentences for role, reading in readings.items()})
    assert {role: ["".join(s.words) for s in part] for role, part in kept.items()} == {
        "test": ["c"], "dev": ["b"], "labeled": ["a"], "unlabeled": ["d"],
    }  # fmt: skip
    gone = [("dev", "test"), ("labeled", "dev"), ("labeled", "test"), ("unlabeled", "labeled"), ("unlabeled", "dev")]
    assert dropped == dict.fromkeys(gone, 1)
    clean, findings = without_overlap(readings)
    assert "1 sentences of unlabeled left out: dev has them too" in [finding.message for finding in findings]
    write_readings(clean, tmp_path / "clean")
    assert [s.words for s in read(tmp_path / "clean" / "labeled.jsonl")] == [("a",)]
