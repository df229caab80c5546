"""Matrices of warps (PTX ISA, "ldmatrix", "stmatrix", "movmatrix", "mma.sync")."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tlx_xdsl.element_types import PTX_TYPES
from tlx_xdsl.numerics.arrays import Integers, numpy_type

from ..arithmetic import fragments, kinds
from ..arithmetic.products import ELEMENTS, multiply, multiply_as_f16
from ..cohort import LANES, Cohort
from ..memory.surroundings import Trap
from ..read.syntax import Vector
from ..steps import Builders, Context, Read, Step
from .mbarriers import plus, shared_address
from .memory import Mask

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_ROW = 16
"""Bytes of a row of 8 elements of 16 bits."""


def check_whole(cohort: Cohort, mask: Mask) -> None:
    """Check that all threads of each warp are here.

    Raises Trap.
    """
    if not cohort.whole or (
        mask is not None and not (mask.reshape(-1, LANES).all(axis=1) == mask.reshape(-1, LANES).any(axis=1)).all()
    ):
        raise Trap("not all threads of a warp run this instruction together")


def warps_of(cohort: Cohort, mask: Mask) -> Integers | None:
    """The rows of 32 threads that run an instruction of whole warps; None for all.

    Raises Trap where a warp is not whole.
    """
    check_whole(cohort, mask)
    return None if mask is None else np.flatnonzero(mask.reshape(-1, LANES)[:, 0])


def _form(context: Context) -> tuple[int, bool]:
    parts = list(context.instruction.modifiers)
    if parts[:2] != ["sync", "aligned"]:
        raise context.refuse()
    count = next((_COUNTS[part] for part in parts if part in _COUNTS), 1)
    rest = [part for part in parts[2:] if part not in (*_COUNTS, "trans", "m8n8", "shared", "shared::cta", "b16")]
    if rest or "m8n8" not in parts or "b16" not in parts:
        raise context.refuse()
    return count, "trans" in parts


def _places(cohort: Cohort, mask: Mask, addresses: Integers, count: int, what: str) -> Integers:
    """The place of each row, as [warps, count * 8]; threads after the first 8 * count name none."""
    used = cohort.lane < 8 * count
    if mask is not None:
        used &= mask
    chosen = None if used.all() else used
    places = cohort.wave.shared.places(cohort, addresses if chosen is None else addresses[used], chosen, _ROW, what)
    return places.reshape(-1, 8 * count)


def _load(context: Context) -> Step:
    count, turned = _form(context)
    context.expect(2)
    base, offset = shared_address(context, 1)
    writes = context.written(0, "u4")
    if len(writes) != count:
        raise context.refuse(f"it has {len(writes)} results, not {count}")

    def effect(cohort: Cohort, mask: Mask, addresses: Any) -> Any:
        check_whole(cohort, mask)
        places = _places(cohort, mask, plus(addresses, offset), count, "load")
        flat = places.ravel()
        cohort.wave.order.rows_read(cohort, mask, flat, 8 * count, _ROW)
        cohort.wave.machine.traffic.shared_rows(cohort, flat, 8 * count, _ROW)
        held = cohort.wave.shared.load(flat, 8, 2).view(np.uint16).reshape(-1, count, 8, 8)
        if turned:
            held = np.ascontiguousarray(held.swapaxes(-1, -2))
        found = held.view(np.uint32).reshape(-1, count, LANES).swapaxes(0, 1)
        found = np.ascontiguousarray(found).reshape(count, -1)
        if mask is not None:
            whole = np.zeros((count, cohort.n), np.uint32)
            whole[:, mask] = found
            found = whole
        return found[0] if count == 1 else tuple(found)

    return Step((base,), writes, effect=effect)


def _store(context: Context) -> Step:
    count, turned = _form(context)
    context.expect(2)
    base, offset = shared_address(context, 0)
    values = context.values(context.operand(1), "u4")
    if len(values) != count:
        raise context.refuse(f"it has {len(values)} values, not {count}")

    def effect(cohort: Cohort, mask: Mask, addresses: Any, *registers: Any) -> None:
        check_whole(cohort, mask)
        places = _places(cohort, mask, plus(addresses, offset), count, "store")
        chosen = registers if mask is None else [each[mask] for each in registers]
        held = np.stack([each.reshape(-1, LANES) for each in chosen], 1).reshape(-1, count, 8, 4).view(np.uint16)
        if turned:
            held = np.ascontiguousarray(held.swapaxes(-1, -2))
        flat = places.ravel()
        cohort.wave.order.rows_written(cohort, mask, flat, 8 * count, _ROW)
        cohort.wave.machine.traffic.shared_rows(cohort, flat, 8 * count, _ROW)
        cohort.wave.shared.store(flat, np.ascontiguousarray(held).view(np.uint64).reshape(-1, 2), 8, 2)

    return Step((base, *values), effect=effect)


def _turn(context: Context) -> Step:
    if context.instruction.opcode != "movmatrix.sync.aligned.m8n8.trans.b16":
        raise context.refuse()
    context.expect(2)

    def effect(cohort: Cohort, mask: Mask, values: Any) -> Any:
        check_whole(cohort, mask)
        held = values.view(np.uint16).reshape(-1, 8, 8).swapaxes(-1, -2)
        return np.ascontiguousarray(held).view(np.uint32).ravel()

    return Step((context.read(1, "u4"),), context.written(0, "u4"), effect=effect)


# mma.sync ------------------------------------------------------------------------------------------------------------

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
RESULTS = {name: numpy_type(PTX_TYPES[name][0]) for name in ("f32", "f16", "s32", "f64")}
RESULT_KINDS = {name: "u4" if name == "f16" else kinds.TYPES[name] for name in RESULTS}
"""The view of each register of a result; it has two numbers of f16."""


def operands(context: Context, place: int, kind: str, count: int) -> tuple[Read, ...]:
    """The registers of a fragment."""
    operand = context.operand(place)
    found = context.values(operand, kind) if isinstance(operand, Vector) else (context.value(operand, kind),)
    if len(found) != count:
        raise context.refuse(f"a fragment has {count} registers, found {len(found)}")
    return found


def _multiply(context: Context) -> Step:
    parts = [part for part in context.instruction.modifiers if part not in ("satfinite",)]
    shape = _SHAPE.fullmatch(parts[2]) if len(parts) == 9 else None
    if shape is None or parts[:2] != ["sync", "aligned"] or parts[3:5] != ["row", "col"]:
        raise context.refuse()
    m, n, k = (int(each) for each in shape.groups())
    d_type, a_type, b_type, c_type = parts[5:]
    if (
        d_type not in RESULTS
        or c_type != d_type
        or a_type not in ELEMENTS
        or b_type not in ELEMENTS
        or n != 8
        or m != 16
    ):
        raise context.refuse()
    a_dtype, b_dtype, result = ELEMENTS[a_type], ELEMENTS[b_type], RESULTS[d_type]
    word = max(4, a_dtype.itemsize)
    per_register = word // a_dtype.itemsize
    if k % (4 * per_register) or a_dtype.itemsize != b_dtype.itemsize or (result == np.float64) != (a_type == "f64"):
        raise context.refuse()
    chunks = k // (4 * per_register)
    kind = "u8" if word == 8 else "u4"
    d_kind = RESULT_KINDS[d_type]
    d_count = 2 if d_type == "f16" else 4
    context.expect(4)
    writes = context.written(0, d_kind)
    if len(writes) != d_count:
        raise context.refuse(f"it has {len(writes)} results, not {d_count}")
    a = operands(context, 1, kind, 2 * chunks)
    b = operands(context, 2, kind, chunks)
    c = operands(context, 3, d_kind, d_count)

    product = multiply_as_f16 if result.kind == "f" and a_dtype.itemsize == 1 else multiply

    def effect(cohort: Cohort, mask: Mask, *registers: Any) -> Any:
        check_whole(cohort, mask)
        first, second = registers[: len(a)], registers[len(a) : len(a) + len(b)]
        old = fragments.accumulator(registers[len(a) + len(b) :], result)
        warps = len(cohort.warps) if mask is None else int(np.count_nonzero(mask)) // LANES
        cohort.wave.machine.traffic.product(cohort, warps, m, n, k)
        return fragments.to_registers(
            product(fragments.left(first, a_dtype), fragments.right(second, b_dtype), old, result)
        )

    return Step((*a, *b, *c), writes, effect=effect)


BUILDERS: Builders = {"ldmatrix": _load, "stmatrix": _store, "movmatrix": _turn, "mma": _multiply}
