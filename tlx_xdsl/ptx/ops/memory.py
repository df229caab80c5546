"""Loads and stores (PTX ISA, "ld", "st", "ld.param", "prefetch").

Orders and scopes of single accesses (`.relaxed`, `.acquire`, `.release`, `.volatile`) count in global memory, for what
is compared there: a wave runs one instruction after the other. Cache hints change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array

from ..arithmetic.kinds import KINDS, PLAIN, TYPES
from ..cohort import Cohort
from ..global_order import Sync, sync_of
from ..memory.surroundings import Trap
from ..read.symbols import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from ..read.syntax import Register, Symbol
from ..steps import Builders, Context, Read, Step, Write


class Nothing:
    """Has every method: the clocks of a run that compares no accesses, counters that do not count."""

    def __getattr__(self, name: str) -> Any:
        return _nothing


def _nothing(*_args: Any, **_named: Any) -> None:
    return None


Mask: TypeAlias = "NDArray[np.bool_] | None"
PLAIN_ACCESS = Sync()
_SPACES = ("global", "shared", "param", "const", "local")
_IGNORED = (
    "weak", "relaxed", "acquire", "release", "volatile", "mmio", "cta", "cluster", "gpu", "sys", "nc", "ca", "cg", "cs",
    "lu", "cv", "wb", "wt", "unified",
)  # fmt: skip
LANES = {"v2": 2, "v4": 4, "v8": 8}


def space_of(context: Context) -> str:
    """The state space that an instruction names, or `generic`."""
    for part in context.instruction.modifiers:
        if (space := part.split("::")[0]) in _SPACES and not part.startswith("shared::cluster.."):
            return space
    return "generic"


def _form(context: Context) -> tuple[str, str, int]:
    """The state space, the type and the number of elements of a load or a store."""
    type_, lanes = "", 1
    for part in context.instruction.modifiers:
        if part in TYPES and part != "pred":
            type_ = part
        elif part in LANES:
            lanes = LANES[part]
        elif part.split("::")[0] not in (*_SPACES, *_IGNORED, "L1", "L2", "level"):
            raise context.refuse(f"'.{part}' is not known")
    if not type_:
        raise context.refuse("it has no type")
    return space_of(context), type_, lanes


def build_load(context: Context) -> Step:
    """`ld`."""
    space, type_, lanes = _form(context)
    context.expect(2, 3)
    base, offset = context.address(context.operand(1), "u8")
    space = _home_space(context, base, space)
    writes = _results(context, TYPES[type_], lanes)
    if type_ == "b128":
        raise context.refuse("loads of 128 bits in one register")
    item = KINDS[TYPES[type_]].size
    kind = KINDS[TYPES[type_]].dtype
    if KINDS[TYPES[type_]].lanes > 1:
        raise context.refuse("a packed type")
    return Step((wide_address(context, base),), writes, effect=_load(space, offset, item, lanes, kind, _sync(context)))


def _sync(context: Context) -> Sync:
    return sync_of(context.instruction.modifiers)


def _results(context: Context, kind: str, lanes: int) -> tuple[Write, ...]:
    writes = context.written(0, kind)
    if len(writes) != lanes:
        raise context.refuse(f"it has {len(writes)} results, not {lanes}")
    return writes


def wide_address(context: Context, base: Read) -> Read:
    """An address in a register of 32 bits stands for one of 64, with zeros above."""
    operand, _ = base
    if isinstance(operand, Register) and context.function.registers[operand.number][1] in ("b32", "u32", "s32"):
        return operand, "u4"
    return operand, "u8"


def _home_space(context: Context, base: Read, space: str) -> str:
    """The state space of an address: arguments of calls are in local memory here."""
    operand, _ = base
    if space == "param" and isinstance(operand, Symbol):
        home = context.symbols.homes.get(operand.name)
        return "local" if home is not None and home.space == "local" else space
    return space


def _load(space: str, offset: int, item: int, lanes: int, dtype: np.dtype[Any], sync: Sync) -> Callable[..., Any]:
    plain = np.dtype(f"u{item}")

    def run(cohort: Cohort, mask: Mask, base: Array) -> Any:
        addresses = base if mask is None else base[mask]
        if not len(addresses):
            return zeros
        rows = load_rows(cohort, mask, space, addresses, offset, item, lanes, sync=sync)
        if mask is not None:
            whole = np.zeros((cohort.n, lanes) if lanes > 1 else cohort.n, plain)
            whole[mask] = rows
            rows = whole
        if lanes == 1:
            return rows.view(dtype)
        return tuple(np.ascontiguousarray(rows.T).view(dtype))

    zero = np.zeros(1, plain).view(dtype)
    zeros = zero if lanes == 1 else (zero,) * lanes
    return run


def load_rows(
    cohort: Cohort,
    mask: Mask,
    space: str,
    addresses: Array,
    offset: int,
    item: int,
    lanes: int,
    *,
    atomic: bool = False,
    sync: Sync = PLAIN_ACCESS,
) -> Array:
    """Return what memory holds at addresses of the threads of the mask: a row of elements for each, or one element.

    The order of an atomic operation is that of its store.
    """
    wide = addresses.astype(np.uint64) + np.uint64(offset % (1 << 64))
    if space == "generic":
        space, wide = from_generic(wide)
    match space:
        case "shared":
            shared = cohort.wave.shared
            places = shared.places(cohort, wide & np.uint64(0xFFFFFFFF), mask, item * lanes, "load")
            if not atomic:
                cohort.wave.order.load(cohort, mask, places, item * lanes)
            cohort.wave.machine.traffic.shared_access(cohort, mask, places, item * lanes)
            return shared.load(places, item, lanes)
        case "param":
            return cohort.wave.machine.parameters.load(wide, item, lanes)
        case "local":
            return cohort.wave.machine.local_memory(cohort.wave).load(_local(cohort, mask, wide), item, lanes)
        case _:
            cohort.wave.machine.traffic.global_access(cohort, mask, wide, item * lanes)
            found = cohort.wave.machine.memory.load(wide, item, lanes)
            if not atomic:
                cohort.wave.order.global_access(cohort, mask, wide, item * lanes, sync, "read")
            return found


def store_rows(
    cohort: Cohort,
    mask: Mask,
    space: str,
    addresses: Array,
    offset: int,
    values: Array,
    item: int,
    lanes: int,
    *,
    atomic: bool = False,
    sync: Sync = PLAIN_ACCESS,
) -> None:
    """Write a row of elements, or one element, at addresses of the threads of the mask.

    With `atomic` it is the second half of an atomic operation, which counts as one access: its load.
    """
    traffic = Nothing() if atomic else cohort.wave.machine.traffic
    wide = addresses.astype(np.uint64) + np.uint64(offset % (1 << 64))
    if space == "generic":
        space, wide = from_generic(wide)
    match space:
        case "shared":
            shared = cohort.wave.shared
            places = shared.places(cohort, wide & np.uint64(0xFFFFFFFF), mask, item * lanes, "store")
            order = cohort.wave.order
            (order.update if atomic else order.store)(cohort, mask, places, item * lanes)
            traffic.shared_access(cohort, mask, places, item * lanes)
            shared.store(places, values, item, lanes)
        case "local":
            cohort.wave.machine.local_memory(cohort.wave).store(_local(cohort, mask, wide), values, item, lanes)
        case "param" | "const":
            raise Trap(f"a store to the state space '{space}'")
        case _:
            traffic.global_access(cohort, mask, wide, item * lanes)
            cohort.wave.machine.memory.store(wide, values, item, lanes)
            what = "update" if atomic else "write"
            cohort.wave.order.global_access(cohort, mask, wide, item * lanes, sync, what)


def _local(cohort: Cohort, mask: Mask, wide: NDArray[np.uint64]) -> NDArray[np.uint64]:
    threads = cohort.threads if mask is None else cohort.threads[mask]
    return wide + cohort.wave.machine.local_start(threads)


def from_generic(addresses: NDArray[np.uint64]) -> tuple[str, NDArray[np.uint64]]:
    """The state space of generic addresses, and the addresses in it.

    Raises Trap when they are of several state spaces.
    """
    low, high = int(addresses.min()), int(addresses.max())
    for window, space in ((LOCAL_WINDOW, "local"), (PARAM_WINDOW, "param"), (SHARED_WINDOW, "shared")):
        if low >= window:
            return space, addresses - np.uint64(window)
        if high >= window:
            raise Trap("threads access several state spaces by generic addresses at once")
    return "global", addresses


def build_store(context: Context) -> Step:
    """`st`."""
    space, type_, lanes = _form(context)
    context.expect(2, 3)
    base, offset = context.address(context.operand(0), "u8")
    space = _home_space(context, base, space)
    kind = KINDS[TYPES[type_]]
    if type_ == "b128" or kind.lanes > 1:
        raise context.refuse("a packed type")
    view = kind.name if kind.name in ("f4", "f8") else PLAIN[kind.size]
    values = context.values(context.operand(1), view)
    if len(values) != lanes:
        raise context.refuse(f"it has {len(values)} values, not {lanes}")
    return Step((wide_address(context, base), *values), effect=_store(space, offset, kind.size, lanes, _sync(context)))


def _store(space: str, offset: int, item: int, lanes: int, sync: Sync) -> Callable[..., Any]:
    plain = np.dtype(f"u{item}")

    def run(cohort: Cohort, mask: Mask, base: Array, *values: Array) -> None:
        if lanes == 1:
            rows = values[0].view(plain)
        else:
            rows = np.empty((cohort.n, lanes), plain)
            for place, each in enumerate(values):
                rows[:, place] = each.view(plain)
        if mask is not None:
            base, rows = base[mask], rows[mask]
        store_rows(cohort, mask, space, base, offset, rows, item, lanes, sync=sync)

    return run


BUILDERS: Builders = {"ld": build_load, "ldu": build_load}
