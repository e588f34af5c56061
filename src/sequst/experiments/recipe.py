"""An experiment as a recipe: lists of datasets, methods, encoders, heads, shots and seeds, whose product are its cells."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path, PurePath
from typing import Any, Literal

import yaml

from sequst.errors import UsageError, nearest, shorten
from sequst.experiments.cells import Cell
from sequst.experiments.results import ON_REQUEST, key_of, read_findings, read_results
from sequst.methods.registry import find_method
from sequst.training.configure import parse_yaml
from sequst.training.configure import recipe_names as settings_names

SEEDS = (12, 21, 42, 87, 100)
"""Those of the paper."""


@dataclass(frozen=True)
class Recipe:
    """What to run. Settings are overrides as `train --set` takes them."""

    name: str
    about: str = ""
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("finetune",)
    encoders: tuple[str, ...] = ("bert-base-uncased",)
    heads: tuple[str, ...] = ("softmax",)
    shots: tuple[int | None, ...] = (10,)
    """None, in YAML `all`, is all of the training set."""
    seeds: tuple[int, ...] = SEEDS
    sampler: str = "sentences"
    pool: tuple[int | None, ...] = (None,)
    """Caps on the unlabelled sentences, each the same for all methods that learn from any."""
    base: str = "best"
    """Settings to begin with, by their name."""
    settings: tuple[str, ...] = ()
    settings_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further ones for a method or an encoder, by its name."""
    variants: tuple[str, ...] = ("default",)
    """Every cell is run with each: `default`, or further settings, separated by spaces."""
    score_on: Literal["test", "pool", "dev"] = "test"
    draws: int = 0
    """Random draws of the space for every method; 0 for none."""
    space: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    """What to keep of every cell beside its findings: `cases`, `words`."""

    def cells(self) -> list[Cell]:
        """Seeds and draws vary slowest, so that what is done early says something of everything. With all of the training set
        no sentence is left unlabelled, so methods that learn from those have no such cell; and of variants that come to the
        same settings, a method has one."""
        rows = itertools.product(
            range(max(1, self.draws)), self.seeds, self.shots, self.datasets, self.methods, self.encoders, self.heads,
            self.pool, self.variants,
        )  # fmt: skip
        cells = [self._cell(*row) for row in rows if row[2] is not None or not find_method(row[4]).unlabeled]
        if self.draws or len(self.variants) > 1 or len(self.pool) > 1:
            cells = list({_sameness(cell): cell for cell in reversed(cells)}.values())[::-1]
        return cells

    def _cell(
        self, draw: int, seed: int, shots: int | None, dataset: str, method: str, encoder: str, head: str, pool: int | None,
        variant: str,
    ) -> Cell:  # fmt: skip
        learns = find_method(method).unlabeled
        settings = [*self.settings, *self.settings_of.get(method, ()), *self.settings_of.get(encoder, ())]
        settings += [] if variant == "default" else variant.split()
        if self.draws:
            rng = random.Random(f"{self.name} {method} {draw}")
            settings += [f"{name}={rng.choice(values)}" for name, values in self.space.items()]
        return Cell(
            self.name, dataset, seed, method, " ".join(self._begun + settings) or "default", encoder, head, shots, self.sampler,
            pool if learns else None, self.score_on, self.keep,
        )  # fmt: skip

    @property
    def _begun(self) -> list[str]:
        return [] if self.base == "best" else [self.base]

    def narrowed(self, **choices: Any) -> Recipe:
        """The same with these lists in place of its own, where they are not empty."""
        return dataclasses.replace(self, **{name: values for name, values in choices.items() if values})


def load_cells(name: str, override: Sequence[str] = (), **choices: Sequence[Any]) -> list[Cell]:
    """The cells of a recipe, by its name or from a YAML file, or those that a file of results has lines of.

    `choices` (datasets, methods, encoders, heads, seeds) stand in place of a recipe's lists where they are not empty, and
    `override` on top of its settings. Of a file of results they choose the cells to run again; lines know an encoder by its
    folder's name.
    """
    chosen = {key: tuple(values) for key, values in choices.items() if values}
    _require_own_settings(override)
    if name.endswith(".jsonl"):
        cells = _cells_again(Path(name), **chosen)
    else:
        recipe = load_recipe(name)
        cells = recipe.narrowed(**chosen).cells()
        if not cells:
            raise UsageError(f"{name}: its methods learn from unlabelled sentences, and with all shots none are left")
    return [_overridden(cell, override) for cell in cells]


def _overridden(cell: Cell, override: Sequence[str]) -> Cell:
    """With these settings on top of its own."""
    return dataclasses.replace(cell, recipe=" ".join([cell.recipe.removeprefix("default"), *override]).strip() or "default")


def _sameness(cell: Cell) -> tuple[Any, ...]:
    """Equal for cells that would be the same run."""
    return (*dataclasses.astuple(dataclasses.replace(cell, recipe="")), cell.settings_hash)


def _cells_again(path: Path, encoders: Sequence[str] = (), **chosen: Sequence[Any]) -> list[Cell]:
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    folders = {PurePath(encoder).name: encoder for encoder in encoders}
    kept = {kind: {key_of(line) for line in read_findings(path, kind)} for kind in ON_REQUEST}
    cells = [
        dataclasses.replace(_cell_of(line, folders), keep=tuple(kind for kind in ON_REQUEST if key_of(line) in kept[kind]))
        for line in read_results(path)
    ]
    cells = [cell for cell in cells if all(getattr(cell, key.removesuffix("s")) in chosen[key] for key in chosen)]
    cells = [cell for cell in cells if not encoders or cell.encoder in encoders]
    if not cells:
        raise UsageError(f"{path}: it has no line of such a cell")
    return cells


def _cell_of(line: Mapping[str, Any], encoders: Mapping[str, str]) -> Cell:
    """The cell that a line of results is of."""
    known = {item.name for item in dataclasses.fields(Cell)}
    facts = {name: value for name, value in line.items() if name in known}
    experiment, _, score_on = line["experiment"].partition("@")
    encoder = encoders.get(line["encoder"], line["encoder"])
    return Cell(**{**facts, "experiment": experiment, "score_on": score_on or "test", "encoder": encoder})


def recipe_names() -> list[str]:
    folder = resources.files("sequst.experiments").joinpath("recipes")
    return sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))


def load_recipe(name: str) -> Recipe:
    """By its name among the shipped ones, or from a YAML file."""
    if name in recipe_names():
        text = resources.files("sequst.experiments").joinpath(f"recipes/{name}.yaml").read_text(encoding="utf-8")
        return _parse(name, text, f"recipe {name}")
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(f"unknown recipe {name!r}; {nearest(name, recipe_names())}, or name a .yaml file")
    try:
        return _parse(path.stem, path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


_LISTS = {
    "datasets": str, "methods": str, "encoders": str, "heads": str, "shots": int, "seeds": int, "settings": str, "keep": str,
    "variants": str, "pool": int,
}  # fmt: skip
_CHOICES = {
    "heads": ("softmax", "crf"), "sampler": ("sentences", "mentions"), "score_on": ("test", "pool", "dev"),
    "keep": ON_REQUEST,
}  # fmt: skip


def _parse(name: str, text: str, where: str) -> Recipe:
    try:
        tree = parse_yaml(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{where}: not valid YAML ({' '.join(str(error).split())[:200]})") from None
    if not isinstance(tree, dict):
        raise UsageError(f"{where}: found {shorten(tree)}; expected names and values, e.g. `datasets: [conll03]`")
    known = [item.name for item in dataclasses.fields(Recipe) if item.name != "name"]
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if key not in known:
            raise UsageError(f"{where}: unknown {key!r}; {nearest(str(key), known)}")
        values[key] = _value(key, value, where)
    recipe = Recipe(name, **values)
    if not recipe.datasets:
        raise UsageError(f"{where}: it names no datasets")
    if bool(recipe.draws) != bool(recipe.space):
        raise UsageError(f"{where}: draws need a space to draw from, and a space needs draws")
    strangers = [given for given in recipe.settings_of if given not in (*recipe.methods, *recipe.encoders)]
    if strangers:
        close = nearest(strangers[0], (*recipe.methods, *recipe.encoders))
        raise UsageError(f"{where}: settings_of {strangers[0]!r}, which is none of its methods and encoders; {close}")
    try:
        _require_own_settings([*recipe.settings, *itertools.chain(*recipe.settings_of.values()), *recipe.space])
        _require_own_settings(itertools.chain(*map(str.split, recipe.variants)))
        for method in recipe.methods:
            find_method(method)
        for cell in {cell.recipe + cell.method: cell for cell in recipe.cells()}.values():
            cell.settings()  # whatever is wrong with an override is said now
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return recipe


def _require_own_settings(overrides: Iterable[str]) -> None:
    """A cell's own facts have their own place, or its line would say something else than was run."""
    for override in overrides:
        if override.partition("=")[0] in ("method", "encoder", "head", "seed", "device"):
            name = override.partition("=")[0]
            raise UsageError(f"{override}: a recipe has its {name}s, and the command line --{name}, for that")
        if " " in override:
            raise UsageError(f"{shorten(override)}: a setting of an experiment cannot hold a space")


def _value(key: str, value: Any, where: str) -> Any:
    if key in _LISTS:
        return _list(key, value, where)
    if key in ("settings_of", "space"):
        return _lists_by_name(key, value, where)
    if key == "about" and not isinstance(value, str):
        raise UsageError(f"{where}: about must be a text; found {shorten(value)}")
    if key == "draws" and (type(value) is not int or value < 1):
        raise UsageError(f"{where}: draws must be a whole number above 0; found {shorten(value)}")
    choices = settings_names() if key == "base" else _CHOICES.get(key)
    if choices is not None and value not in choices:
        raise UsageError(f"{where}: {key} {shorten(value)} is none of {', '.join(choices)}")
    return value


def _list(key: str, value: Any, where: str) -> tuple[Any, ...]:
    """The items of a list; one item may stand without brackets. `all` of shots and pool is None."""
    items = value if isinstance(value, list) else [value]
    has_all = key in ("shots", "pool")
    given = [item for item in items if not (has_all and item == "all")]
    kind = "whole numbers, or all" if has_all else "whole numbers" if _LISTS[key] is int else "texts"
    if not items or any(type(item) is not _LISTS[key] for item in given):
        raise UsageError(f"{where}: {key} must be a list of {kind}; found {shorten(value)}")
    if has_all and any(item < 1 for item in given):
        raise UsageError(f"{where}: {key} must be whole numbers above 0, or all; found {shorten(value)}")
    strange = [item for item in given if item not in _CHOICES.get(key, given)]
    if strange:
        raise UsageError(f"{where}: {key} {strange[0]!r} is none of {', '.join(_CHOICES[key])}")
    return tuple(None if has_all and item == "all" else item for item in items)


def _lists_by_name(key: str, value: Any, where: str) -> dict[str, tuple[Any, ...]]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: {key} must be names with lists; found {shorten(value)}")
    lists = {str(name): tuple(items if isinstance(items, list) else [items]) for name, items in value.items()}
    kinds, what = ((str,), "settings") if key == "settings_of" else ((str, int, float), "values")
    for name, members in lists.items():
        if not members or not all(isinstance(item, kinds) for item in members):
            raise UsageError(f"{where}: {key} of {name} must be a list of {what}")
    return lists
