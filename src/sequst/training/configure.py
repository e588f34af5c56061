"""Read settings from YAML, override them, describe and write them."""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import functools
import inspect
import itertools
import sys
import textwrap
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from sequst.errors import SequstError, UsageError, nearest, said, shorten
from sequst.files import as_path, atomic_text
from sequst.inputs import read_text
from sequst.training.settings import Settings, to_dict

EFFORTS = ("quick", "default", "thorough")


def recipe_names() -> list[str]:
    """Named settings: `paper`, and the efforts but the default."""
    return sorted(Path(item.name).stem for item in resources.files("sequst.training").joinpath("recipes").iterdir())


def load_settings(
    path: str | Path | None = None, overrides: Sequence[str] = (), *, effort: str | None = None, **flags: Any
) -> Settings:
    """Settings from the defaults, an effort, a YAML file or named settings, `a.b=value` overrides, and flags that are not None;
    later ones win."""
    import yaml

    if effort is not None and str(path) in recipe_names():
        raise UsageError(f"--settings {path} and --effort {effort} decide the same settings; leave one of them out")
    tree: dict[str, Any] = _read_yaml(path) if path is not None else {}
    if effort is not None:
        tree = layered(of_effort(effort), tree)
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {shorten(override)}: write it as name=value, e.g. --set teacher.epochs=10")
        try:
            value = text if text == "-" else parse_yaml(text)  # a list of nothing, to YAML
        except yaml.YAMLError:
            raise UsageError(f"--set {shorten(override)}: the value is not valid YAML") from None
        _put(tree, name.split("."), value, f"--set {name}")
    for name, value in flags.items():
        if value is not None:
            tree[name] = value
    return from_dict(tree, f"settings file {path}" if path is not None else "settings")


def from_dict(tree: Mapping[str, Any], where: str = "settings") -> Settings:
    """Settings from nested mappings; an unknown key or a value of the wrong type is an error that names it."""
    built = _build(Settings(), tree, "", where)
    assert isinstance(built, Settings)
    return built


def load_saved(path: Path) -> Settings:
    """The settings that a run has saved, all of them."""
    tree, where = _read_yaml(path), f"settings file {path}"
    try:
        settings = from_dict(tree, where)
    except UsageError as error:  # a value out of its range does not know its file
        raise UsageError(str(error) if where in str(error) else f"{where}: {error}") from None
    if missing := set(flatten(settings)) - {name for name, _ in leaves(tree)}:
        raise SequstError(f"{path} is damaged: it has no {min(missing)}; begin a new run")
    return settings


def from_model(tree: Mapping[str, Any], where: str) -> Settings:
    """The settings that a model was trained with; settings that no longer exist are left out."""
    kept = {name: value for name, value in leaves(tree) if replaced(name) is None}
    return from_dict(nested(kept), where)


def of_effort(effort: str) -> dict[str, Any]:
    """What an effort sets; every name that any effort sets, so that it takes the place of another."""
    if effort not in EFFORTS:
        raise UsageError(f"unknown effort {shorten(effort)}; it must be one of {', '.join(EFFORTS)}")
    trees = {name: _read_yaml(name) for name in EFFORTS if name != "default"}
    defaults = flatten(Settings())
    return layered({name: defaults[name] for tree in trees.values() for name, _ in leaves(tree)}, trees.get(effort, {}))


def layered(*trees: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of several trees as one; later trees win."""
    return nested({name: value for tree in trees for name, value in leaves(tree)})


def nested(settings: Mapping[str, Any], where: str = "settings") -> dict[str, Any]:
    """Settings whose names may be dotted, as nested mappings that `from_dict` takes; the later of two wins."""
    tree: dict[str, Any] = {}
    for name, value in leaves(settings):
        _put(tree, name.split("."), value, f"{where}: {name}")
    return tree


def leaves(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested settings with its dotted name."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def dump(settings: Settings) -> str:
    """YAML that `load_settings` reads."""
    import yaml

    return str(yaml.safe_dump(to_dict(settings), sort_keys=False, allow_unicode=True))


def save_settings(settings: Settings, path: Path) -> None:
    with atomic_text(path) as file:
        file.write(dump(settings))


def parse_yaml(text: str) -> Any:
    """Like yaml.safe_load, but a duplicate key is an error."""
    return copy.deepcopy(_parsed(text))


_DEEPEST, _MOST = 20, 100_000
"""Levels of nested values in settings and recipes, and values in all."""


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> Any:
    """Cached: the cells of a grid share most settings, and parsing YAML is slow."""
    import yaml

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            """A few aliases can stand for more values than memory holds, so values are counted as aliases repeat them."""
            line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            if self.depth == _DEEPEST:
                raise yaml.YAMLError(f"line {line}: nested more than {_DEEPEST} deep")
            is_alias, self.depth = self.check_event(yaml.AliasEvent), self.depth + 1
            node: Any = super().compose_node(parent, index)
            self.depth -= 1
            if not is_alias:
                inner = node.value if isinstance(node.value, list) else []
                parts = [part for each in inner for part in (each if isinstance(each, tuple) else (each,))]
                node.count = 1 + sum(part.count for part in parts)
            if getattr(node, "count", _MOST + 1) > _MOST:  # an alias of what it is in has none yet
                raise yaml.YAMLError(f"line {line}: more than {_MOST:,} values, those of aliases counted each time")
            return node  # type: ignore[no-any-return]

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            first: dict[tuple[str, str], int] = {}
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                line, before = key.start_mark.line + 1, first.get((key.tag, key.value))
                if before is not None:
                    raise yaml.YAMLError(f"line {line}: {shorten(key.value)} again, which line {before} has; keep one of them")
                first[key.tag, key.value] = line
            return super().construct_mapping(node, deep)

        def construct_yaml_int(self, node: Any) -> int:
            number: int = super().construct_yaml_int(node)
            if abs(number) >= 2**64:
                raise yaml.YAMLError(f"line {node.start_mark.line + 1}: a whole number of more than 64 bits")
            return number

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    try:
        return yaml.load(text, Loader)
    except ValueError as error:  # e.g. a day that no calendar has, or a number of thousands of digits
        raise yaml.YAMLError(str(error)) from None


def _read_yaml(path: str | Path) -> dict[str, Any]:
    import yaml

    named = str(path) in recipe_names()
    place = Path(str(resources.files("sequst.training").joinpath(f"recipes/{path}.yaml"))) if named else as_path(path)
    try:
        tree = parse_yaml(read_text(place))
    except OSError as error:
        names = " or ".join(recipe_names())
        raise UsageError(
            f"--settings {path}: {(error.strerror or 'cannot be read').lower()}; name a YAML file, or {names}"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"--settings {path}: not valid YAML ({said(error)})") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise UsageError(f"--settings {path}: found {shorten(tree)}; expected names and values, e.g. `seed: 12`")
    return tree


def _put(tree: dict[str, Any], path: list[str], value: Any, where: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise UsageError(f"{where}: {name} is a value, not a group of settings")
    tree[path[-1]] = value


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _build(defaults: Any, tree: Mapping[str, Any], prefix: str, where: str) -> Any:
    """The defaults with the values of the tree; a group that is given in part keeps its own defaults for the rest."""
    kind: Any = type(defaults)
    hints, values = _hints(kind), {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if key not in hints:
            if (instead := replaced(name)) is not None:
                raise UsageError(f"{where}: the setting {shorten(name)} is gone; {instead}")
            known = [item.name for item in describe()]
            groups = sorted({item.rpartition(".")[0] for item in known} - {""})
            raise UsageError(f"{where}: unknown setting {shorten(name)}; {nearest(name, [*known, *groups])}")
        if is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                raise UsageError(f"{where}: {name} is a group of settings; found {shorten(value)}")
            values[key] = _build(getattr(defaults, key), value, f"{name}.", where)
        else:
            values[key] = _coerce(value, hints[key], name, where)
    return dataclasses.replace(defaults, **values)


_REPLACED = {
    "successions": "use transitions",
    "optimism": "use calibration_shift",
    "pseudo_labels": "students learn the best tag; metast draws its labels",
    "sharpness": "students learn the best tag, which has no sharpness",
    "mix_labeled": "leave it out: students learn pseudo-labels and are re-tuned on the labelled sentences",
    "swap_from": "leave it out: entities are no longer swapped",
    "crf": "leave it out: a CRF is always constrained to IOB2, and its transitions learn at 5e-3",
    "ensemble.memory": "use ensemble.teachers or ensemble.students",
    "selection.weight": "use the method without-confidence or without-certainty",
    "uncertainty.dropout": "leave it out: passes drop out at the rates of training",
    "uncertainty.calibrated": "leave it out: the final tagger is calibrated by calibrate",
    "metast.labels": "leave it out: labels are drawn from the teacher's probabilities",
}
_GONE_SELECTION = ("selection.unit", "selection.each_epoch", "selection.rest", "selection.doubtful")
_REPLACED |= dict.fromkeys(_GONE_SELECTION, "use selection.selector")
_REPLACED_LEAVES = {
    "head_learning_rate": "use head_rate, a multiple of the encoder's rate",
    "evaluations": "use evaluations, which all phases share",
    "hide": "use student.hide",
    "average": "leave it out: weights are kept as they are",
    "swap": "leave it out: entities are no longer swapped",
}
_FIXED = {
    "weight_decay": "0.01", "max_gradient_norm": "1", "warmup": "0.1 of the steps", "gcr.start": "the identity",
    "gcr.detach": "true", "gcr.selected_only": "false", "vat.step": "0.1", "vat.warmup": "0", "vat.entropy": "0",
    "cvt.warmup": "0", "cvt.hidden": "128", "cvt.learning_rate": "1e-3", "metast.batch_size": "16", "metast.refresh": "50",
    "metast.smoothing": "0.01", "metast.retune": "0.1", "bilstm.word_size": "50", "bilstm.character_size": "25",
    "bilstm.filters": "50", "bilstm.dropout": "0.33", "bilstm.rate": "20", "adaptation.min_steps": "0",
    "adaptation.hide": "0.15", "adaptation.max_steps": "no limit", "adaptation.evaluations": "none", "gcr.prior": "0",
    "metast.first_order": "false",
}  # fmt: skip


def replaced(name: str) -> str | None:
    """What to use in place of a setting of an earlier version; None if no version had it."""
    group, _, leaf = name.rpartition(".")
    if name in _REPLACED or name.startswith("crf."):
        return _REPLACED.get(name, _REPLACED["crf"])
    for known in (name, leaf if group in ("adaptation", "teacher", "student", "retune") else name):
        if known in _FIXED:
            return f"leave it out: it is fixed at {_FIXED[known]}"
    return _REPLACED_LEAVES.get(leaf) if group in ("adaptation", "teacher", "student", "retune") else None


def _coerce(value: Any, kind: Any, name: str, where: str) -> Any:
    """Convert a YAML value to the type of the setting: YAML reads 1e-4 as a string and 5 as an int."""
    if type(value) is kind:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float and (number or isinstance(value, str)):
        with contextlib.suppress(ValueError):
            return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind is str and (number or value is None):
        return "" if value is None else str(value)
    raise UsageError(f"{where}: {name} must be {_KINDS[kind]}; found {shorten(value)}")


_KINDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}


class Described(NamedTuple):
    """A setting as `sequst settings` shows it."""

    name: str
    default: Any
    help: str


@functools.cache
def describe() -> tuple[Described, ...]:
    """Every setting with its default and its docstring, groups flattened to dotted names."""
    return tuple(_describe(Settings(), ""))


def flatten(settings: Settings) -> dict[str, Any]:
    """Every setting's value by its dotted name."""
    return {name: value for name, value, _ in _describe(settings, "")}


def _describe(settings: Any, prefix: str) -> Iterator[Described]:
    docs = _field_docs(type(settings))
    hints = typing.get_type_hints(type(settings))
    for item in fields(settings):
        if is_dataclass(hints[item.name]):
            yield from _describe(getattr(settings, item.name), f"{prefix}{item.name}.")
        else:
            yield Described(prefix + item.name, getattr(settings, item.name), docs[item.name])


def _field_docs(cls: type) -> dict[str, str]:
    """The docstring under each field."""
    docs = _field_docs(cls.__base__) if cls.__base__ is not None and is_dataclass(cls.__base__) else {}
    for statement, after in itertools.pairwise(_class_bodies(cls.__module__)[cls.__name__]):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                docs[statement.target.id] = " ".join(str(after.value.value).split())
    return docs


@functools.cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """The class bodies of a module, parsed once."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {statement.name: statement.body for statement in tree.body if isinstance(statement, ast.ClassDef)}


def template(settings: Settings | None = None) -> str:
    """All settings, by default the defaults, with their docstrings, as YAML that `load_settings` reads."""
    import yaml

    lines: list[str] = []
    group, values = "", flatten(settings or Settings())
    for name, _, text in describe():
        parent, _, leaf = name.rpartition(".")
        if parent != group:
            group = parent
            lines += ["", f"{parent}:"]
        indent = "  " if parent else ""
        value = yaml.safe_dump(values[name], default_flow_style=True).removesuffix("\n...\n").strip()
        lines += textwrap.wrap(text, 126, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
        lines.append(f"{indent}{leaf}: {value}")
    return "\n".join(lines) + "\n"
