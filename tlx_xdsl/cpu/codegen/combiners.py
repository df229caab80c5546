"""Reductions whose order does not matter, or is left open: each lane of a vector then has a part of the result."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tlx_xdsl.dialects.base import is_float
from tlx_xdsl.dialects.base.tensors import element_bits

from .builder import FLOATS, Value, constant, register_type
from .function import SCALARS, FunctionEmitter
from .nest import Combiner, Quick
from .scalars import float_constant

_IDENTITIES: dict[str, Callable[[Attribute], float | None]] = {}
"""By the name of an operation: the number that changes nothing, in a type; None where the order matters."""


def _combines(identity: Callable[[Attribute], float | None], *classes: type[Operation]) -> None:
    _IDENTITIES.update(dict.fromkeys((each.name for each in classes), identity))


def _least(type_: Attribute) -> int:
    return -(1 << element_bits(type_) - 1)


def _in_any_order(number: float) -> Callable[[Attribute], float | None]:
    """Of what rounds: Triton leaves the order open, but below f32 every step would round."""
    return lambda type_: number if register_type(type_) in FLOATS else None


_combines(lambda _: 0, arith.AddiOp, arith.OrIOp, arith.XOrIOp, arith.MaxUIOp)
_combines(lambda _: -1, arith.AndIOp, arith.MinUIOp)
_combines(lambda _: 1, arith.MuliOp)
_combines(_least, arith.MaxSIOp)
_combines(lambda type_: -1 - _least(type_), arith.MinSIOp)
_combines(lambda _: float("-inf"), arith.MaximumfOp)
_combines(lambda _: float("inf"), arith.MinimumfOp)
_combines(lambda _: float("nan"), arith.MaxnumfOp, arith.MinnumfOp)
_combines(_in_any_order(-0.0), arith.AddfOp)
_combines(_in_any_order(1.0), arith.MulfOp)


def combiners_of(fn: FunctionEmitter, body: Block, inputs: int) -> tuple[Combiner, ...] | None:
    """How each output is combined with what an iteration adds; None if the order of the iterations matters."""
    found: list[Combiner] = []
    last = body.last_op
    assert last is not None
    for argument, value in zip(body.args[inputs:], last.operands, strict=True):
        combiner = _combiner(fn, argument, value)
        if combiner is None:
            return None
        found.append(combiner)
    return tuple(found)


def _combiner(fn: FunctionEmitter, old: SSAValue, new: SSAValue) -> Combiner | None:
    op = new.owner
    if not isinstance(op, Operation) or old.uses.get_length() != 1 or new.uses.get_length() != 1:
        return None
    if old not in op.operands or len(op.operands) != 2:
        return None
    type_ = old.type
    register = register_type(type_)
    identity = _IDENTITIES.get(op.name, lambda _: None)(type_)
    if identity is None:
        return None
    start = float_constant(fn, identity, type_) if is_float(type_) else constant(identity, register)

    def combine(first: Value, second: Value) -> Value:
        result = SCALARS[op.name](fn, op, [first, second])
        assert isinstance(result, Value)
        return result

    return Combiner(start, combine, _quick(fn, op, type_))


def _quick(fn: FunctionEmitter, op: Operation, type_: Attribute) -> Quick | None:
    """One comparison instead of what separates all NaN and both zeros, which matters for -inf and 0 alone."""
    register = register_type(type_)
    if not isinstance(op, arith.MaxnumfOp | arith.MinnumfOp) or register not in FLOATS:
        return None
    is_max = isinstance(op, arith.MaxnumfOp)
    worst = constant(float("-inf") if is_max else float("inf"), register)
    predicate = "fcmp ogt" if is_max else "fcmp olt"
    b = fn.b

    def combine(old: Value, new: Value) -> Value:
        # A NaN among the elements is not taken, for it is not greater.
        return b.select(b.compare(predicate, new, old), new, old)

    def is_doubtful(result: Value) -> Value:
        zero = b.compare("fcmp oeq", result, constant(0, register))
        return b.binary("or", zero, b.compare("fcmp oeq", result, worst))

    return Quick(worst, combine, is_doubtful)
