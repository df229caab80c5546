"""Types of PTX as numpy has them; arithmetic, logic, comparisons and moves (PTX ISA, "Instruction Set")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tlx_xdsl.element_types import PTX_TYPES

from ..arrays import Array, Binary, Dtype, Ternary, Unary, is_float, numpy_type, where
from ..directed_rounding import fused_multiply_add, leading_zeros
from ..elementwise import maximum, maxnum, minimum, minnum
from ..rounding import round_to
from . import bits


@dataclass(frozen=True)
class PtxType:
    """A type of PTX: numbers of `dtype`, of which a register holds `lanes`."""

    name: str
    dtype: Dtype
    lanes: int = 1

    @property
    def bits(self) -> int:
        """Bits of a register that holds it."""
        return 8 * self.dtype.itemsize * self.lanes

    @property
    def is_float(self) -> bool:
        """Return whether its numbers are floats."""
        return is_float(self.dtype)

    @property
    def is_signed(self) -> bool:
        """Return whether it is an integer with a sign."""
        return self.dtype.kind == "i"


def _types() -> dict[str, PtxType]:
    types = {name: PtxType(name, numpy_type(element), lanes) for name, (element, lanes) in PTX_TYPES.items()}
    # No number: only moved, and taken apart.
    types["b128"] = PtxType("b128", np.dtype("V16"))
    return types


TYPES = _types()
"""The types by their names."""


PREDICATE = TYPES["pred"]

Function: TypeAlias = Unary | Binary | Ternary | Callable[..., Any]
"""A function of one, two, three or more operands."""


class Vectors(Enum):
    """The meaning of an operand in braces."""

    REFUSED = auto()
    PACKED = auto()
    """The parts of one wider register, the lowest first."""
    SPREAD = auto()
    """Each register is an operand of its own."""


@dataclass(frozen=True)
class Compiled:
    """An instruction, ready to run."""

    inputs: tuple[PtxType, ...]
    """The type as which each operand is read."""
    output: PtxType
    run: Function
    vectors: Vectors = Vectors.REFUSED


Build: TypeAlias = Callable[[frozenset[str], Sequence[PtxType]], Compiled | None]
"""Takes the modifiers and the types of an instruction; gives None for what it does not know."""


# One type for all operands -------------------------------------------------------------------------------------------

EXACT = frozenset(("rn", "ftz", "sat"))
"""Modifiers of arithmetic that rounds to nearest."""
APPROXIMATE = frozenset(("approx", "full", "rn", "ftz"))


def flushed(values: Array) -> Array:
    """Subnormal f16 and f32 become zeros of their sign (`.ftz`)."""
    normal = np.finfo(np.float16 if values.dtype == np.float16 else np.float32).smallest_normal
    small = (np.abs(values) < normal) & (values != 0)
    return np.where(small, np.copysign(np.float32(0), values), values).astype(values.dtype)


def _floating(function: Function, type_: PtxType) -> Callable[..., Any]:
    """Compute in f64 and round once: sums and products of f32 and below come out right so."""
    if function is fused_multiply_add:
        return partial(fused_multiply_add, dtype=type_.dtype)
    if type_.dtype == np.float64:
        return function
    return lambda *values: round_to(function(*(value.astype(np.float64) for value in values)), type_.dtype)


def _plain(count: int, integers: Function | None, floats: Function | None, allowed: frozenset[str] = EXACT) -> Build:
    """An instruction with `count` operands of one type, which is what its result has, too."""

    def build(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
        type_ = types[-1]
        function = floats if type_.is_float else integers
        known = allowed if type_.is_float else allowed & {"sat"}
        if function is None or len(types) != 1 or not modifiers <= known or type_ is PREDICATE:
            return None
        compute = _floating(function, type_) if type_.is_float else function

        def run(*values: Array) -> Array:
            if "ftz" in modifiers:
                values = tuple(flushed(value) for value in values)
            result = compute(*values)
            if "ftz" in modifiers:
                result = flushed(result)
            if "sat" in modifiers and type_.is_float:
                # NaN is 0.
                result = np.where(np.isnan(result), 0, np.clip(result, 0, 1)).astype(type_.dtype)
            elif "sat" in modifiers:
                limits = np.iinfo(type_.dtype)
                exact = function(*(value.astype(np.int64) for value in values))
                result = np.clip(exact, limits.min, limits.max).astype(type_.dtype)
            return result

        return Compiled((type_,) * count, type_, run)

    return build


def _extremum(number: Binary, spreading: Binary, integers: Binary) -> Build:
    def build(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
        function = integers if not types[0].is_float else spreading if "NaN" in modifiers else number
        if modifiers >= _SIZES and types[0].is_float:
            function, modifiers = _of_sizes(function), modifiers - _SIZES
        return _plain(2, function, function, frozenset(("NaN", "ftz")))(modifiers, types)

    return build


_SIZES = frozenset(("xorsign", "abs"))


def _of_sizes(function: Binary) -> Binary:
    """The extremum of two absolute values, with the product of their signs (`.xorsign.abs`)."""

    def run(a: Array, b: Array) -> Array:
        size = np.abs(function(np.abs(a), np.abs(b)))
        return where(np.signbit(a) ^ np.signbit(b), -size, size)

    return run


_FMA = _plain(3, None, fused_multiply_add)


# Integers ------------------------------------------------------------------------------------------------------------


def _half(type_: PtxType, modifiers: frozenset[str]) -> tuple[PtxType, Binary] | None:
    """The type of a product and how it is made: its low half, its high half, or the whole."""
    match tuple(modifiers):
        case ("wide",) if type_.bits < 64:
            whole = TYPES[f"{type_.name[0]}{2 * type_.bits}"]
            return whole, lambda a, b: a.astype(whole.dtype) * b.astype(whole.dtype)
        case ("hi",):
            return type_, partial(bits.high_half, dtype=type_.dtype)
        case ("lo",):
            return type_, np.multiply
        case _:
            return None


def _multiply(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    type_ = types[-1]
    if type_.is_float:
        return _plain(2, None, np.multiply)(modifiers, types)
    found = _half(type_, modifiers)
    return None if found is None else Compiled((type_, type_), *found)


def _multiply_add(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    type_ = types[-1]
    if type_.is_float:
        return _FMA(modifiers, types)
    if (found := _half(type_, modifiers)) is None:
        return None
    output, product = found
    return Compiled((type_, type_, output), output, lambda a, b, c: product(a, b) + c)


def _of_bits(
    inputs: Sequence[str | None], function: Function, output: str | None = None, *, typed: bool = False
) -> Build:
    """An instruction on bits; a type of None is that of the instruction, whose numpy type `typed` functions get."""

    def build(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
        if modifiers or len(types) != 1 or types[0].is_float:
            return None
        type_ = types[0]
        return Compiled(
            tuple(type_ if name is None else TYPES[name] for name in inputs),
            type_ if output is None else TYPES[output],
            partial(function, dtype=type_.dtype) if typed else function,
        )

    return build


def _leading_zeros(a: Array) -> Array:
    return leading_zeros(a).astype(np.uint32)


def _set_bits(a: Array) -> Array:
    return np.bitwise_count(a).astype(np.uint32)


def _funnel(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    if not modifiers <= {"l", "r", "wrap", "clamp"} or len(modifiers) != 2 or types[-1].name != "b32":
        return None
    word = TYPES["b32"]
    is_left, wraps = "l" in modifiers, "wrap" in modifiers
    return Compiled((word,) * 3, word, lambda a, b, c: bits.funnel(a, b, c, is_left=is_left, wraps=wraps))


# Comparisons and moves -----------------------------------------------------------------------------------------------

_ORDERED: dict[str, Binary] = {
    "eq": np.equal, "ne": lambda a, b: (a < b) | (a > b), "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_JOINS: dict[str, Binary] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _comparison(name: str, type_: PtxType) -> Binary | None:
    name = _UNSIGNED.get(name, name)
    if name in _ORDERED:
        return np.not_equal if name == "ne" and not type_.is_float else _ORDERED[name]
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name.endswith("u") and (ordered := _ORDERED.get(name[:-1])) is not None:
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    return None


def _compare(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    names, joins = modifiers - {"ftz", *_JOINS}, modifiers & set(_JOINS)
    if len(names) != 1 or len(joins) > 1 or len(types) != 1:
        return None
    compare, type_ = _comparison(next(iter(names)), types[0]), types[0]
    if compare is None:
        return None
    function: Binary = (lambda a, b: compare(flushed(a), flushed(b))) if "ftz" in modifiers else compare
    # `p|q` gets what holds, and its negation.
    if not joins:
        return Compiled((type_, type_), PREDICATE, lambda a, b: (found := function(a, b), ~found))
    join = _JOINS[next(iter(joins))]
    inputs = (type_, type_, PREDICATE)
    return Compiled(inputs, PREDICATE, lambda a, b, p: (join(found := function(a, b), p), join(~found, p)))


def _set(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    """All bits of an integer, or a float of 1, where a comparison holds; of packed types in each half."""
    compared = _compare(modifiers, types[1:])
    if compared is None or types[0] is PREDICATE:
        return None
    output, type_ = types
    if output.lanes != type_.lanes and (output.is_float or output.bits != type_.bits):
        return None
    part = output.dtype if output.lanes == type_.lanes else np.dtype(np.uint16)
    compare: Callable[..., Any] = compared.run

    def run(*values: Array) -> Array:
        found = compare(*values[:2], *(each.reshape(-1, 1) if type_.lanes > 1 else each for each in values[2:]))[0]
        true = np.ones((), part) if output.is_float else ~np.zeros((), part)
        halves = np.where(found, true, np.zeros((), part))
        return halves if part == output.dtype else np.ascontiguousarray(halves).view(output.dtype).ravel()

    return Compiled(compared.inputs, output, run)


def _chosen(a: Array, b: Array, where: Array) -> Array:
    return np.where(where, a, b)


def _unchanged(value: Array) -> Array:
    return value


def _select(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    if modifiers or len(types) != 1:
        return None
    return Compiled((types[0], types[0], PREDICATE), types[0], _chosen)


def _move(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    return None if modifiers or len(types) != 1 else Compiled((types[0],), types[0], _unchanged, Vectors.PACKED)


# The threads of a warp, and responses of the hardware -----------------------------------------------------------------

LANES = 32
"""Threads of a warp."""
ACROSS_LANES = frozenset(("vote",))
"""Instructions that give a thread something of the others of its warp: 32 neighbours of a register are a warp."""


def _ballot(voters: Array, mask: Array) -> Array:
    """A bit for each thread of the warp that the mask names."""
    votes = voters.reshape(-1, LANES).astype(np.uint64)
    ballots = (votes << np.arange(LANES, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return np.repeat(ballots.astype(np.uint32), LANES) & mask


def _vote(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    if modifiers != frozenset(("sync", "ballot")) or [type_.name for type_ in types] != ["b32"]:
        return None
    return Compiled((PREDICATE, types[0]), types[0], _ballot)


def _is_canceled(response: Array) -> Array:
    return response.view(np.uint32).reshape(-1, 4)[:, 3] != 0


def _word(number: int, response: Array) -> Array:
    return response.view(np.uint32).reshape(-1, 4)[:, number]


def _query_cancel(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    """Return what a response of the cluster launch control says (in the form of `interpreter/ops/clc.py`)."""
    names = [type_.name for type_ in types]
    if modifiers == frozenset(("query_cancel", "is_canceled")) and names == ["pred", "b128"]:
        return Compiled((types[1],), PREDICATE, _is_canceled)
    if modifiers == frozenset(("query_cancel", "get_first_ctaid", "v4")) and names == ["b32", "b128"]:
        return Compiled((types[1],), types[0], _unchanged)
    for word, axis in enumerate("xyz"):
        if modifiers == frozenset(("query_cancel", f"get_first_ctaid::{axis}")) and names == ["b32", "b128"]:
            return Compiled((types[1],), types[0], partial(_word, word))
    return None


def _approximate(function: Unary) -> Build:
    return _plain(1, None, function, APPROXIMATE)


INSTRUCTIONS: dict[str, Build] = {
    "abs": _plain(1, np.abs, np.abs),
    "add": _plain(2, np.add, np.add),
    "and": _of_bits((None, None), np.bitwise_and),
    "bfe": _of_bits((None, "b32", "b32"), bits.extract, typed=True),
    "bfi": _of_bits((None, None, "b32", "b32"), bits.insert, typed=True),
    "brev": _of_bits((None,), bits.reverse, typed=True),
    "clusterlaunchcontrol": _query_cancel,
    "clz": _of_bits((None,), _leading_zeros, "b32"),
    "copysign": _plain(2, None, lambda a, b: np.copysign(b, a)),
    "cos": _approximate(np.cos),
    "div": _plain(2, bits.divide, np.divide, APPROXIMATE),
    "ex2": _approximate(np.exp2),
    "fma": _FMA,
    "lg2": _approximate(np.log2),
    "lop3": _of_bits((None, None, None, "b32"), bits.lop3),
    "mad": _multiply_add,
    "max": _extremum(maxnum, maximum, np.maximum),
    "min": _extremum(minnum, minimum, np.minimum),
    "mov": _move,
    "mul": _multiply,
    "neg": _plain(1, np.negative, np.negative),
    "not": _of_bits((None,), np.invert),
    "or": _of_bits((None, None), np.bitwise_or),
    "popc": _of_bits((None,), _set_bits, "b32"),
    "prmt": _of_bits((None, None, "b32"), bits.permute),
    "rcp": _approximate(np.reciprocal),
    "rem": _plain(2, bits.remainder, None),
    "rsqrt": _approximate(lambda a: 1 / np.sqrt(a)),
    "selp": _select,
    "set": _set,
    "setp": _compare,
    "shf": _funnel,
    "shl": _of_bits((None, "b32"), bits.shift_left, typed=True),
    "shr": _of_bits((None, "b32"), bits.shift_right, typed=True),
    "sin": _approximate(np.sin),
    "sqrt": _approximate(np.sqrt),
    "sub": _plain(2, np.subtract, np.subtract),
    "tanh": _approximate(np.tanh),
    "vote": _vote,
    "xor": _of_bits((None, None), np.bitwise_xor),
}
"""The builder of each instruction but the conversions."""
