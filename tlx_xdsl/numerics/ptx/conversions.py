"""Conversions between numbers (PTX ISA, "cvt")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Array, Unary
from ..rounding import (
    integer_to,
    nearest_tf32,
    round_at_random,
    round_to,
    round_to_integer,
    truncate_to,
)
from .bits import reverse
from .instructions import TYPES, Build, Compiled, PtxType, Vectors, flushed

_WHOLE: dict[str, Any] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
"""Roundings to integers."""
_KNOWN = {*_WHOLE, "rn", "rz", "rna", "ftz", "sat", "satfinite", "relu"}


def _convert(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    if "rs" in modifiers:
        return _at_random(modifiers, types)
    if not modifiers <= _KNOWN or len(types) != 2:
        return None
    target, source = types
    if target.name == "tf32":
        return Compiled((source,), target, nearest_tf32) if "rna" in modifiers else None
    if target.lanes == 2 and source.lanes == 1:
        # The first operand goes to the upper half.
        return Compiled((source, source), target, lambda high, low: _pair(low, high, modifiers, source, target))
    if target.lanes != source.lanes:
        return None
    single: Unary = lambda values: convert(values, modifiers, source, target)  # noqa: E731
    return Compiled((source,), target, single)


def _at_random(modifiers: frozenset[str], types: Sequence[PtxType]) -> Compiled | None:
    """Stochastic rounding of two or four numbers, the first one to the upper end, with 32 random bits.

    Each half of the bits rounds the numbers of its half of the result; of four, the upper one of a half takes these
    bits in reverse.
    """
    if modifiers - {"rs", "satfinite"} or len(types) != 2 or types[1].name != "f32" or types[0].lanes not in (2, 4):
        return None
    target, source = types
    reverses = target.lanes == 4

    def run(*operands: Array) -> Array:
        *values, bits = operands
        halves = [bits & np.uint32(0xFFFF), bits >> np.uint32(16)]
        columns: list[Array] = []
        for place, value in enumerate(reversed(values)):
            chosen = halves[place * 2 // target.lanes]
            if reverses and place % 2:
                chosen = reverse(chosen << np.uint32(16), np.dtype(np.uint32))
            columns.append(round_at_random(value, chosen / 2.0**16, target.dtype))
        return np.stack(columns, -1)

    return Compiled((*[source] * target.lanes, TYPES["b32"]), target, run, Vectors.SPREAD)


def _pair(low: Array, high: Array, modifiers: frozenset[str], source: PtxType, target: PtxType) -> Array:
    return np.stack([convert(part, modifiers, source, target) for part in (low, high)], -1)


def convert(values: Array, modifiers: frozenset[str], source: PtxType, target: PtxType) -> Array:
    """Numbers of one type as numbers of another one."""
    if "ftz" in modifiers and source.name == "f32":
        values = flushed(values)
    whole = next((_WHOLE[name] for name in modifiers if name in _WHOLE), None)
    if source.is_float and not target.is_float:
        return round_to_integer(values, target.dtype, whole or np.trunc)
    if not source.is_float:
        return _from_integer(values, modifiers, target)
    if whole is not None:
        values = whole(values.astype(np.float64))
    result = (
        truncate_to(values, target.dtype)
        if "rz" in modifiers
        else round_to(values, target.dtype, saturates="satfinite" in modifiers)
    )
    if "relu" in modifiers:
        result = np.where(result < 0, target.dtype.type(0), result)
    if "sat" in modifiers:
        result = np.where(np.isnan(result), 0, np.clip(result.astype(np.float64), 0, 1)).astype(target.dtype)
    return flushed(result) if "ftz" in modifiers and target.name == "f32" else result


def _from_integer(values: Array, modifiers: frozenset[str], target: PtxType) -> Array:
    if target.is_float:
        return integer_to(values, target.dtype)
    if "sat" not in modifiers:
        return values.astype(target.dtype)
    limits, own = np.iinfo(target.dtype), np.iinfo(values.dtype)
    return np.clip(values, max(limits.min, own.min), min(limits.max, own.max)).astype(target.dtype)


CONVERSIONS: dict[str, Build] = {"cvt": _convert}
"""The builders of conversions."""
