"""Facts about the addresses of an operation, from what is known of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Lane, Polynomial
from tlx_xdsl.analysis.integers.transfer import pointee_bytes, shape_of
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import BULK_COPY, TMA, Group, Kind, OperandAccess, effects_of
from tlx_xdsl.layouts.encodings import Ints

from .arithmetic import Arithmetic
from .carried import Loop
from .classify import classify, first_unknown
from .model import (
    Access,
    AccessKind,
    Classification,
    Condition,
    Guard,
    LoopTerm,
    TensorBounds,
)
from .regularity import Alignments, dimensions_of, lane_range, run_of_block
from .values import NO_CONDITIONS, Conditions, Descriptor, Integer, Pointer, State
from .walk import Visit

WARP = 32
"""Lanes of a warp: neighbouring elements that one instruction touches together."""


@dataclass(frozen=True)
class _Touched:
    """The block of an access."""

    base: SSAValue | None
    offset: Polynomial
    shape: Ints
    element_size: int
    conditions: Conditions
    reason: str | None = None
    masked: bool = False
    guards: tuple[Guard, ...] = ()
    guards_exact: bool = True
    tensor: TensorBounds | None = None


States: TypeAlias = Mapping[SSAValue, State]


def _unknown(reason: str, shape: Ints = (), element_size: int = 1) -> _Touched:
    return _Touched(None, Polynomial({}), shape, element_size, NO_CONDITIONS, reason)


def _pointers(op: Operation, states: States, value: SSAValue) -> _Touched:
    """The block of a tensor of pointers, or of one pointer, under a mask."""
    pointer = states[value]
    if not isinstance(pointer, Pointer):
        return _unknown("it is no pointer", shape_of(value))
    touched = _Touched(
        pointer.base, pointer.offset, shape_of(value), pointee_bytes(value), pointer.conditions, pointer.reason
    )
    mask: SSAValue | None = getattr(op, "mask", None)
    if mask is None:
        return touched
    state = states[mask]
    if not isinstance(state, Integer):
        return replace(touched, masked=True, guards_exact=False)
    if state.exact and state.form.number == 1:
        return touched
    conditions = touched.conditions.join(state.conditions) if state.guards else touched.conditions
    return replace(touched, masked=True, guards=state.guards, guards_exact=state.guards_exact, conditions=conditions)


def coordinates_of(op: Any) -> Sequence[SSAValue]:
    """Coordinates of an operation's block in the tensor of its descriptor; of a gather the rows and a column."""
    if hasattr(op, "x_offsets"):
        return op.x_offsets, op.y_offset
    return op.indices if hasattr(op, "indices") else op.coord


def _tile(known: Arithmetic, descriptor: State, corner: Sequence[State], shape: Ints | None = None) -> _Touched:
    """The block of a descriptor at `corner`; what lies outside of its tensor is left out."""
    if not isinstance(descriptor, Descriptor):
        return _unknown("the descriptor is not known", shape or ())
    shape = shape or descriptor.block
    size, conditions = descriptor.element_size, descriptor.conditions
    firsts: list[Polynomial] = []
    for place in corner:
        exact = known.whole(place) if isinstance(place, Integer) else None
        if exact is None:
            return _unknown(descriptor.reason or "a coordinate may wrap around", shape, size)
        firsts.append(exact.form)
        conditions = conditions.join(exact.conditions)
    offset = descriptor.offset
    guards: list[Guard] = []
    for dim, (first, extent) in enumerate(zip(firsts, shape, strict=True)):
        place = first + (Polynomial.of(Lane(dim, extent)) if extent > 1 else 0)
        offset = offset + place * descriptor.strides[dim] * size
        guards += [Guard(place, ">=", Polynomial({})), Guard(place, "<", descriptor.shape[dim])]
    tensor = TensorBounds(descriptor.shape, descriptor.strides, tuple(firsts))
    return _Touched(
        descriptor.base, offset, shape, size, conditions, descriptor.reason, True, tuple(guards), True, tensor
    )


def _through_descriptor(known: Arithmetic, op: Any, states: States) -> _Touched:
    """A tile, or rows of a matrix from a column on; nothing where the predicate of the operation does not hold."""
    descriptor, corner = states[op.desc], [states[value] for value in coordinates_of(op)]
    if not hasattr(op, "x_offsets"):
        touched = _tile(known, descriptor, corner)
    elif not isinstance(descriptor, Descriptor) or not all(isinstance(place, Integer) for place in corner):
        return _unknown("the descriptor is not known")
    else:
        shape = (*shape_of(op.x_offsets), descriptor.block[-1])
        # The row is a position of its own already: that of the tensor of rows.
        touched = replace(_tile(known, descriptor, corner, (1, shape[1])), shape=shape, masked=True, tensor=None)
    predicate = states[op.pred] if hasattr(op, "pred") else None
    if predicate is None or (isinstance(predicate, Integer) and predicate.form.number == 1):
        return touched
    return replace(touched, masked=True, guards_exact=False)


def _bulk(op: Any, states: States, value: SSAValue) -> _Touched:
    """Return the addresses of consecutive bytes."""
    pointer, size = states[value], states[op.size]
    assert isinstance(pointer, Pointer)
    count = size.form.number if isinstance(size, Integer) else None
    if count is None:
        return _unknown(pointer.reason or "the number of bytes is not a constant")
    offset = pointer.offset + (Polynomial.of(Lane(0, count)) if count > 1 else 0)
    return _Touched(pointer.base, offset, (count,), 1, pointer.conditions, pointer.reason)


def _kind_of(op: Operation, access: OperandAccess) -> AccessKind:
    kind, engine = access.kind, effects_of(op).by
    if Kind.PREFETCH in kind:
        return AccessKind.PREFETCH
    if Kind.WRITE not in kind:
        if access.completes_on is Group.CP_ASYNC:
            return AccessKind.ASYNC_COPY
        return {TMA: AccessKind.TMA_LOAD, BULK_COPY: AccessKind.BULK_LOAD}.get(engine, AccessKind.LOAD)
    if Kind.ATOMIC in kind:
        return AccessKind.TMA_REDUCE if engine is TMA else AccessKind.ATOMIC
    return {TMA: AccessKind.TMA_STORE, BULK_COPY: AccessKind.BULK_STORE}.get(engine, AccessKind.STORE)


def _touched(known: Arithmetic, op: Operation, access: OperandAccess, states: States) -> _Touched:
    if isinstance(access.value.type, tt.TensorDescType):
        return _through_descriptor(known, op, states)
    return (_bulk if effects_of(op).by is BULK_COPY else _pointers)(op, states, access.value)


def access_of(
    known: Arithmetic, visit: Visit, function: tt.FuncOp, names: dict[SSAValue, str], aligned: Alignments
) -> Access:
    """The facts that are known about an access."""
    touched = _touched(known, visit.op, visit.access, dict(zip(visit.op.operands, visit.operands, strict=True)))
    reason = touched.reason
    if touched.base is None:
        reason = reason or "the pointer is not one of the kernel's arguments"
    elif touched.base not in names:
        reason = "the pointer goes around a loop in a way that is not known"
    elif touched.conditions.too_many:
        reason = "it holds under too many conditions only"
    else:
        reason = first_unknown(touched.offset)
    if reason is not None:
        offset, classification, strides = None, Classification.UNKNOWN, {}
    else:
        offset = touched.offset
        classification, strides = classify(offset)
    dimensions = dimensions_of(offset, touched.shape, touched.element_size, aligned.of(touched.base), aligned)
    run = run_of_block(dimensions, touched.element_size)
    return Access(
        op=visit.op,
        kind=_kind_of(visit.op, visit.access),
        classification=classification,
        function=function,
        calls=visit.calls,
        base=touched.base if reason is None else None,
        base_name=names.get(touched.base, "?") if touched.base is not None else "?",
        offset=offset,
        element_size=touched.element_size,
        dimensions=dimensions,
        pid_strides=strides,
        constant_offset=0 if offset is None else offset.offset,
        lane_range=None if offset is None else lane_range(offset, known.bounds),
        loops=tuple(_loop_term(known, loop, offset) for loop in visit.loops),
        masked=touched.masked,
        guards=touched.guards,
        guards_exact=touched.guards_exact,
        conditional=visit.conditional,
        conditions=() if reason is not None else _reported(known, touched.conditions),
        tensor=touched.tensor if reason is None else None,
        block_size=run,
        is_coalesced=offset is not None
        and max((dimension.contiguity for dimension in dimensions), default=1) >= min(WARP, prod(touched.shape)),
        reason=reason,
    )


def _reported(known: Arithmetic, conditions: Conditions) -> tuple[Condition, ...]:
    """The conditions, without bounds that always hold."""
    reported: list[Condition] = []
    for form, interval in conditions.bounds.items():
        reach = known.bounds.of_form(form)
        low = interval.low if interval.low > reach.low else None
        high = interval.high if interval.high < reach.high else None
        if low is not None or high is not None:
            reported.append(Condition(form, low, high))
    return tuple(reported)


def _loop_term(known: Arithmetic, loop: Loop, offset: Polynomial | None) -> LoopTerm:
    stride = None if offset is None else offset.coefficient(loop.counter)
    if stride is not None and any(isinstance(symbol, Lane) for symbol in stride.all_symbols):
        stride = None
    return LoopTerm(loop.counter, stride, loop.trips, known.bounds.of(loop.counter))
