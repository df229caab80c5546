"""Computing with blocks of tiles: operators and the functions of `ttl.math`."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, TensorType, f32
from xdsl.ir import Attribute

from tlx_xdsl.errors import InputTypeError

from ..dialects import ttl
from ..dialects.ttcore import TileType, format_of, is_float, register_bytes
from ..dialects.ttl.compute import BinaryOp, BlockComputeOp, DimsOp
from ..elementwise import BY_NAME
from ..language.math import VECTOR_FUNCTIONS
from ..language.tensors import TILE, as_dtype
from .calls import Call, lowering, static
from .values import (
    NONE,
    Acquired,
    Buffer,
    Index,
    Items,
    Piece,
    Static,
    Tensor,
    Tiles,
    Unsettled,
    Value,
    element_type,
    in_tiles,
    shape_text,
)
from .visitor import Visitor

BINARY: dict[str, type[BinaryOp]] = {
    "+": ttl.AddOp,
    "-": ttl.SubOp,
    "*": ttl.MulOp,
    "/": ttl.DivOp,
    "%": ttl.RemainderOp,
}
"""The operation of each operator."""

_BINARY_FUNCTIONS: dict[str, type[BinaryOp]] = {
    "ttl.math.add": ttl.AddOp,
    "ttl.math.sub": ttl.SubOp,
    "ttl.math.mul": ttl.MulOp,
    "ttl.math.div": ttl.DivOp,
    "ttl.math.remainder": ttl.RemainderOp,
    "ttl.math.max": ttl.MaxOp,
    "ttl.math.min": ttl.MinOp,
}


def is_of_tiles(value: Value) -> bool:
    """Return whether an operator with this operand is one of blocks; so is one that was meant to be."""
    return isinstance(value, Tiles | Unsettled | Buffer | Tensor | Piece)


def as_tiles(
    visitor: Visitor, node: ast.AST, value: Value, what: str, like: TensorType[Attribute] | None = None
) -> Tiles:
    """An operand that is a block of tiles; `like` is the type of the block that it is combined with."""
    match value:
        case Unsettled(make=make, known=known, argument=argument):
            type_ = like or known
            if type_ is None:
                lacks = {"shape": "shape", "dtype": "type of the elements"}[argument]
                message = f"{what} does not say the {lacks} of {value.describe()}: give it '{argument}='"
                raise visitor.error(node, message)
            visitor.in_thread(node, what, "compute")
            return make(type_, node)
        case Tensor() | Piece():
            raise visitor.error(
                node,
                f"{what} needs a block, found {value.describe()}: copy it into a circular buffer in a datamovement "
                f"thread, and wait for the block here",
            )
        case Buffer():
            raise visitor.error(node, f"{what} needs a block, found {value.describe()}: wait for one with '.wait()'")
        case Acquired(tiles=Tiles() as tiles):
            check_usable(visitor, node, value)
            return tiles
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
    first, second = operands(visitor, node, what, left, right)
    return inserted(visitor, node, what, op(first.ssa, second.ssa))


def _meet(*operands: Tiles) -> bool:
    """Return whether an operation can have operands of these types."""
    return ttl.computed_tile([ttl.tile_of(each.type) for each in operands]) is not None


def operands(visitor: Visitor, node: ast.AST, what: str, *values: Value) -> list[Tiles]:
    """Operands of one type. What is no block yet, or a number, is like the first one that is."""
    settled = next((each for each in values if not isinstance(each, Static | Index | Unsettled)), values[0])
    if isinstance(settled, Static | Index):
        settled = next((each for each in values if isinstance(each, Unsettled)), settled)
    like = as_tiles(visitor, node, settled, what)
    found: list[Tiles] = []
    for each in values:
        if each is settled:
            found.append(like)
        elif isinstance(each, Static | Index):
            found.append(fill(visitor, node, like.type, each, f"the number of {what}"))
        else:
            found.append(as_tiles(visitor, node, each, what, like.type))
        if found[-1].shape != found[0].shape or not _meet(*found):
            raise visitor.error(node, _mismatch(what, found[0], found[-1]))
    return found


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
        batches = "" if others in ([], matrices) else ": dimensions before these are equal, or the left block's alone"
        raise visitor.error(
            node,
            f"'@' needs blocks of (m, k) and (k, n) tiles of one type, found {shape_text(a.shape, a.unit)} "
            f"and {shape_text(b.shape, b.unit)}{batches}",
        )
    return inserted(visitor, node, "'@'", ttl.MatmulOp(a.ssa, b.ssa))


def negative(visitor: Visitor, node: ast.AST, value: Tiles) -> Tiles:
    """`-value`."""
    return unary(visitor, node, "neg", value)


def unary(visitor: Visitor, node: ast.AST, name: str, value: Tiles, *numbers: float) -> Tiles:
    """A function of the vector unit, by its row in `ttl.elementwise`."""
    if name == "square" and not is_float(ttl.tile_of(value.type).data_type):
        return inserted(visitor, node, name, ttl.MulOp(value.ssa, value.ssa))
    return inserted(visitor, node, f"ttl.math.{name}", ttl.BLOCK_FUNCTIONS[name](value.ssa, numbers))


def power(visitor: Visitor, node: ast.AST, value: Tiles, exponent: Value) -> Tiles:
    """`value ** exponent`, of a number that is known at compile time."""
    number = visitor.static_number(node, exponent, "the exponent of a block")
    return unary(visitor, node, "square", value) if number == 2 else unary(visitor, node, "power", value, number)


def floor_quotient(visitor: Visitor, node: ast.AST, what: str, left: Value, right: Value) -> Tiles:
    """`left // right`."""
    return unary(visitor, node, "floor", elementwise(visitor, node, ttl.DivOp, what, left, right))


def choose(visitor: Visitor, node: ast.AST, what: str, condition: Value, a: Value, b: Value) -> Tiles:
    """The elements of `a` where those of the condition are not zero, and of `b` elsewhere."""
    found = operands(visitor, node, what, condition, a, b)
    return inserted(visitor, node, what, ttl.WhereOp(*(each.ssa for each in found)))


# --- functions ------------------------------------------------------------------------------------------------------


def operand(call: Call, name: str) -> Tiles:
    """An argument that is a block of tiles."""
    return as_tiles(call.visitor, call.at(name), call[name], call.name)


@lowering(*_BINARY_FUNCTIONS)
def _binary(call: Call) -> Value:
    return elementwise(call.visitor, call.node, _BINARY_FUNCTIONS[call.name], call.name, call["a"], call["b"])


def _number(call: Call, name: str) -> float:
    return call.visitor.static_number(call.at(name), call[name], f"'{name}'")


@lowering(*(f"ttl.math.{each.name}" for each in VECTOR_FUNCTIONS))
def _vector(call: Call) -> Value:
    name = call.name.rpartition(".")[2]
    numbers = [_number(call, each) for each in BY_NAME[name].parameters]
    return unary(call.visitor, call.node, name, operand(call, "x"), *numbers)


@lowering("ttl.math.exp")
def _exp(call: Call) -> Value:
    for name, precise in (("approx", False), ("skip_clamp_check", False), ("iterations", 8)):
        if call[name] != Static(precise):
            raise call.error(name, f"'{name}' is {precise}: there is the precise form of the exponential only")
    x: Value = operand(call, "x")
    if call.given("scale"):
        x = elementwise(call.visitor, call.node, ttl.MulOp, call.name, x, call["scale"])
    return unary(call.visitor, call.node, "exp", as_tiles(call.visitor, call.node, x, call.name))


@lowering("ttl.math.pow")
def _power(call: Call) -> Value:
    return power(call.visitor, call.at("exponent"), operand(call, "x"), call["exponent"])


@lowering("ttl.math.floor_div")
def _floor_quotient(call: Call) -> Value:
    return floor_quotient(call.visitor, call.node, call.name, call["a"], call["b"])


@lowering("ttl.math.rsub")
def _rsub(call: Call) -> Value:
    return elementwise(call.visitor, call.node, ttl.SubOp, call.name, Static(_number(call, "b")), operand(call, "a"))


@lowering("ttl.math.relu_max", "ttl.math.relu_min")
def _bounded_relu(call: Call) -> Value:
    name, op = ("upper_limit", ttl.MinOp) if call.name.endswith("max") else ("lower_limit", ttl.MaxOp)
    limit = Static(_number(call, name))
    return unary(
        call.visitor, call.node, "relu", elementwise(call.visitor, call.node, op, call.name, operand(call, "x"), limit)
    )


@lowering("ttl.math.prelu")
def _prelu(call: Call) -> Value:
    return unary(call.visitor, call.node, "leaky_relu", operand(call, "x"), _number(call, "alpha"))


@lowering("ttl.math.hardtanh")
def _hardtanh(call: Call) -> Value:
    return unary(call.visitor, call.node, "clamp", operand(call, "x"), _number(call, "min"), _number(call, "max"))


@lowering("ttl.math.threshold")
def _threshold(call: Call) -> Value:
    x = operand(call, "x")
    above = unary(call.visitor, call.node, "unary_gt", x, _number(call, "threshold"))
    return choose(call.visitor, call.node, call.name, above, call["value"], x)


@lowering("ttl.math.where", "ttl.block.where")
def _where(call: Call) -> Value:
    return choose(call.visitor, call.node, call.name, call["condition"], call["a"], call["b"])


@lowering("ttl.math.mask", "ttl.block.mask", "ttl.math.mask_posinf", "ttl.block.mask_posinf")
def _mask(call: Call) -> Value:
    masked = Static(math.inf if call.name.endswith("posinf") else 0.0)
    return choose(call.visitor, call.node, call.name, call["mask"], masked, call["x"])


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


@lowering("ttl.math.fill", "ttl.block.fill")
def _fill(call: Call) -> Value:
    what, visitor = f"the value of {call.name}", call.visitor
    like = call["like"] if call.name == "ttl.math.fill" else NONE
    visitor.in_thread(call.node, call.name, "compute")
    value = call["value"]
    if call.given("shape"):
        # `ttl.math.fill(0.0, shape=...)`: what comes first is the value.
        value = value if like == NONE or call.given("value") else like
        return _unshaped_fill(call, value, _shape(call), what)
    if not isinstance(like, Buffer | Tiles):
        raise call.error("like", f"'like' is a block whose shape the result has, found {like.describe()}")
    return fill(visitor, call.at("value"), _like(call, "like", like), value, what)


def _like(call: Call, name: str, value: Buffer | Tiles) -> TensorType[Attribute]:
    """The type of a block that an argument names, in tiles."""
    found = in_tiles(value.type.block_type if isinstance(value, Buffer) else value.type)
    if found is None:
        raise call.error(name, f"'{name}' is of tiles, or of rows that are whole tiles, found {value.describe()}")
    return found


def _unshaped_fill(call: Call, value: Value, shape: tuple[int, ...], what: str) -> Value:
    """A block of one number, whose elements are those of its user, unless a type is said."""
    visitor = call.visitor
    if call.name == "ttl.block.fill" and static(call, "tile") != (TILE, TILE):
        raise call.error("tile", f"a tile has {TILE}x{TILE} elements, found {static(call, 'tile')}")
    unit: Attribute | None = None
    if call.given("dtype"):
        try:
            unit = TileType.get(element_type(as_dtype(static(call, "dtype"))))
        except InputTypeError as error:
            raise call.error("dtype", str(error)) from error

    def make(like: TensorType[Attribute], node: ast.AST) -> Tiles:
        type_ = TensorType(unit or like.get_element_type(), list(shape))
        return fill(visitor, call.at("value"), type_, value, what)

    if unit is not None:
        return make(TensorType(unit, list(shape)), call.node)
    units = {each.type.element_type for each in visitor.unit.buffers if isinstance(each.type.element_type, TileType)}
    known = TensorType(next(iter(units)), list(shape)) if len(units) == 1 else None
    return Unsettled(make, known, f"a block of {value.describe()}", "dtype")


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
    dims = _dims(call, len(x.shape))
    if call.given("shape"):
        return _spread(call, x, dims, _shape(call))

    def make(like: TensorType[Attribute], _: ast.AST) -> Tiles:
        return _spread(call, x, dims, tuple(like.get_shape()))

    return Unsettled(make, None, "what 'ttl.block.broadcast' repeats", "shape")


def _spread(call: Call, x: Tiles, dims: Sequence[int], shape: tuple[int, ...]) -> Tiles:
    rank = len(x.shape)
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


def _insert_dims(call: Call, op: type[DimsOp], x: Tiles, dims: Sequence[int], shape: Sequence[int]) -> Tiles:
    return inserted(call.visitor, call.node, call.name, op(x.ssa, dims, _result_type(x, shape)))


def _shape(call: Call) -> tuple[int, ...]:
    """The shape that an argument says, or has."""
    match call["shape"]:
        case Tiles() | Buffer() as like:
            return tuple(_like(call, "shape", like).get_shape())
        case Items(items=[_, _, *_] as items):
            sizes = tuple(call.visitor.static_int(call.at("shape"), each, "a size") for each in items)
            if min(sizes) < 1:
                raise call.error("shape", f"'shape' is two or more positive integers, found {sizes}")
            return sizes
        case other:
            raise call.error("shape", f"'shape' is (..., rows, columns) in tiles, or a block, found {other.describe()}")


@lowering("ttl.math.reduce_sum", "ttl.math.reduce_max")
def _reduce(call: Call) -> Value:
    if call.given("scaler") and not is_of_tiles(call["scaler"]):
        # `ttl.math.reduce_sum(x, [1], (2, 1))`: without a scaler, the others come first.
        moved = {"dims": "scaler", "shape": "dims"} if call.given("dims") else {"dims": "scaler"}
        call = replace(
            call,
            args={**call.args, "scaler": NONE, **{name: call[old] for name, old in moved.items()}},
            nodes={**call.nodes, **{name: call.at(old) for name, old in moved.items()}},
        )
    x = operand(call, "x")
    dims = _dims(call, len(x.shape), len(x.shape) - 2)
    op = ttl.ReduceSumOp if call.name.endswith("sum") else ttl.ReduceMaxOp
    shape = tuple(1 if dim in dims else size for dim, size in enumerate(x.shape))
    if call.given("shape") and _shape(call) != shape:
        raise call.error("shape", f"'shape' of this reduction is {shape}, found {_shape(call)}")
    scaler = operand(call, "scaler") if call.given("scaler") else None
    if scaler is not None and (scaler.shape != (1, 1) or scaler.unit != x.unit):
        found = f"expected a block of 1x1 tile of {x.unit.data_type}" if isinstance(x.unit, TileType) else ""
        raise call.error("scaler", f"{found}, found {scaler.describe()}")
    made = op(x.ssa, dims, _result_type(x, shape), None if scaler is None else scaler.ssa)
    return Tiles(call.visitor.builder.insert(made).result)
