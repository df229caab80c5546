"""Runs the IR of a straight-line kernel in numpy: what the tests of the library compare by value.

A pointer is a pair of an array and offsets into it, in elements; integers of the IR are signed numpy integers.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, Float16Type, Float32Type, Float64Type, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.tensors import as_tensor, scalar_type

_FLOATS = {Float16Type: np.float16, Float32Type: np.float32, Float64Type: np.float64}


def run(module: ModuleOp, *arguments: object) -> list[tuple[np.ndarray, np.ndarray]]:
    """Run the kernel of `module`; arrays among `arguments` are what its pointers point to.

    The result is where (offsets in elements) and what was stored, in order. The program is 3, 5 of a grid of 7 x 8.
    """
    function = next(op for op in module.ops if op.name == "tt.func")
    block = function.regions[0].block
    values = {
        argument: (given, np.int64(0)) if isinstance(given, np.ndarray) else given
        for argument, given in zip(block.args, arguments, strict=True)
    }
    with np.errstate(all="ignore"):
        _run_block(block, values)
    stores = [op for op in block.ops if op.name == "tt.store"]
    return [(np.asarray(values[op.operands[0]][1]), np.asarray(values[op.operands[1]])) for op in stores]


def _dtype(type_: Attribute) -> type:
    element = scalar_type(type_)
    if isinstance(element, IntegerType):
        return np.bool_ if element.width.data == 1 else getattr(np, f"int{element.width.data}")
    return _FLOATS[type(element)]


def _shape(type_: Attribute) -> tuple[int, ...]:
    tensor = as_tensor(type_)
    return () if tensor is None else tensor.get_shape()


def _run_block(block: Block, values: dict[SSAValue, object]) -> list[object]:
    """Run the operations; the result is what the last one returns."""
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        if op.name.endswith(".return"):
            return operands
        results = _results(op, operands, values)
        values.update(zip(op.results, results, strict=True))
    raise AssertionError("the block has no end")


def _results(op: Operation, operands: list, values: dict[SSAValue, object]) -> list[object]:
    match op.name:
        case "tt.store":
            (array, offsets), value = operands[:2]
            array[offsets] = value
            return []
        case "tt.reduce":
            return _reduce(op, operands, values)
        case "tt.scan":
            return _scan(op, operands, values)
        case "arith.constant":
            return [_constant(op)]
        case _:
            result = _OPERATIONS[op.name](op, *operands)
            if not isinstance(result, tuple):
                result = np.asarray(result).astype(_dtype(op.results[0].type))
                assert result.shape == _shape(op.results[0].type) or isinstance(
                    op.parent_op(), tt.ReduceOp | tt.ScanOp
                ), op
            return [result]


def _constant(op: Operation) -> object:
    value, type_ = op.properties["value"], op.results[0].type
    if isinstance(value, DenseIntOrFPElementsAttr):
        return np.full(_shape(type_), value.get_values()[0]).astype(_dtype(type_))
    return np.asarray(value.value.data).astype(_dtype(type_))


def _combine(op: Operation, values: dict[SSAValue, object], first: list, second: list) -> list:
    # The operations of a region take scalars; numpy runs them on all pairs at once.
    block = op.regions[0].block
    return _run_block(block, values | dict(zip(block.args, [*first, *second], strict=True)))


def _slices(op: Operation, operands: list) -> tuple[int, list[list]]:
    """The axis, and for each position along it the slice of every operand."""
    axis = op.properties["axis"].value.data
    return axis, [[np.take(x, i, axis) for x in operands] for i in range(operands[0].shape[axis])]


def _reduce(op: Operation, operands: list, values: dict[SSAValue, object]) -> list:
    _, slices = _slices(op, operands)
    total = slices[0]
    for other in slices[1:]:
        total = _combine(op, values, total, other)
    return total


def _scan(op: Operation, operands: list, values: dict[SSAValue, object]) -> list:
    axis, slices = _slices(op, operands)
    if op.properties["reverse"].value.data:
        slices.reverse()
    totals = [slices[0]]
    for other in slices[1:]:
        totals.append(_combine(op, values, totals[-1], other))
    if op.properties["reverse"].value.data:
        totals.reverse()
    return [np.stack(column, axis) for column in zip(*totals, strict=True)]


def _unsigned(x: np.ndarray) -> np.ndarray:
    return np.asarray(x).view(np.dtype(f"u{x.dtype}")) if x.dtype.kind == "i" else np.asarray(x)


def _splat(op: Operation, x: object) -> object:
    shape = _shape(op.results[0].type)
    return (x[0], np.full(shape, x[1])) if isinstance(x, tuple) else np.full(shape, x)


def _moved(function):
    """A function of arrays, on the offsets of pointers too."""

    def move(op: Operation, x: object) -> object:
        return (x[0], function(op, x[1])) if isinstance(x, tuple) else function(op, x)

    return move


def _high_half(op: Operation, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = x.dtype.itemsize * 8
    product = _unsigned(x).astype(object) * _unsigned(y).astype(object)
    return np.asarray(product >> bits).astype(f"u{x.dtype}")


_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_FLOAT_PREDICATES = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}


def _cmpi(op: Operation, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    name = _INTEGER_PREDICATES[op.properties["predicate"].value.data]
    if name.startswith("u"):
        x, y = _unsigned(x), _unsigned(y)
    return _COMPARE[name[-2:]](x, y)


def _cmpf(op: Operation, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _COMPARE[_FLOAT_PREDICATES[op.properties["predicate"].value.data]](x, y)


def _bitcast(op: Operation, x: np.ndarray) -> np.ndarray:
    return np.asarray(x).view(_dtype(op.results[0].type))


_OPERATIONS = {
    "arith.addf": lambda op, x, y: x + y,
    "arith.addi": lambda op, x, y: x + y,
    "arith.andi": lambda op, x, y: x & y,
    "arith.bitcast": _bitcast,
    "arith.cmpf": _cmpf,
    "arith.cmpi": _cmpi,
    "arith.divf": lambda op, x, y: x / y,
    "arith.divsi": lambda op, x, y: np.trunc(x / y),
    "arith.extf": lambda op, x: x,
    "arith.extsi": lambda op, x: x,
    "arith.extui": lambda op, x: _unsigned(x),
    "arith.maxnumf": lambda op, x, y: np.fmax(x, y),
    "arith.maxsi": lambda op, x, y: np.maximum(x, y),
    "arith.minnumf": lambda op, x, y: np.fmin(x, y),
    "arith.minsi": lambda op, x, y: np.minimum(x, y),
    "arith.mulf": lambda op, x, y: x * y,
    "arith.muli": lambda op, x, y: x * y,
    "arith.negf": lambda op, x: -x,
    "arith.ori": lambda op, x, y: x | y,
    "arith.remsi": lambda op, x, y: np.fmod(x, y),
    "arith.select": lambda op, c, x, y: np.where(c, x, y),
    "arith.shrsi": lambda op, x, y: x >> y,
    "arith.shrui": lambda op, x, y: _unsigned(x) >> _unsigned(y),
    "arith.sitofp": lambda op, x: x,
    "arith.subf": lambda op, x, y: x - y,
    "arith.subi": lambda op, x, y: x - y,
    "arith.trunci": lambda op, x: x,
    "arith.truncf": lambda op, x: x,
    "arith.xori": lambda op, x, y: x ^ y,
    "math.cos": lambda op, x: np.cos(x),
    "math.exp": lambda op, x: np.exp(x),
    "math.log": lambda op, x: np.log(x),
    "math.sin": lambda op, x: np.sin(x),
    "math.sqrt": lambda op, x: np.sqrt(x),
    "tt.addptr": lambda op, pointer, offset: (pointer[0], pointer[1] + offset),
    "tt.bitcast": _bitcast,
    "tt.broadcast": _moved(lambda op, x: np.broadcast_to(x, _shape(op.results[0].type))),
    "tt.expand_dims": _moved(lambda op, x: np.expand_dims(x, op.properties["axis"].value.data)),
    "tt.gather": lambda op, x, index: np.take_along_axis(x, index, op.properties["axis"].value.data),
    "tt.get_num_programs": lambda op: (7, 8, 1)[op.properties["axis"].value.data],
    "tt.get_program_id": lambda op: (3, 5, 0)[op.properties["axis"].value.data],
    "tt.load": lambda op, pointer: pointer[0][pointer[1]],
    "tt.make_range": lambda op: np.arange(op.properties["start"].value.data, op.properties["end"].value.data),
    "tt.mulhiui": _high_half,
    "tt.precise_divf": lambda op, x, y: x / y,
    "tt.reshape": _moved(lambda op, x: np.reshape(x, _shape(op.results[0].type))),
    "tt.splat": _splat,
}
