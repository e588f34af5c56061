"""Look through model.onnx before it is opened: a graph of known operations, without loops, functions or other files.

The file is read as what it is, a message of protocol buffers, so that an export needs no package but onnxruntime.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from sequst.errors import SequstError, said, shorten

OPERATIONS = {
    "Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape",
    "Conv", "Cos", "CumSum", "DequantizeLinear", "Div", "DynamicQuantizeLinear", "Einsum", "Equal", "Erf", "Exp",
    "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "Greater", "GreaterOrEqual",
    "Identity", "If", "IsInf", "IsNaN", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax",
    "MatMul", "MatMulInteger", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "Or", "Pad", "Pow", "QuantizeLinear",
    "Range", "Reciprocal", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Relu",
    "Reshape", "Round", "ScatterElements", "ScatterND", "Shape", "Sigmoid", "Sign", "Sin", "Size", "Slice", "Softmax",
    "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze",
    "Where", "Xor",
}  # fmt: skip
"""What graphs of transformers have. None repeats a part of the graph."""
_PARTS = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "tensor": {},
}
"""Of each message the fields that are messages too."""
_REFUSED = {
    ("model", 20): "training",
    ("model", 25): "functions",
    ("graph", 15): "sparse tensors",  # a few bytes may say that they are of any size
    ("attribute", 22): "sparse tensors",
    ("attribute", 23): "sparse tensors",
    ("tensor", 13): "data in other files",
    ("tensor", 14): "data in other files",
}
_OPERATION, _DOMAIN = ("node", 4), ("node", 7)
_TEXT = 8
"""The type of a tensor of texts."""
_DEEPEST = 20


def require_known(path: Path) -> None:
    """Raise an error if the graph has anything that exports do not have."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        found = next(_unknown(data, "model", 0), None)
    except (ValueError, IndexError, OSError) as error:
        raise SequstError(f"cannot load {path}: {said(error)}; export the model again") from error
    if found is not None:
        raise SequstError(f"cannot load {path}: its graph has {found}, which no export has; export the model again")


def _unknown(data: memoryview, message: str, depth: int) -> Iterator[str]:
    """What no export has, in a message of protocol buffers and all that are in it."""
    if depth > _DEEPEST:
        raise ValueError(f"messages within messages, more than {_DEEPEST} deep")
    for field, value in _fields(data):
        place = message, field
        if place in _REFUSED and value != 0:  # 0: the data are here
            yield _REFUSED[place]
        elif place == ("tensor", 2) and isinstance(value, int) and value % 2**32 == _TEXT:
            yield "texts"  # room is made for as many as it says, before they are looked at
        elif isinstance(value, memoryview) and field in _PARTS[message]:
            yield from _unknown(value, _PARTS[message][field], depth + 1)
        elif isinstance(value, memoryview) and place in (_OPERATION, _DOMAIN):
            name = bytes(value).decode("utf-8", "replace")
            if name not in (OPERATIONS if place == _OPERATION else ("", "ai.onnx")):
                yield f"{'the operation' if place == _OPERATION else 'operations of'} {shorten(name)}"


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview | None]]:
    """(number, value) of each field: a whole number, bytes, or None for other numbers."""
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        value: int | memoryview | None = None
        if key & 7 == 0:
            value, at = _number(data, at)
        elif key & 7 == 2:
            size, at = _number(data, at)
            value, at = data[at : at + size], at + size
        elif key & 7 in (1, 5):
            at += 8 if key & 7 == 1 else 4
        else:
            raise ValueError("not a graph of ONNX")
        if key >= 2**32 or at > len(data):
            raise ValueError("not a whole graph of ONNX")
        yield key >> 3, value


def _number(data: memoryview, at: int) -> tuple[int, int]:
    """(the number of variable length at a place, the place behind it)."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("not a graph of ONNX")
