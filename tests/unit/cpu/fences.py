"""Launches on the CPU whose arrays stand between fences, and whose memory for temporary values begins as NaN.

What a launch reads beside an array is NaN in every type of floats, and what it writes there is an error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.unit.cpu.codegen.native import FENCE
from tlx_xdsl.cpu.runtime import program
from tlx_xdsl.cpu.runtime.launch import CpuLauncher

BESIDE = 512
"""Bytes of a fence."""
ALIGNMENT = 64
STALE = 0xFF
"""Bytes of memory that was not written: NaN, or -1."""


class Region:
    """Memory that arrays share, and a copy of it between fences."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.size = start, end - start
        # A read-only page can be read, too.
        self.source = (ctypes.c_char * self.size).from_address(start)
        self.memory = np.resize(FENCE, self.size + 2 * BESIDE + ALIGNMENT)
        # As the array lies to lines of the cache.
        self.at = BESIDE + (start - self.memory.ctypes.data - BESIDE) % ALIGNMENT
        self.fences = self.memory.copy()
        self.entered = b""

    def enter(self) -> None:
        """Copy what the arrays hold."""
        self.entered = self.source.raw
        self.memory[self.at : self.at + self.size] = np.frombuffer(self.entered, np.uint8)

    def leave(self) -> None:
        """Copy back what has changed, and raise AssertionError if a fence has."""
        inside = slice(self.at, self.at + self.size)
        if (held := self.memory[inside].tobytes()) != self.entered:
            ctypes.memmove(self.start, held, self.size)
        self.fences[inside] = self.memory[inside]
        places = np.nonzero(self.fences != self.memory)[0] - self.at
        assert not places.size, f"the launch writes beside an array of {self.size} bytes, at {places[:8].tolist()}"

    def moved(self, array: Any) -> Any:
        """The array in the copy."""
        offset = self.at + array.__array_interface__["data"][0] - self.start
        found = np.ndarray(array.shape, array.dtype, self.memory, offset, array.strides)
        found.flags.writeable = array.flags.writeable
        return found


class Packed(bytes):
    """The slots of a launch, and the memory that they point to."""

    regions: Sequence[Region] = ()


def arrays_in(value: Any) -> list[Any]:
    """The arrays of an argument that can be moved."""
    if isinstance(value, np.ndarray):
        return [value] if value.size and not value.dtype.hasobject else []
    if isinstance(value, tuple):
        return [each for item in value for each in arrays_in(item)]
    return arrays_in(value.base) if hasattr(value, "block_shape") else []


def regions_of(arrays: Sequence[Any]) -> list[Region]:
    """The memory of all arrays; that of those which overlap is one piece."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted(np.lib.array_utils.byte_bounds(each) for each in arrays):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return [Region(*span) for span in spans]


def moved(value: Any, regions: Sequence[Region]) -> Any:
    """An argument with its arrays between fences."""
    if isinstance(value, np.ndarray):
        place = np.lib.array_utils.byte_bounds(value)[0]
        return next((each.moved(value) for each in regions if each.start <= place < each.start + each.size), value)
    if isinstance(value, tuple):
        items = [moved(item, regions) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if is_dataclass(value) and hasattr(value, "block_shape"):
        return replace(value, base=moved(value.base, regions))  # pyright: ignore
    return value


class StaleBlocks(list[Any]):
    """Memory for temporary values that is new for every run."""

    def append(self, block: Any) -> None:
        """Take memory back after a run, and raise AssertionError if something beyond it was written."""
        size, address, _ = block
        beyond = ctypes.string_at(address + size - ALIGNMENT, ALIGNMENT)
        assert beyond == bytes([STALE]) * ALIGNMENT, "the launch writes beside its temporary values"


class Scratch:
    """The memory that each thread would keep."""

    @property
    def blocks(self) -> list[Any]:
        return StaleBlocks()


def put_up(patch: pytest.MonkeyPatch) -> None:
    """Let all launches run between fences."""
    prepared, run, new_block = CpuLauncher._prepared, program.Program.run, program._new_block

    def prepared_between(self: CpuLauncher, grid: Any, args: Any, kwargs: Any, **options: bool) -> Any:
        regions = regions_of([each for value in (*args, *kwargs.values()) for each in arrays_in(value)])
        args = tuple(moved(each, regions) for each in args)
        kwargs = {name: moved(each, regions) for name, each in kwargs.items()}
        found, packed, sizes = prepared(self, grid, args, kwargs, **options)
        held = Packed(packed)
        held.regions = regions
        return found, held, sizes

    def run_between(self: program.Program, arguments: bytes, grid: Any) -> None:
        regions = arguments.regions if isinstance(arguments, Packed) else ()
        for each in regions:
            each.enter()
        run(self, arguments, grid)
        for each in regions:
            each.leave()

    def stale_block(size: int) -> Any:
        block = new_block(size + ALIGNMENT)
        ctypes.memset(block[1], STALE, block[0])
        return block

    patch.setattr(CpuLauncher, "_prepared", prepared_between)
    patch.setattr(program.Program, "run", run_between)
    patch.setattr(program, "_new_block", stale_block)
    patch.setattr(program, "_scratch", Scratch())
