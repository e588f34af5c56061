"""Settings and recipes that somebody else wrote: a message within a second, and never more memory than the file takes."""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.errors import SequstError
from sequst.experiments.recipe import load_cells
from sequst.training.configure import describe, load_settings, parse_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(9 * [f'*{before}'])}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
VALUES = {
    "a day that is none": "2001-13-45",
    "a tag that does not fit": "!!int abc",
    "digits": "1" * 5000,
    "hexadecimal digits": "0x" + "f" * 5000,
    "brackets": "[" * 5000,
    "braces": "{a: " * 5000,
    "beyond a float": "1e999",
    "no number": ".nan",
    "infinite": "-.inf",
    "large": "1e308",
    "an alias of itself": "&a [*a]",
    "code": "!!python/object/apply:os.getpid []",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("item", describe(), ids=lambda item: item.name)
def test_no_setting_takes_it(item: object, value: str) -> None:
    name = item.name  # type: ignore[attr-defined]
    if isinstance(item.default, str) and value in ("1e999", ".nan", "-.inf", "1e308"):  # type: ignore[attr-defined]
        return  # a text may be anything
    with pytest.raises(SequstError, match=name) as caught:
        load_settings(None, [f"{name}={value}"])
    assert len(str(caught.value)) < 500


def test_a_text_that_no_path_is_as_long_as() -> None:
    with pytest.raises(SequstError, match=r"setting encoder='xxx.*must have at most 4,096 characters"):
        load_settings(None, [f"encoder={'x' * 4097}"])


def limited(path: Path) -> None:
    begun = time.monotonic()
    tracemalloc.start()
    try:
        for read in (lambda: load_settings(path), lambda: load_cells(str(path))):
            with pytest.raises(SequstError) as caught:
                read()
            assert len(str(caught.value)) < 1000
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("text", [BOMB, "seed: " + BOMB.replace("\n", "\n  ").replace("a: ", "\n  a: ", 1)])
def test_an_alias_bomb(text: str, tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(text)
    limited(tmp_path / "b.yaml")


def test_a_recipe_of_too_many_cells(tmp_path: Path) -> None:
    many = list(range(1, 1001))
    (tmp_path / "r.yaml").write_text(f"datasets: [conll03]\nmethods: [sst]\nseeds: {many}\nshots: {many}\npool: {many}\n")
    begun = time.monotonic()
    with pytest.raises(SequstError, match="1,000,000,000 cells"):
        load_cells(str(tmp_path / "r.yaml"))
    assert time.monotonic() - begun < 10


@given(st.text(max_size=200))
def test_any_text_is_settings_or_an_error(text: str) -> None:
    import yaml

    with contextlib.suppress(yaml.YAMLError):
        parse_yaml(text)
