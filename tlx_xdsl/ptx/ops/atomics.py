"""Atomic operations (PTX ISA, "atom", "red").

The threads of an instruction take effect one after the other in the order of their numbers. Scopes and orders count
for what is compared in global memory (`global_order.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.elementwise import EXTREMA

from ..arithmetic.kinds import KINDS, PLAIN, TYPES
from ..cohort import Cohort
from ..global_order import Sync, sync_of
from ..read.syntax import SINK
from ..steps import Builders, Context, Step
from .memory import Mask, load_rows, space_of, store_rows, wide_address

Update: TypeAlias = Callable[..., Any]
_IGNORED = (
    "relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "global", "shared", "shared::cta",
    "shared::cluster", "noftz", "L2::cache_hint", "sc", "async",
)  # fmt: skip
_LANES = {"v2": 2, "v4": 4, "v8": 8}


def _increase(old: Any, most: Any) -> Any:
    one = np.ones_like(old)
    return cast(Any, np.where)(old >= most, old - old, old + one)


def _decrease(old: Any, most: Any) -> Any:
    one = np.ones_like(old)
    return cast(Any, np.where)((old == 0) | (old > most), most, old - one)


def _swap(old: Any, new: Any) -> Any:
    return new


def _compare_and_swap(old: Any, expected: Any, new: Any) -> Any:
    return cast(Any, np.where)(old == expected, new, old)


_UPDATES: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "exch": _swap, "cas": _compare_and_swap, "inc": _increase, "dec": _decrease,
}  # fmt: skip


def _build(context: Context) -> Step:
    name, type_, lanes = "", "", 1
    for part in context.instruction.modifiers:
        if part in _UPDATES:
            name = part
        elif part in TYPES:
            type_ = part
        elif part in _LANES:
            lanes = _LANES[part]
        elif part not in _IGNORED:
            raise context.refuse(f"'.{part}' is not known")
    returns = context.instruction.name == "atom"
    if not name or not type_ or type_ == "b128":
        raise context.refuse()
    kind = KINDS[TYPES[type_]]
    update = _UPDATES[name]
    if kind.dtype.kind not in "ui":
        if name not in ("add", "min", "max", "exch"):
            raise context.refuse()
        if name in ("min", "max"):
            update = EXTREMA[name, False]
    first = 1 if returns else 0
    extra = 2 if name == "cas" else 1
    context.expect(first + 1 + extra, first + 2 + extra)
    target = context.operand(0)
    plain = PLAIN[kind.size]
    writes = context.result(target, plain) if returns else ()
    if returns and target == SINK:
        writes = ()
    base, offset = context.address(context.operand(first), "u8")
    values = [context.values(context.operand(first + 1 + place), plain) for place in range(extra)]
    if any(len(each) != lanes for each in values):
        raise context.refuse(f"it has {len(values[0])} values, not {lanes}")
    space = space_of(context)
    return Step(
        (wide_address(context, base), *(read for each in values for read in each)), writes,
        effect=_run(space, offset, kind.dtype, kind.size, lanes, update, extra, bool(writes),
                    sync_of(context.instruction.modifiers, is_atomic=True)),
    )  # fmt: skip


def _run(
    space: str,
    offset: int,
    dtype: np.dtype[Any],
    size: int,
    lanes: int,
    update: Update,
    extra: int,
    returns: bool,
    sync: Sync,
) -> Callable[..., Any]:
    plain = np.dtype(f"u{size}")

    def run(cohort: Cohort, mask: Mask, base: Array, *values: Array) -> Any:
        chosen = np.arange(cohort.n) if mask is None else np.flatnonzero(mask)
        operands = [
            np.stack(values[place * lanes : (place + 1) * lanes], -1)[chosen].view(plain) for place in range(extra)
        ]
        addresses = base[chosen]
        old = np.zeros((cohort.n, lanes), plain)
        for group in _apart(addresses):
            threads = chosen[group]
            where = np.zeros(cohort.n, np.bool_)
            where[threads] = True
            order = np.argsort(threads)
            sorted_ = group[order]
            found = load_rows(cohort, where, space, addresses[sorted_], offset, size, lanes, atomic=True)
            held = found.reshape(-1, lanes)
            old[threads[order]] = held
            parts = [np.ascontiguousarray(each[sorted_]).view(dtype) for each in operands]
            new = np.ascontiguousarray(update(np.ascontiguousarray(held).view(dtype), *parts).astype(dtype)).view(plain)
            rows = new.reshape(-1, lanes) if lanes > 1 else new.reshape(-1)
            store_rows(cohort, where, space, addresses[sorted_], offset, rows, size, lanes, atomic=True, sync=sync)
        if not returns:
            return None
        return old[:, 0] if lanes == 1 else tuple(np.ascontiguousarray(old.T))

    return run


def _apart(addresses: Array) -> list[NDArray[np.int64]]:
    """Groups of accesses to different addresses, in such an order that accesses to one address keep theirs."""
    order = np.argsort(addresses, kind="stable")
    if not len(order):
        return []
    same = addresses[order][1:] == addresses[order][:-1]
    if not same.any():
        return [np.arange(len(addresses))]
    ranks = np.zeros(len(order), np.int64)
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return [np.flatnonzero(ranks == rank) for rank in range(int(ranks.max()) + 1)]


BUILDERS: Builders = {"atom": _build, "red": _build}
