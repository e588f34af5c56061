from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sequst import files
from sequst.errors import SequstError, UsageError
from sequst.files import _host, atomic_folder, atomic_text, write_bytes


def test_a_folder_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with atomic_folder(tmp_path / "model") as folder:
        (folder / "weights").write_text("old")

    rename = Path.rename

    def refuse(self: Path, target: Path) -> None:
        if self.name.endswith(".tmp"):
            raise OSError(5, "Input/output error")
        rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(SequstError, match="Input/output error"), atomic_folder(tmp_path / "model", ("weights",)) as folder:
        (folder / "weights").write_text("new")
    assert (tmp_path / "model" / "weights").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_a_killed_process_moved_aside_is_put_back(tmp_path: Path) -> None:
    dead = 2**22 + 1  # above the highest process number
    (tmp_path / f".model.{_host()}.{dead}.old").mkdir()
    (tmp_path / f".model.{_host()}.{dead}.old" / "weights").write_text("old")
    (tmp_path / f".model.{_host()}.{dead}.tmp").mkdir()
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "model", replaces=("weights",)):
        raise RuntimeError
    assert (tmp_path / "model" / "weights").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_leftovers_of_the_same_number_and_of_other_machines(tmp_path: Path) -> None:
    (tmp_path / f".model.{_host()}.{os.getpid()}.tmp").mkdir()  # an earlier life, as happens in containers
    (tmp_path / ".model.elsewhere.99.tmp").mkdir()
    with atomic_folder(tmp_path / "model") as folder:
        (folder / "weights").write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.elsewhere.99.tmp", "model"]


def test_a_folder_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "precious").write_text("x")
    with pytest.raises(SequstError, match="not empty"), atomic_folder(tmp_path / "taken"):
        pass
    assert (tmp_path / "taken" / "precious").read_text() == "x"


def test_only_an_empty_folder_or_a_marked_one_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("x")
    (tmp_path / "afile").write_text("y")
    (tmp_path / "link").symlink_to(tmp_path / "afile")
    for name, told in (("precious", "is not empty and has no mark"), ("afile", "is a file"), ("link", "is a file")):
        with pytest.raises(UsageError, match=told), atomic_folder(tmp_path / name, replaces=("mark",)):
            pytest.fail("it is told before the work")
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "x"
    assert (tmp_path / "afile").read_text() == "y"
    (tmp_path / "model").mkdir()
    (tmp_path / "latest").symlink_to("model")
    for name in ("model", "latest", "model"):
        with atomic_folder(tmp_path / name, replaces=("mark",)) as folder:
            (folder / "mark").write_text(name)
        assert (tmp_path / "model" / "mark").read_text() == name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["afile", "latest", "link", "model", "precious"]


def test_what_is_put_there_meanwhile_is_kept(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.txt").write_text("x")
    with pytest.raises(UsageError, match="is not empty"), atomic_folder(tmp_path / "model", replaces=("mark",)):
        shutil.copytree(tmp_path / "theirs", tmp_path / "model")
    assert (tmp_path / "model" / "thesis.txt").read_text() == "x"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "theirs"]


def test_a_text_file_that_breaks_off_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError), atomic_text(tmp_path / "a.txt") as file:
        file.write("half a character: \ud800")
    assert list(tmp_path.iterdir()) == []


def test_what_is_thrown_away_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    files.write_bytes(tmp_path / "a", b"1", "")
    assert len(synced) == 1
    with files.unsynced():
        files.write_bytes(tmp_path / "b", b"2", "")
        files.write_json(tmp_path / "c", {})
    assert len(synced) == 1
    assert (tmp_path / "b").read_bytes() == b"2"
    files.write_bytes(tmp_path / "a", b"3", "")
    assert len(synced) == 2


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a.txt").write_text("old")
    for target in ("far/a.txt", "far/new.txt", str(tmp_path / "far" / "b.txt")):
        (tmp_path / "link").symlink_to(target)
        write_bytes(tmp_path / "link", b"new", "")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / target).read_text() == "new"
        (tmp_path / "link").unlink()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(SequstError, match=r"cannot write .*loop"):
        write_bytes(tmp_path / "loop", b"new", "")
    assert sorted(path.name for path in (tmp_path / "far").iterdir()) == ["a.txt", "b.txt", "new.txt"]


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of living ones stay, and so does what only has the name."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    hold = (
        "from sequst.files import Scratch; kept = Scratch(); open(kept.name + '/a', 'w'); print(kept.name, flush=True); input()"
    )
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    options["env"] = {**os.environ, "TMPDIR": str(tmp_path)}
    one, other = (subprocess.Popen([sys.executable, "-c", hold], **options) for _ in range(2))
    folders = [Path(str(process.stdout and process.stdout.readline().strip())) for process in (one, other)]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a").touch()
    (tmp_path / "sequst-scratch-link").symlink_to(tmp_path / "mine")
    (tmp_path / "sequst-scratch-file").touch()
    (tmp_path / "sequst-demo").mkdir()
    os.mkfifo(tmp_path / "sequst-scratch-pipe")
    one.kill()
    one.wait()
    with files.Scratch() as name:
        assert not folders[0].exists()
        assert (folders[1] / "a").exists()
        with files.Scratch():
            assert Path(name).exists()
    other.communicate("\n")
    kept = {"mine", "sequst-scratch-link", "sequst-scratch-file", "sequst-scratch-pipe", "sequst-demo"}
    assert {path.name for path in tmp_path.iterdir()} == kept
    assert (tmp_path / "mine" / "a").exists()


def test_a_temporary_folder_that_is_removed_before_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may clear between the two."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept, removed = files._lock_folder, list[str]()

    def lock_late(folder: files.Scratch) -> None:
        if not removed:
            removed.append(folder.name)
            files._clear_scratch()
        kept(folder)

    monkeypatch.setattr(files, "_lock_folder", lock_late)
    with files.Scratch() as name:
        assert name not in removed
        files._clear_scratch()
        assert Path(name).exists()
    assert list(tmp_path.iterdir()) == []
