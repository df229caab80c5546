"""Computing with blocks of tiles: operators and the functions of `ttl.math`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, TensorType, f32
from xdsl.ir import Attribute

from tlx_xdsl.errors import InputTypeError

from ..dialects import ttl
from ..dialects.ttcore import TileType, format_of, is_float, register_bytes
from ..dialects.ttl.compute import BinaryOp, BlockComputeOp, DimsOp, UnaryOp
from ..language.tensors import as_dtype
from .calls import Call, lowering, static
from .values import Acquired, Buffer, Index, Items, Piece, Static, Tensor, Tiles, Value, element_type, shape_text
from .visitor import Visitor

BINARY: dict[str, type[BinaryOp]] = {"+": ttl.AddOp, "-": ttl.SubOp, "*": ttl.MulOp, "/": ttl.DivOp}
"""The operation of each operator."""

_BINARY_FUNCTIONS: dict[str, type[BinaryOp]] = {
    "ttl.math.add": ttl.AddOp,
    "ttl.math.sub": ttl.SubOp,
    "ttl.math.mul": ttl.MulOp,
    "ttl.math.div": ttl.DivOp,
    "ttl.math.max": ttl.MaxOp,
    "ttl.math.min": ttl.MinOp,
}

_UNARY_FUNCTIONS: dict[str, type[UnaryOp]] = {
    "ttl.math.exp": ttl.ExpOp,
    "ttl.math.log": ttl.LogOp,
    "ttl.math.sqrt": ttl.SqrtOp,
    "ttl.math.rsqrt": ttl.RsqrtOp,
    "ttl.math.recip": ttl.RecipOp,
    "ttl.math.relu": ttl.ReluOp,
    "ttl.math.gelu": ttl.GeluOp,
    "ttl.math.tanh": ttl.TanhOp,
    "ttl.math.sigmoid": ttl.SigmoidOp,
    "ttl.math.neg": ttl.NegOp,
    "ttl.math.abs": ttl.AbsOp,
    "ttl.math.square": ttl.SquareOp,
}


def is_of_tiles(value: Value) -> bool:
    """Return whether an operator with this operand is one of blocks; so is one that was meant to be."""
    return isinstance(value, Tiles | Buffer | Tensor | Piece)


def as_tiles(visitor: Visitor, node: ast.AST, value: Value, what: str) -> Tiles:
    """An operand that is a block of tiles."""
    match value:
        case Tensor() | Piece():
            raise visitor.error(
                node,
                f"{what} needs a block, found {value.describe()}: copy it into a circular buffer in a datamovement "
                f"thread, and wait for the block here",
            )
        case Buffer():
            raise visitor.error(node, f"{what} needs a block, found {value.describe()}: wait for one with '.wait()'")
        case Acquired(reserved=True):
            message = f"{what} reads {value.describe()}, which is only written"
            raise visitor.error(node, f"{message}: use the value that is stored, or wait for the block after its push")
        case Tiles():
            check_usable(visitor, node, value)
            if not isinstance(value.unit, TileType):
                raise visitor.error(node, f"{what} needs a block of tiles, found {value.describe()}")
            visitor.in_thread(node, what, "compute")
            return value
        case _:
            raise visitor.error(node, f"{what} needs a block, found {value.describe()}")


def check_usable(visitor: Visitor, node: ast.AST, value: Value) -> None:
    """Raise an error for a block that was given back."""
    if isinstance(value, Acquired) and value.state.released is not None:
        verb = "pushed" if value.reserved else "popped"
        note = f"it was {verb} here: {visitor.place(value.state.released)}"
        raise visitor.error(node, f"this block is used after it was {verb}", (note,))


def fill(visitor: Visitor, node: ast.AST, type_: TensorType[Attribute], number: Value, what: str) -> Tiles:
    """A block every element of which is a number."""
    value = visitor.static_number(node, number, what)
    unit = type_.get_element_type()
    assert isinstance(unit, TileType)
    attribute = FloatAttr(value, f32) if is_float(unit.data_type) else _integer(visitor, node, number, what, unit)
    tile = ttl.computed_tile([unit]) or unit
    return inserted(visitor, node, what, ttl.FillOp(attribute, TensorType(tile, type_.get_shape())))


def _integer(visitor: Visitor, node: ast.AST, value: Value, what: str, unit: TileType) -> IntegerAttr:
    """A number that tiles of integers hold."""
    number = value.value if isinstance(value, Static) else None
    name = format_of(unit.data_type)
    bits = int(name.lstrip("ui"))
    low, high = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not isinstance(number, int) or not low <= number <= high:
        raise visitor.error(node, f"{what} is an integer from {low} to {high} for tiles of {name}, found {number}")
    return IntegerAttr(number, cast(IntegerType, unit.data_type))


def inserted(visitor: Visitor, node: ast.AST, what: str, op: BlockComputeOp) -> Tiles:
    """The result of an operation on blocks, for whose type of tiles there must be a function."""
    type_ = ttl.tile_of(op.result.type).data_type
    if not is_float(type_) and format_of(type_) not in op.TILE.INTEGERS:
        known = f"tiles of floats, {', '.join(op.TILE.INTEGERS)}" if op.TILE.INTEGERS else "tiles of floats"
        raise visitor.error(node, f"{what} is for {known}, found {format_of(type_)}: ttl.math.typecast converts")
    return Tiles(visitor.builder.insert(op).result)


def elementwise(visitor: Visitor, node: ast.AST, op: type[BinaryOp], what: str, left: Value, right: Value) -> Tiles:
    """An element-wise operation; a number on one side counts for each element."""
    if isinstance(left, Static | Index):
        block = as_tiles(visitor, node, right, what)
        operands = [fill(visitor, node, block.type, left, f"the number of {what}"), block]
    else:
        block = as_tiles(visitor, node, left, what)
        is_number = isinstance(right, Static | Index)
        operands = [block, fill(visitor, node, block.type, right, f"the number of {what}") if is_number
                    else as_tiles(visitor, node, right, what)]  # fmt: skip
    first, second = operands
    if first.shape != second.shape or not _meet(first, second):
        raise visitor.error(node, _mismatch(what, first, second))
    return inserted(visitor, node, what, op(first.ssa, second.ssa))


def _meet(*operands: Tiles) -> bool:
    """Return whether an operation can have operands of these types."""
    return ttl.computed_tile([ttl.tile_of(each.type) for each in operands]) is not None


def _mismatch(what: str, first: Tiles, second: Tiles) -> str:
    found = f"{what} needs two blocks of one shape and type, found {first.describe()} and {second.describe()}"
    if not _meet(first, second):
        return f"{found}: ttl.math.typecast converts"
    if len(first.shape) != len(second.shape):
        return found
    for small, large in ((first, second), (second, first)):
        pairs = list(zip(small.shape, large.shape, strict=True))
        dims = [dim for dim, (a, b) in enumerate(pairs) if a == 1 != b]
        if all(a == b for dim, (a, b) in enumerate(pairs) if dim not in dims):
            return f"{found}: repeat the smaller one with ttl.math.broadcast(x, {large.shape}, dims={dims})"
    return found


def matmul(visitor: Visitor, node: ast.AST, left: Value, right: Value) -> Tiles:
    """The product of matrices."""
    a, b = as_tiles(visitor, node, left, "'@'"), as_tiles(visitor, node, right, "'@'")
    *matrices, _, inner = a.shape
    *others, rows, _ = b.shape
    if inner != rows or others not in ([], matrices) or not _meet(a, b):
        raise visitor.error(
            node,
            f"'@' needs blocks of (m, k) and (k, n) tiles of one type, found {shape_text(a.shape, a.unit)} "
            f"and {shape_text(b.shape, b.unit)}",
        )
    return inserted(visitor, node, "'@'", ttl.MatmulOp(a.ssa, b.ssa))


def negative(visitor: Visitor, node: ast.AST, value: Tiles) -> Tiles:
    """`-value`."""
    return inserted(visitor, node, "'-'", ttl.NegOp(value.ssa))


def square(visitor: Visitor, node: ast.AST, value: Tiles) -> Tiles:
    """`value ** 2`."""
    op = ttl.SquareOp(value.ssa) if is_float(ttl.tile_of(value.type).data_type) else ttl.MulOp(value.ssa, value.ssa)
    return inserted(visitor, node, "'** 2'", op)


# --- functions ------------------------------------------------------------------------------------------------------


def operand(call: Call, name: str) -> Tiles:
    """An argument that is a block of tiles."""
    return as_tiles(call.visitor, call.at(name), call[name], call.name)


@lowering(*_BINARY_FUNCTIONS)
def _binary(call: Call) -> Value:
    return elementwise(call.visitor, call.node, _BINARY_FUNCTIONS[call.name], call.name, call["a"], call["b"])


@lowering(*_UNARY_FUNCTIONS)
def _unary(call: Call) -> Value:
    x = operand(call, "x")
    if call.name == "ttl.math.square":
        return square(call.visitor, call.node, x)
    return inserted(call.visitor, call.node, call.name, _UNARY_FUNCTIONS[call.name](x.ssa))


@lowering("ttl.math.matmul")
def _matmul(call: Call) -> Value:
    return matmul(call.visitor, call.node, call["a"], call["b"])


@lowering("ttl.math.transpose", "ttl.block.transpose")
def _transpose(call: Call) -> Value:
    return inserted(call.visitor, call.node, call.name, ttl.TransposeOp(operand(call, "x").ssa))


@lowering("ttl.math.typecast", "ttl.block.typecast")
def _typecast(call: Call) -> Value:
    x = operand(call, "x")
    try:
        target = TileType.get(element_type(as_dtype(static(call, "dtype"))))
    except InputTypeError as error:
        raise call.error("dtype", str(error)) from error
    source = ttl.tile_of(x.type)
    if source == target:
        return x
    if not ttl.converts(source.data_type, target.data_type):
        between = f"{format_of(source.data_type)} to {format_of(target.data_type)}"
        raise call.error("dtype", f"there is no conversion from {between}")
    if any(register_bytes(each.data_type) > 2 for each in (source, target)):
        call.visitor.unit.has_wide_registers = True
    return Tiles(call.visitor.builder.insert(ttl.TypecastOp(x.ssa, target)).result)


@lowering("ttl.math.fill")
def _fill(call: Call) -> Value:
    like = call["like"]
    call.visitor.in_thread(call.node, call.name, "compute")
    if isinstance(like, Buffer):
        return fill(call.visitor, call.at("value"), like.type.block_type, call["value"], "the value of ttl.math.fill")
    if not isinstance(like, Tiles):
        raise call.error("like", f"'like' is a block whose shape the result has, found {like.describe()}")
    return fill(call.visitor, call.at("value"), like.type, call["value"], "the value of ttl.math.fill")


def _dims(call: Call, rank: int, least: int = 0) -> list[int]:
    """The dimensions that an argument says, of a block with `rank` of them; from `least` on."""
    given = call["dims"]
    numbers = given.items if isinstance(given, Items) else [given]
    dims = [call.visitor.static_int(call.at("dims"), each, "a dimension") for each in numbers]
    found = sorted({dim % rank for dim in dims if -rank <= dim < rank})
    if not dims or len(found) != len(dims) or found[0] < least:
        which = "[0], [1] or [0, 1]" if rank == 2 else f"some of {[*range(least, rank)]}"
        raise call.error("dims", f"'dims' are dimensions of a block, {which}, found {dims}")
    return found


def _result_type(x: Tiles, shape: Sequence[int]) -> Attribute:
    return TensorType(ttl.computed_tile([ttl.tile_of(x.type)]) or x.unit, list(shape))


@lowering("ttl.math.broadcast", "ttl.block.broadcast")
def _broadcast(call: Call) -> Value:
    x = operand(call, "x")
    rank = len(x.shape)
    dims, shape = _dims(call, rank), _shape(call)
    if len(shape) != rank:
        raise call.error("shape", f"'shape' has as many dimensions as the block, {rank}, found {shape}")
    for dim in range(rank):
        needed = 1 if dim in dims else shape[dim]
        if x.shape[dim] != needed:
            why = "that it repeats" if dim in dims else "that it keeps"
            line = {1: "column", 2: "row"}.get(rank - dim, "layer")
            raise call.error(
                "x",
                f"dims={dims} to {'x'.join(map(str, shape))} tiles needs {needed} {line}"
                f"{'' if needed == 1 else 's'} of tiles along dimension {dim}, {why}, found {x.describe()}",
            )
    return _insert_dims(call, ttl.BcastOp, x, dims, shape)


def _insert_dims(call: Call, op: type[DimsOp], x: Tiles, dims: Sequence[int], shape: Sequence[int]) -> Value:
    return inserted(call.visitor, call.node, call.name, op(x.ssa, dims, _result_type(x, shape)))


def _shape(call: Call) -> tuple[int, ...]:
    """The shape that an argument says, or has."""
    match call["shape"]:
        case Tiles(shape=shape):
            return shape
        case Buffer(type=type_):
            return type_.shape
        case Items(items=[_, _, *_] as items):
            sizes = tuple(call.visitor.static_int(call.at("shape"), each, "a size") for each in items)
            if min(sizes) < 1:
                raise call.error("shape", f"'shape' is two or more positive integers, found {sizes}")
            return sizes
        case other:
            raise call.error("shape", f"'shape' is (..., rows, columns) in tiles, or a block, found {other.describe()}")


@lowering("ttl.math.reduce_sum", "ttl.math.reduce_max")
def _reduce(call: Call) -> Value:
    x = operand(call, "x")
    dims = _dims(call, len(x.shape), len(x.shape) - 2)
    op = ttl.ReduceSumOp if call.name.endswith("sum") else ttl.ReduceMaxOp
    shape = tuple(1 if dim in dims else size for dim, size in enumerate(x.shape))
    if call.given("shape") and _shape(call) != shape:
        raise call.error("shape", f"'shape' of this reduction is {shape}, found {_shape(call)}")
    return _insert_dims(call, op, x, dims, shape)
