"""An experiment as a recipe: lists of datasets, methods, encoders, heads, shots and seeds, whose product are its cells."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePath
from typing import Any, Literal

import yaml

from sequst.errors import UsageError, nearest, said, shorten
from sequst.experiments.cells import Cell
from sequst.experiments.results import read_results
from sequst.files import as_path
from sequst.inputs import read_text
from sequst.methods.registry import find_method
from sequst.training.configure import parse_yaml
from sequst.training.configure import recipe_names as settings_names

MOST_CELLS = 100_000
SEEDS = (12, 21, 42, 87, 100)
"""Those of the paper."""


@dataclass(frozen=True)
class Recipe:
    """What to run. Settings are overrides as `train --set` takes them; a method ignores those that it has no use for."""

    name: str
    about: str = ""
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("finetune",)
    encoders: tuple[str, ...] = ("bert-base-uncased",)
    heads: tuple[str, ...] = ("softmax",)
    shots: tuple[int | None, ...] = (10,)
    """None, in YAML `all`, is all of the training set."""
    seeds: tuple[int, ...] = SEEDS
    pool: tuple[int | None, ...] = (None,)
    """Caps on the unlabelled sentences, each the same for all methods that learn from any."""
    base: str = "default"
    """Settings to begin with, by their name."""
    settings: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("default",)
    """Every cell is run with each: `default`, or further settings, separated by spaces."""
    score_on: Literal["test", "pool"] = "test"

    def cells(self) -> list[Cell]:
        """Seeds vary slowest, so that what is done early says something of everything. With all of the training set no sentence
        is left unlabelled, so methods that learn from those have no such cell; and of variants that come to the same settings,
        a method has one."""
        lists = self.seeds, self.shots, self.datasets, self.methods, self.encoders, self.heads, self.pool, self.variants
        if (count := math.prod(map(len, lists))) > MOST_CELLS:
            raise UsageError(f"{self.name}: its lists make {count:,} cells; at most {MOST_CELLS:,}")
        rows = itertools.product(*lists)
        cells = [self._cell(*row) for row in rows if row[1] is not None or not find_method(row[3]).unlabeled]
        if len(self.variants) > 1 or len(self.pool) > 1:
            cells = list({cell.key: cell for cell in reversed(cells)}.values())[::-1]
        return cells

    def _cell(
        self, seed: int, shots: int | None, dataset: str, method: str, encoder: str, head: str, pool: int | None, variant: str
    ) -> Cell:
        recipe = _joined([self.base, *self.settings, variant])
        pool = pool if find_method(method).unlabeled else None
        return Cell(self.name, dataset, seed, method, recipe, encoder, head, shots, pool, self.score_on)


def _joined(settings: Iterable[str]) -> str:
    return " ".join(each for each in settings if each != "default") or "default"


def load_cells(name: str, override: Sequence[str] = (), **choices: Sequence[Any] | None) -> list[Cell]:
    """The cells of a recipe, by its name or from a YAML file, or those that a file of results has lines of.

    `choices` (datasets, methods, encoders, heads, seeds) stand in place of a recipe's lists where there are any, and
    `override` on top of its settings. Of a file of results they choose the cells to run again; lines know an encoder by its
    folder's name.
    """
    chosen: dict[str, Any] = {key: tuple(values) for key, values in choices.items() if values}
    _require_own_settings(override)
    if name.endswith(".jsonl"):
        cells = _cells_again(as_path(name), **chosen)
    else:
        cells = dataclasses.replace(load_recipe(name), **chosen).cells()
        if not cells:
            raise UsageError(f"{name}: its methods learn from unlabelled sentences, and with all shots none are left")
    return [dataclasses.replace(cell, recipe=_joined([cell.recipe, *override])) for cell in cells]


def _cells_again(path: Path, encoders: Sequence[str] = (), **chosen: Sequence[Any]) -> list[Cell]:
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    folders = {PurePath(encoder).name: encoder for encoder in encoders}
    known = {item.name for item in dataclasses.fields(Cell)}
    cells = []
    for line in read_results(path):
        experiment, _, score_on = line["experiment"].partition("@")
        facts = {name: value for name, value in line.items() if name in known}
        facts |= {"experiment": experiment, "score_on": score_on or "test"}
        facts["encoder"] = folders.get(line["encoder"], line["encoder"])
        wanted = all(facts[key.removesuffix("s")] in values for key, values in chosen.items())
        if wanted and (not encoders or facts["encoder"] in encoders):
            cells.append(Cell(**facts))
    if not cells:
        raise UsageError(f"{path}: it has no line of such a cell")
    return cells


def recipe_names() -> list[str]:
    return sorted(PurePath(item.name).stem for item in resources.files("sequst.experiments").joinpath("recipes").iterdir())


def load_recipe(name: str) -> Recipe:
    """By its name among the shipped ones, or from a YAML file."""
    known = [item.name for item in dataclasses.fields(Recipe) if item.name != "name"]
    path = as_path(name)
    if name in recipe_names():
        path = Path(str(resources.files("sequst.experiments").joinpath(f"recipes/{name}.yaml")))
    elif path.suffix not in (".yaml", ".yml"):
        raise UsageError(f"unknown recipe {name!r}; {nearest(name, recipe_names())}, or name a .yaml file")
    try:
        tree = parse_yaml(read_text(path))
        if not isinstance(tree, dict):
            raise UsageError(f"found {shorten(tree)}; expected names and values, e.g. `datasets: [conll03]`")
        for key in tree:
            if key not in known:
                raise UsageError(f"unknown {shorten(key)}; {nearest(str(key), known)}")
        recipe = Recipe(path.stem, **{key: _value(key, value) for key, value in tree.items()})
        _require_sound(recipe)
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid YAML ({said(error)})") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return recipe


def _require_sound(recipe: Recipe) -> None:
    """Whatever is wrong with its methods and settings is said now."""
    if not recipe.datasets:
        raise UsageError("it names no datasets")
    _require_own_settings([*recipe.settings, *" ".join(recipe.variants).split()])
    for method in recipe.methods:
        find_method(method)
    for cell in {(cell.recipe, cell.method): cell for cell in recipe.cells()}.values():
        cell.settings()


def _require_own_settings(overrides: Iterable[str]) -> None:
    """A cell's own facts have their own place, or its line would say something else than was run."""
    for override in overrides:
        name = override.partition("=")[0]
        if name in ("method", "encoder", "head", "seed", "device"):
            raise UsageError(f"{override[:60]}: a recipe has its {name}s, and the command line --{name}, for that")
        if " " in override:
            raise UsageError(f"{shorten(override)}: a setting of an experiment cannot hold a space")


_CHOICES = {"base": ["default", *settings_names()], "score_on": ["test", "pool"]}


def _value(key: str, value: Any) -> Any:
    """The value of a key of a recipe; a list of one item may stand without brackets."""
    if key == "about" and not isinstance(value, str):
        raise UsageError(f"about must be a text; found {shorten(value)}")
    if key in _CHOICES and value not in _CHOICES[key]:
        raise UsageError(f"{key} {shorten(value)} is none of {', '.join(_CHOICES[key])}")
    return value if key == "about" or key in _CHOICES else _items(key, value)


def _items(key: str, value: Any) -> tuple[Any, ...]:
    """`all` of shots and pool is None."""
    items = value if isinstance(value, list) else [value]
    if key in ("shots", "pool"):
        what, good = "whole numbers above 0, or all", [item == "all" or (type(item) is int and item > 0) for item in items]
        items = [None if item == "all" else item for item in items]
    elif key == "seeds":
        what, good = "whole numbers", [type(item) is int for item in items]
    else:
        what, good = "texts", [isinstance(item, str) for item in items]
    if not items or not all(good):
        raise UsageError(f"{key} must be a list of {what}; found {shorten(value)}")
    return tuple(items)
