"""Destination registers and what compute threads do with them.

The registers go around: the math processor acquires them, computes, and commits; the pack processor waits for them,
packs, and releases. A register holds nothing after `tile_regs_acquire` until something is written to it; only what
accumulates (`matmul_tiles`, `reduce_tile`) then begins with zeros. A value that no operation reads was written to the
wrong register, or is read from the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import location_of
from tlx_xdsl.numerics.arrays import Array, Dtype
from tlx_xdsl.ttl.elementwise import FUNCTIONS, Function
from tlx_xdsl.ttl.formats import format_for
from tlx_xdsl.ttl.tiles import TILE, from_faces, to_faces

from . import tile_math
from .circular_buffers import read_tile, reserved_tile
from .machine import CircularBuffer, CoreThread, wrong
from .translate import Builder, Local, attribute, integers

PHASES = {
    "released": "released: expected 'tile_regs_acquire' before",
    "acquired": "with the math processor: expected 'tile_regs_commit' before",
    "committed": "committed: expected 'tile_regs_wait' before",
    "waited": "with the pack processor: expected 'tile_regs_release' before",
}
"""What the registers are, and what makes them something else."""


@dataclass(eq=False)
class Register:
    """Content of a destination register."""

    value: Array
    op: Operation
    """What has written it."""
    read: bool = False
    reduced: tuple[int, ...] | None = None
    """The dimensions of the reduction whose result it is."""


@dataclass(eq=False)
class Registers:
    """The destination registers of a core."""

    capacity: int
    phase: str = "released"
    since: Operation | None = None
    held: dict[int, Register] = field(default_factory=dict[int, Register])
    accumulates: bool = False
    """Whether the packer adds to what is in memory."""
    masks: tuple[int, ...] | None = None
    """The dimensions of the reduction for which the packer writes zeros beside the result."""
    used: int = 0
    """Registers used so far."""
    tilized: int | None = None
    """The tiles in a row where the unpacker reads rows of elements."""
    untilized: tuple[int, int] | None = None
    """The tiles of a part, and in a row, where the packer writes rows of elements."""


def expect_phase(op: Operation, thread: CoreThread, phase: str) -> Registers:
    """The registers, which must be in this phase."""
    registers: Registers = thread.registers
    if registers.phase != phase:
        notes = [] if registers.since is None else [f"{location_of(registers.since)}: since here"]
        raise wrong(
            op, thread, f"calls '{op.name.partition('.')[2]}' when the registers are {PHASES[registers.phase]}", notes
        )
    return registers


def _change(before: str, after: str) -> Builder:
    def build(op: Operation) -> Local:
        def run(thread: CoreThread) -> None:
            registers = expect_phase(op, thread, before)
            registers.phase, registers.since = after, op
            if after == "released":
                if thread.machine.checks:
                    _check_all_read(op, thread, registers)
                registers.held.clear()

        return run

    return build


def _check_all_read(op: Operation, thread: CoreThread, registers: Registers) -> None:
    for index, register in registers.held.items():
        if not register.read:
            raise wrong(
                register.op, thread, f"writes register {index}, which nothing reads before it is released",
                [f"{location_of(op)}: the registers are released here"],
            )  # fmt: skip


def register_of(op: Operation, thread: CoreThread, index: int, phase: str = "acquired") -> Register:
    """The register that an operation reads."""
    registers = expect_phase(op, thread, phase)
    _check_index(op, thread, registers, index)
    found = registers.held.get(index)
    if found is None:
        holds = ", ".join(map(str, sorted(registers.held))) or "none"
        raise wrong(op, thread, f"reads register {index}, which holds nothing: those that do are {holds}")
    found.read = True
    return found


def _put(op: Operation, thread: CoreThread, index: int, value: Array) -> None:
    """Write a register."""
    registers = expect_phase(op, thread, "acquired")
    _check_index(op, thread, registers, index)
    before = registers.held.get(index)
    if before is not None and not before.read and thread.machine.checks:
        raise wrong(
            op, thread, f"overwrites register {index}, which nothing has read",
            [f"{location_of(before.op)}: it is written here"],
        )  # fmt: skip
    registers.held[index] = Register(value, op)
    registers.used = max(registers.used, index + 1)


def _check_index(op: Operation, thread: CoreThread, registers: Registers, index: int) -> None:
    if not 0 <= index < registers.capacity:
        raise wrong(op, thread, f"uses register {index}, but the registers are 0 to {registers.capacity - 1}")


def _tile(op: Operation, thread: CoreThread, buffer: CircularBuffer, index: int) -> Array:
    """A tile of a circular buffer, as rows of what registers hold."""
    if thread.registers.tilized is not None:
        raise wrong(op, thread, "reads a tile while the unpacker reads rows: expected 'tilize_uninit' before")
    return from_faces(read_tile(op, thread, buffer, index))


# From circular buffers, and to them ----------------------------------------------------------------------------------


def copy_tile(op: Operation) -> Local:
    """Copy a tile to a register."""

    def run(thread: CoreThread, buffer: CircularBuffer, index: int, dst: int) -> None:
        expect_phase(op, thread, "acquired")
        _put(op, thread, dst, _tile(op, thread, buffer, index))

    return run


def pack_tile(op: Operation) -> Local:
    """Write a register to a reserved place, rounded to the type of the tile."""
    return partial(_pack, op)


def pack_tile_block(op: Operation) -> Local:
    """Write registers to the next places that were reserved."""

    def run(thread: CoreThread, dst: int, buffer: CircularBuffer, count: int) -> None:
        for number in range(count):
            _pack(op, thread, dst + number, buffer, buffer.packed)
            buffer.packed += 1

    return run


def _pack(op: Operation, thread: CoreThread, dst: int, buffer: CircularBuffer, index: int) -> None:
    register = register_of(op, thread, dst, "waited")
    registers: Registers = thread.registers
    start = reserved_tile(op, thread, buffer, index)
    end = start + buffer.page_bytes
    core, value = thread.core, register.value
    if registers.untilized is not None:
        raise wrong(op, thread, "packs a tile while the packer writes rows: expected 'pack_untilize_uninit' before")
    if registers.masks is not None and register.reduced != registers.masks:
        raise wrong(
            op, thread,
            "packs with the mask of a reduction what is no result of it: expected 'reduce_uninit' before",
            [f"{location_of(register.op)}: the register is written here"],
        )  # fmt: skip
    if register.reduced is not None and registers.masks is None:
        raise wrong(
            op,
            thread,
            "packs the result of a reduction without 'reduce_init' before: what is beside it is undefined",
        )
    if registers.accumulates:
        if not core.valid[start:end].all():
            raise wrong(op, thread, f"adds to tile {index} of {buffer.label}, which was not written")
        value = value + from_faces(buffer.format.unpack(core.memory[start:end]))
    elif core.valid[start:end].any() and thread.machine.checks:
        raise wrong(op, thread, f"packs into tile {index} of {buffer.label} once more, and overwrites what it has")
    if value.dtype != buffer.format.register:
        raise wrong(
            op, thread, f"packs {value.dtype} numbers into {buffer.label}, whose tiles are of {buffer.format.name}",
            [f"{location_of(register.op)}: the register is written here"],
        )  # fmt: skip
    core.store(start, buffer.format.pack(to_faces(value)))


def _accumulate_in_memory(op: Operation) -> Local:
    def run(thread: CoreThread, enabled: int) -> None:
        thread.registers.accumulates = bool(enabled)

    return run


def _fpu(function: Callable[[Array, Array], Array]) -> Builder:
    """An operation of the matrix unit on tiles of two buffers."""

    def build(op: Operation) -> Local:
        def run(thread: CoreThread, a: CircularBuffer, b: CircularBuffer, i: int, j: int, dst: int) -> None:
            expect_phase(op, thread, "acquired")
            with np.errstate(all="ignore"):
                _put(op, thread, dst, function(_tile(op, thread, a, i), _tile(op, thread, b, j)))

        return run

    return build


def matmul_tiles(op: Operation) -> Local:
    """Add the product of two tiles to a register."""

    def run(thread: CoreThread, a: CircularBuffer, b: CircularBuffer, i: int, j: int, dst: int) -> None:
        expect_phase(op, thread, "acquired")
        with np.errstate(all="ignore"):
            part = _tile(op, thread, a, i) @ _tile(op, thread, b, j)
            _put(op, thread, dst, _added(op, thread, dst, part, "sum"))

    return run


def matmul_block(op: Operation) -> Local:
    """Add the products of a column of tiles and a row of tiles to registers."""
    one = matmul_tiles(op)

    def run(
        thread: CoreThread, a: CircularBuffer, b: CircularBuffer,
        i: int, j: int, dst: int, transpose: int, ct: int, rt: int, kt: int,
    ) -> None:  # fmt: skip
        if transpose:
            raise wrong(op, thread, "multiplies transposed tiles, which this machine does not")
        for row, column in product(range(rt), range(ct)):
            one(thread, a, b, i + row * kt, j + column, dst + row * ct + column)

    return run


def reduce_tile(op: Operation) -> Local:
    """Reduce a tile, and add it to a register or compare it with what is there."""
    dims, kind = integers(op, "dims"), attribute(op, "kind")
    word = kind.data if isinstance(kind, StringAttr) else "sum"

    def run(thread: CoreThread, a: CircularBuffer, scaler: CircularBuffer, i: int, j: int, dst: int) -> None:
        expect_phase(op, thread, "acquired")
        scale = _tile(op, thread, scaler, j)[0, 0]
        with np.errstate(all="ignore"):
            part = tile_math.reduce(word, _tile(op, thread, a, i), dims) * scale
            _put(op, thread, dst, _added(op, thread, dst, part, word))
        thread.registers.held[dst].reduced = dims

    return run


def _added(op: Operation, thread: CoreThread, dst: int, part: Array, kind: str) -> Array:
    registers: Registers = thread.registers
    if dst not in registers.held:
        return part
    return tile_math.combine(kind, register_of(op, thread, dst).value, part)


def _mask(op: Operation) -> Local:
    dims = integers(op, "dims")

    def run(thread: CoreThread, *_: CircularBuffer) -> None:
        thread.registers.masks = dims

    return run


def _unmask(op: Operation) -> Local:
    def run(thread: CoreThread) -> None:
        thread.registers.masks = None

    return run


def unary_bcast(op: Operation) -> Local:
    """Spread a row, a column or an element of a tile over a register."""
    dims = integers(op, "dims")

    def run(thread: CoreThread, buffer: CircularBuffer, index: int, dst: int) -> None:
        expect_phase(op, thread, "acquired")
        _put(op, thread, dst, tile_math.broadcast(_tile(op, thread, buffer, index), dims))

    return run


def transpose_tile(op: Operation) -> Local:
    """Copy a tile to a register with rows and columns exchanged."""

    def run(thread: CoreThread, buffer: CircularBuffer, index: int, dst: int) -> None:
        expect_phase(op, thread, "acquired")
        _put(op, thread, dst, _tile(op, thread, buffer, index).T.copy())

    return run


# On registers --------------------------------------------------------------------------------------------------------


_F32 = np.dtype(np.float32)


def _register_type(op: Operation) -> Dtype:
    """The type of the elements that an operation of the vector unit computes with."""
    format_ = attribute(op, "format")
    return _F32 if format_ is None else format_for(format_).register


def _sfpu_unary(function: Function, dtype: Dtype = _F32) -> Builder:
    def build(op: Operation) -> Local:
        compute = tile_math.vector_function(function, op)

        def run(thread: CoreThread, dst: int) -> None:
            with np.errstate(all="ignore"):
                result = compute(_of_type(op, thread, register_of(op, thread, dst), dtype))
                _put(op, thread, dst, result.astype(dtype, copy=False))

        return run

    return build


def _sfpu_several(function: Callable[..., Array]) -> Builder:
    def build(op: Operation) -> Local:
        dtype = _register_type(op)

        def run(thread: CoreThread, *registers: int) -> None:
            *sources, dst = registers
            with np.errstate(all="ignore"):
                values = [_of_type(op, thread, register_of(op, thread, each), dtype) for each in sources]
                _put(op, thread, dst, function(*values))

        return run

    return build


def fill_tile(op: Operation) -> Local:
    """Fill a register with a number."""
    number = tile_math.number_of(op)

    def run(thread: CoreThread, dst: int) -> None:
        _put(op, thread, dst, np.full((TILE, TILE), number))

    return run


def typecast_tile(op: Operation) -> Local:
    """Convert the elements of a register."""
    source, target = tile_math.formats_of(op)

    def run(thread: CoreThread, dst: int) -> None:
        value = _of_type(op, thread, register_of(op, thread, dst), source.register)
        _put(op, thread, dst, tile_math.typecast(value, source, target))

    return run


def _of_type(op: Operation, thread: CoreThread, register: Register, dtype: Dtype) -> Array:
    """The elements of a register, which must be of this type."""
    if register.value.dtype != dtype:
        raise wrong(
            op, thread, f"computes with {dtype} numbers, found a register of {register.value.dtype}",
            [f"{location_of(register.op)}: it is written here"],
        )  # fmt: skip
    return register.value


def copy_register(op: Operation) -> Local:
    """Copy a register to another one."""

    def run(thread: CoreThread, source: int, dst: int) -> None:
        _put(op, thread, dst, register_of(op, thread, source).value)

    return run


def _prepare(op: Operation) -> Local:
    """Preparing a unit changes nothing that can be seen here."""

    def run(thread: CoreThread, *_: CircularBuffer) -> None:
        pass

    return run


_PREPARATIONS = (
    "copy_tile_init", "copy_dest_values_init", "binary_op_init_common", "init_sfpu", "mm_init", "mm_block_init",
    "unary_bcast_init", "transpose_wh_init", "fill_tile_init", "where_tile_init",
    *(function.preparation for function in FUNCTIONS),
    *(f"{name}_tiles_init" for name in ("add", "sub", "mul")),
    *(f"{name}_binary_tile_init" for name in tile_math.BINARY),
    *(f"{name}_int_tile_init" for name in tile_math.BINARY), "typecast_tile_init",
)  # fmt: skip

BUILDERS: dict[str, Builder] = {
    "ttkernel.tile_regs_acquire": _change("released", "acquired"),
    "ttkernel.tile_regs_commit": _change("acquired", "committed"),
    "ttkernel.tile_regs_wait": _change("committed", "waited"),
    "ttkernel.tile_regs_release": _change("waited", "released"),
    "ttkernel.copy_tile": copy_tile,
    "ttkernel.pack_tile": pack_tile,
    "ttkernel.pack_tile_block": pack_tile_block,
    "ttkernel.pack_reconfig_l1_acc": _accumulate_in_memory,
    "ttkernel.matmul_tiles": matmul_tiles,
    "ttkernel.matmul_block": matmul_block,
    "ttkernel.reduce_init": _mask,
    "ttkernel.reduce_tile": reduce_tile,
    "ttkernel.reduce_uninit": _unmask,
    "ttkernel.unary_bcast": unary_bcast,
    "ttkernel.transpose_wh_tile": transpose_tile,
    "ttkernel.fill_tile": fill_tile,
    "ttkernel.fill_tile_int": fill_tile,
    "ttkernel.typecast_tile": typecast_tile,
    "ttkernel.copy_dest_values": copy_register,
    **{f"ttkernel.{name}_int_tile": _sfpu_several(function) for name, function in tile_math.BINARY.items()},
    **{f"ttkernel.{each.int32_callee}": _sfpu_unary(each, np.dtype(np.int32)) for each in FUNCTIONS if each.has_int32},
    **{f"ttkernel.{name}_tiles": _fpu(tile_math.BINARY[name]) for name in ("add", "sub", "mul")},
    **{f"ttkernel.{name}_binary_tile": _sfpu_several(function) for name, function in tile_math.BINARY.items()},
    "ttkernel.where_tile": _sfpu_several(tile_math.where),
    **{f"ttkernel.{function.callee}": _sfpu_unary(function) for function in FUNCTIONS},
    **{f"ttkernel.{name}": _prepare for name in _PREPARATIONS},
}
