"""Exports that somebody else made, or that were damaged: predictions with finite confidences, or one error."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.errors import SequstError
from sequst.integrations.onnx.tagger import OnnxTagger
from tests.hostile.guard import unguarded
from tests.hostile.mutation import Trial, mutated

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
helper = pytest.importorskip("onnx.helper")


def predict(folder: Path) -> None:
    assert all(map(math.isfinite, OnnxTagger.load(folder).predict("We play in Oslo.").confidences))


@pytest.mark.parametrize("name", ["sequst.json", "tokenizer.json", "transitions.safetensors", "model.onnx"])
def test_a_mutated_file_is_refused_or_harmless(seed: int, name: str, exported: Path, tmp_path: Path, trial: Trial) -> None:
    folder, kind = Path(shutil.copytree(exported, tmp_path / "o")), f"export: {name}"
    whole, rng = (folder / name).read_bytes(), random.Random(f"{kind} {seed}")
    for _ in range(40):
        (folder / name).write_bytes(mutated(whole, rng))
        trial(kind, lambda: predict(folder))
    assert trial.refused(kind) > 5


def test_a_graph_that_is_cut_off(exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "o"))
    data = (folder / "model.onnx").read_bytes()
    for length in (0, 10, len(data) // 2, len(data) - 1):
        (folder / "model.onnx").write_bytes(data[:length])
        with pytest.raises(SequstError, match=r"model\.onnx"):
            predict(folder)


def with_loop(graph: Any) -> None:
    """Ten to the power of twelve times nothing."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go_on"], ["go_on_again"])], "body",
        [helper.make_tensor_value_info("step", onnx.TensorProto.INT64, []),
         helper.make_tensor_value_info("go_on", onnx.TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("go_on_again", onnx.TensorProto.BOOL, [])],
    )  # fmt: skip
    graph.initializer.append(helper.make_tensor("times", onnx.TensorProto.INT64, [], [10**12]))
    graph.node.append(helper.make_node("Loop", ["times", ""], [], body=body))


def with_hidden_loop(model: Any) -> None:
    branch = helper.make_graph([], "branch", [], [])
    with_loop(branch)
    model.graph.initializer.append(helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True]))
    model.graph.node.append(helper.make_node("If", ["yes"], [], then_branch=branch, else_branch=branch))


def with_other_file(model: Any) -> None:
    tensor = next(each for each in model.graph.initializer if each.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="other.bin")


def with_other_file_unsaid(model: Any) -> None:
    model.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")


def with_function(model: Any) -> None:
    node = helper.make_node("Identity", ["a"], ["b"])
    opset = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("mine", "F", ["a"], ["b"], [node], opset))


def with_texts(model: Any) -> None:
    tensor = model.graph.initializer.add(name="texts", data_type=onnx.TensorProto.STRING)
    tensor.dims.append(10**9)


def with_sparse_constant(model: Any) -> None:
    """A billion of nothing in a few bytes."""
    numbers = [helper.make_tensor(name, kind, [0], []) for name, kind in (("v", 1), ("i", onnx.TensorProto.INT64))]
    model.graph.node.append(helper.make_node("Constant", [], ["b"], sparse_value=helper.make_sparse_tensor(*numbers, [10**9])))


def with_sparse_initializer(model: Any) -> None:
    with_sparse_constant(model)
    model.graph.sparse_initializer.append(model.graph.node.pop().attribute[0].sparse_tensor)


HOSTILE: dict[str, tuple[Callable[[Any], None], str]] = {
    "a loop": (lambda model: with_loop(model.graph), "the operation 'Loop'"),
    "a loop in a branch": (with_hidden_loop, "the operation 'Loop'"),
    "an operation of others": (
        lambda model: model.graph.node.append(helper.make_node("Add", ["a", "a"], ["b"], domain="evil")), "operations of 'evil'"
    ),
    "data in another file": (with_other_file, "data in other files"),
    "data in another file, unsaid": (with_other_file_unsaid, "data in other files"),
    "a sparse constant": (with_sparse_constant, "sparse tensors"),
    "a sparse initialiser": (with_sparse_initializer, "sparse tensors"),
    "texts": (with_texts, "texts"),
    "a function": (with_function, "functions"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "told"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_graph(change: Callable[[Any], None], told: str, exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "o"))
    model = onnx.load(folder / "model.onnx")
    change(model)
    (folder / "other.bin").write_bytes(bytes(10**6))
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(SequstError, match=f"model.onnx: its graph has {told}, which no export has"):
        predict(folder)


def test_a_tokenizer_whose_ids_the_graph_does_not_know(exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "o"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    for word in ("we", "play", "in"):
        tokenizer["model"]["vocab"][word] = 100_000
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(SequstError, match="the graph does not fit its tokenizer"):
        OnnxTagger.load(folder).predict("We play in Oslo.")


@pytest.mark.parametrize("constant", [True, False])
def test_a_graph_that_would_fill_memory(constant: bool, exported: Path, tmp_path: Path) -> None:
    """Two gigabytes, where one is the limit: whether the size is written in the graph, or depends on the input."""
    folder = Path(shutil.copytree(exported, tmp_path / "o"))
    model = onnx.load(folder / "model.onnx")
    [last] = [node for node in model.graph.node if "scores" in node.output]
    last.output[list(last.output).index("scores")] = "sound"
    size = helper.make_tensor("size", onnx.TensorProto.INT64, [1], [500_000_000])
    one = helper.make_tensor("one", onnx.TensorProto.FLOAT, [1], [1.0])
    model.graph.initializer.append(size)
    nodes = [
        helper.make_node("Shape", ["heads"], ["shape"]),
        helper.make_node("ReduceMax", ["shape"], ["words"], keepdims=1),
        helper.make_node("Max", ["words", "size"], ["asked"]),
        helper.make_node("ConstantOfShape", ["size" if constant else "asked"], ["large"], value=one),
        helper.make_node("ReduceMin", ["large"], ["least"], keepdims=1),
        helper.make_node("Mul", ["sound", "least"], ["scores"]),
    ]
    model.graph.node.extend(nodes)
    onnx.save(model, folder / "model.onnx")
    program = f"""
import re
from pathlib import Path
from sequst.errors import SequstError
from sequst.integrations.onnx import tagger
try:
    tagger._most_memory = lambda: 10**9
    tagger.OnnxTagger.load({str(folder)!r})
except SequstError as error:
    # not ru_maxrss, which a process has from the one that started it
    print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1], error)
"""
    with unguarded():
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    peak, _, error = done.stdout.partition(" ")
    assert "ConstantOfShape" in error
    assert int(peak) < 1_000_000
