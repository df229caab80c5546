"""Products of warp groups (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate").

A product is computed when it is issued. That its shared memory belongs to it until `wait_group` is what the clocks know
(`clocks.py`), and `registers_in_flight.py` what registers do.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Integers

from ..arithmetic import fragments
from ..arithmetic.products import ELEMENTS, multiply
from ..cohort import LANES, Cohort
from ..memory.descriptors import UNIT, of_wgmma, units
from ..memory.surroundings import Trap
from ..read.syntax import Number, Vector
from ..steps import Builders, Context, Step
from .copies import commit_group, wait_group
from .matrices import RESULT_KINDS, RESULTS, check_whole
from .memory import Mask

GROUP = 4
"""Warps of a warp group."""
_SHAPE = re.compile(r"m64n(\d+)k(\d+)")
_BYTES_OF_K = 32


def _build(context: Context) -> Step:
    parts = list(context.instruction.modifiers)
    match parts:
        case ["fence", "sync", "aligned"]:
            context.expect(0)
            return Step(effect=_fence)
        case ["commit_group", "sync", "aligned"]:
            return commit_group(context, "wgmma")
        case ["wait_group", "sync", "aligned"]:
            return wait_group(context, "wgmma")
        case ["mma_async", "sync", "aligned", shape, d_type, a_type, b_type, *more] if set(more) <= {"satfinite"}:
            return _product(context, shape, d_type, a_type, b_type)
        case _:
            raise context.refuse()


def _fence(cohort: Cohort, mask: Mask) -> None:
    check_groups(cohort, mask)


def check_groups(cohort: Cohort, mask: Mask) -> Integers:
    """The CTA of each warp group.

    Raises Trap where a group is not whole.
    """
    check_whole(cohort, mask)
    if mask is not None and not mask.all():
        raise Trap("a guard that not all threads of a warp group agree on")
    warps = cohort.warps
    if (
        len(warps) % GROUP
        or (warps[::GROUP] % GROUP).any()
        or (warps[GROUP - 1 :: GROUP] - warps[::GROUP] != GROUP - 1).any()
    ):
        raise Trap("not all warps of a warp group run this instruction together")
    return cohort.ctas[:: GROUP * LANES]


def _product(context: Context, shape: str, d_type: str, a_type: str, b_type: str) -> Step:
    found = _SHAPE.fullmatch(shape)
    if found is None or d_type not in ("f32", "f16", "s32") or a_type not in ELEMENTS or b_type not in ELEMENTS:
        raise context.refuse()
    n, k = int(found[1]), int(found[2])
    a_dtype, b_dtype, result = ELEMENTS[a_type], ELEMENTS[b_type], RESULTS[d_type]
    if k * a_dtype.itemsize != _BYTES_OF_K or a_dtype.itemsize != b_dtype.itemsize or n % 8 or not 8 <= n <= 256:
        raise context.refuse()
    d_kind = RESULT_KINDS[d_type]
    count = n // 4 if d_type == "f16" else n // 2
    operands = context.instruction.operands
    context.expect(*range(4, 9))
    writes = context.result(operands[0], d_kind)
    if len(writes) != count:
        raise context.refuse(f"it has {len(writes)} results, not {count}")
    old = context.values(operands[0], d_kind)
    in_registers = isinstance(operands[1], Vector)
    a = context.values(operands[1], "u4") if in_registers else (context.value(operands[1], "u8"),)
    if in_registers and len(a) != 4:
        raise context.refuse(f"A has {len(a)} registers, not 4")
    b = context.value(operands[2], "u8")
    uses = context.value(operands[3], "b")
    signs, turn_a, turn_b = _constants(context, in_registers=in_registers, is_float=d_type != "s32")

    def effect(cohort: Cohort, mask: Mask, *values: Any) -> Any:
        ctas = check_groups(cohort, mask)
        registers, first = values[:count], values[count : count + len(a)]
        descriptor, use = values[-2], values[-1]
        step = GROUP * LANES
        token = cohort.wave.order.issue_groups(cohort, "wgmma")
        if in_registers:
            left_matrix = fragments.left(first, a_dtype).reshape(len(ctas), 64, k)
        else:
            left_matrix = operand_matrix(cohort, token, ctas, first[0][::step], 64, a_dtype, turned=turn_a)
        right_matrix = operand_matrix(cohort, token, ctas, descriptor[::step], n, b_dtype, turned=turn_b)
        if signs[0] * signs[1] < 0:
            left_matrix = -left_matrix
        cohort.wave.machine.traffic.product(cohort, len(ctas), 64, n, k)
        before = None
        if use.any():
            before = fragments.accumulator(registers, result).reshape(len(ctas), 64, n)
            if not use.all():
                before = np.where(use[::step, None, None], before, result.type(0))
        product = multiply(left_matrix, right_matrix.swapaxes(-1, -2), before, result)
        return fragments.to_registers(product.reshape(-1, 16, n))

    return Step((*old, *a, b, uses), writes, effect=effect)


def _constants(context: Context, *, in_registers: bool, is_float: bool) -> tuple[tuple[int, ...], bool, bool]:
    """The signs of A and B, and whether they are turned."""
    constants: list[int] = []
    for operand in context.instruction.operands[4:]:
        if not isinstance(operand, Number):
            raise context.refuse("scales and transpositions are constants")
        constants.append(operand.value)
    scales, turns = (constants[:2], constants[2:]) if is_float else ([], [])
    if in_registers:
        turns = [0, *turns]
    if any(scale not in (1, -1) for scale in scales) or any(turn not in (0, 1) for turn in turns):
        raise context.refuse("a scale is 1 or -1, and a transposition 0 or 1")
    turn_a, turn_b = (*turns, 0, 0)[:2]
    return (*scales, 1, 1)[:2], bool(turn_a), bool(turn_b)


def operand_matrix(
    cohort: Cohort,
    token: Any,
    ctas: Integers,
    descriptors: NDArray[np.uint64],
    outer: int,
    dtype: np.dtype[Any],
    *,
    turned: bool,
) -> NDArray[Any]:
    """The operands of [outer, K] that descriptors name, one for each warp group."""
    shared = cohort.wave.shared
    size = dtype.itemsize
    places = np.stack(
        [
            units(of_wgmma(int(each)), outer, _BYTES_OF_K, k_major=not turned, size=size)
            + cta * (shared.stride // UNIT)
            for each, cta in zip(descriptors, ctas, strict=True)
        ]
    )
    flat = places.reshape(len(ctas), -1)
    cohort.wave.order.groups_read(token, flat, UNIT)
    if int(flat.max()) >= len(shared.rows16):
        raise Trap("an operand lies past the end of shared memory")
    shared.check_units(flat.ravel())
    held = shared.rows16[flat.ravel()].view(dtype)
    if turned:
        return held.reshape(len(ctas), _BYTES_OF_K // size, outer).swapaxes(-1, -2)
    return held.reshape(len(ctas), outer, _BYTES_OF_K // size)


BUILDERS: Builders = {"wgmma": _build}
