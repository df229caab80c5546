"""Tensor maps that a kernel makes (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy")."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cohort import Cohort
from ..memory.tensor_map import FIELDS, TENSOR_MAP_BYTES
from ..read.syntax import Number
from ..steps import Builders, Context, Step
from .memory import Mask, load_rows, space_of, store_rows

_NUMBERED = {"global_dim": 4, "global_stride": 8, "box_dim": 4, "element_stride": 4}
"""Bytes of each entry."""


def _build(context: Context) -> Step:
    parts = context.instruction.modifiers
    if parts and parts[0] == "cp_fenceproxy":
        return _publish(context)
    if len(parts) < 3 or parts[0] != "replace" or parts[1] != "tile" or parts[2] not in FIELDS:
        raise context.refuse()
    name = parts[2]
    place = FIELDS[name]
    base, offset = context.address(context.operand(0), "u8")
    operands = context.instruction.operands
    if name in _NUMBERED:
        context.expect(3)
        number = operands[1]
        if not isinstance(number, Number) or not 0 <= number.value < 5:
            raise context.refuse("the dimension is a constant from 0 to 4")
        place += number.value * _NUMBERED[name]
        size = _NUMBERED[name]
    else:
        context.expect(2)
        size = 8 if name == "global_address" else 1
    kind = "u8" if size == 8 else "u4"
    value = context.value(operands[-1], kind)
    space = space_of(context)

    def effect(cohort: Cohort, mask: Mask, addresses: Any, values: Any) -> None:
        chosen = np.arange(cohort.n) if mask is None else np.flatnonzero(mask)
        for byte in range(size):
            data = (values[chosen] >> values.dtype.type(8 * byte)).astype(np.uint8)
            store_rows(cohort, mask, space, addresses[chosen], offset + place + byte, data, 1, 1)

    return Step((base, value), effect=effect)


def _publish(context: Context) -> Step:
    """A copy of 128 bytes from shared to global memory by a warp."""
    context.expect(3)
    target, offset = context.address(context.operand(0), "u8")
    source, source_offset = context.address(context.operand(1), "u8")

    def effect(cohort: Cohort, mask: Mask, targets: Any, sources: Any) -> None:
        first = np.zeros(cohort.n, np.bool_)
        first[cohort.first_lanes] = True
        if mask is not None:
            first &= mask
        for byte in range(0, TENSOR_MAP_BYTES, 8):
            data = load_rows(cohort, first, "shared", sources[first], source_offset + byte, 8, 1)
            store_rows(cohort, first, "global", targets[first], offset + byte, data, 8, 1)

    return Step((target, source), effect=effect)


BUILDERS: Builders = {"tensormap": _build}
