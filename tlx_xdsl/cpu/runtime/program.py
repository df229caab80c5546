"""Machine code in this process, and its runs over the programs of a grid.

Every thread calls the same function with one record of the launch, from which it takes chunks of programs, and with
scratch memory of its own. ctypes gives up the interpreter's lock meanwhile.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from ..codegen.metadata import Metadata
from .pool import Job, Pool, pool
from .printing import prints

_ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector of any CPU that LLVM knows by fixed sizes."""

_CHUNKS = 8
"""Chunks of programs for each thread: so few that taking one costs nothing, so many that all end at about once."""

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
"""The arguments, the record of the launch and the scratch memory; 0, or the number of the site that failed."""

_RECORD = struct.Struct("=qqqiiiiq")
"""The next program, their number, programs of a chunk; the grid's sizes and the site that failed; the program that
did."""

_SITE = 6
"""The field with the site."""

_Record: Callable[[], Any] = ctypes.c_int64 * 6
_NEXT = 0
"""The index of the next program there."""
assert _RECORD.size == 6 * ctypes.sizeof(ctypes.c_int64)


class _Scratch(threading.local):
    """Blocks of scratch memory of a thread that no run has at the moment: more than one only where runs are nested."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int, Any]] = []


_scratch = _Scratch()


class Program:
    """A compiled kernel that can run."""

    def __init__(self, address: int, metadata: Metadata, owner: object):
        """`address` is that of the function `metadata.symbol`; it is kept in memory by `owner`."""
        self.metadata = metadata
        self.ns_per_program = 0.0
        """Nanoseconds of one thread for a program, as launches up to now took; 0 before the first."""
        self._owner = owner
        self._scratch_bytes = metadata.scratch_bytes
        self._function: Callable[..., int] = _FUNCTION(address)
        self.runs_alone = prints(metadata.symbols)
        """Whether programs run on one thread: lines are in their order then, as the interpreter prints them."""

    def run(self, arguments: bytes, grid: tuple[int, int, int]) -> None:
        """Run all programs of a grid on packed arguments.

        Raises Fault, located in the kernel, where an assertion or a check fails.
        """
        x, y, z = grid
        total = x * y * z
        if not total:
            return
        record = _Record()
        first = status = 0
        if total > 1 and not self.ns_per_program and not self.runs_alone:
            # The first program alone shows what the others will take, and so who is to run them.
            status = self._span(arguments, record, grid, 0, 1, None)
            first = 1
        if not status:
            status = self._span(arguments, record, grid, first, total, None if self.runs_alone else pool())
        if status:
            self._raise(record, grid)

    def _span(
        self, arguments: bytes, record: Any, grid: tuple[int, int, int], first: int, total: int, threads: Pool | None
    ) -> int:
        """Run the programs from `first` to `total`; returns the site that failed, or 0."""
        count = total - first
        ns = self.ns_per_program
        helpers = 0 if threads is None else threads.helpers(count, ns * count)
        before = time.perf_counter_ns()
        if not helpers:
            _RECORD.pack_into(record, 0, first, total, count, *grid, 0, 0)
            status = self._work(arguments, record)
        else:
            assert threads is not None
            chunk = max(1, count // (_CHUNKS * (helpers + 1)))
            _RECORD.pack_into(record, 0, first, total, chunk, *grid, 0, 0)
            status = self._share(threads, helpers, arguments, record, total)
        taken = (time.perf_counter_ns() - before) * (helpers + 1) / count
        # Half of it new: kernels whose sizes change are followed in a few launches.
        self.ns_per_program = (ns + taken) / 2 if ns else taken
        return status

    def _share(self, threads: Pool, helpers: int, arguments: bytes, record: Any, total: int) -> int:
        job = Job(lambda: self._work(arguments, record))
        threads.submit(job, helpers)
        try:
            self._work(arguments, record)
        except BaseException:
            # The others are to find nothing left.
            record[_NEXT] = total
            raise
        finally:
            job.close()
        if job.error is not None:
            raise job.error
        # This thread may have been through before another one failed.
        return _RECORD.unpack_from(record)[_SITE]

    def _work(self, arguments: bytes, record: Any) -> int:
        """Run programs on this thread until none is left, or one has failed; returns the site that did, or 0."""
        size = self._scratch_bytes
        if not size:
            return self._function(arguments, record, None)
        blocks = _scratch.blocks
        block = blocks.pop() if blocks else None
        if block is None or block[0] < size:
            block = _new_block(size)
        try:
            return self._function(arguments, record, block[1])
        finally:
            blocks.append(block)

    def _raise(self, record: Any, grid: tuple[int, int, int]) -> None:
        """Raise the fault of the site that failed; it is the interpreter's class: who catches one catches the other."""
        # Rare: what it takes to show a line of the kernel is loaded here.
        from tlx_xdsl.errors import SourceLocation
        from tlx_xdsl.interpreter.faults import Fault
        from tlx_xdsl.text.diagnostics import source_line

        number, program = map(int, _RECORD.unpack_from(record)[-2:])
        x, y, _ = grid
        place_in_grid = program % x, program // x % y, program // (x * y)
        note = f"in program {place_in_grid}"
        sites = self.metadata.sites
        if not 1 <= number <= len(sites):
            raise Fault(f"the kernel ended with the unknown status {number}", notes=(note,))
        site = sites[number - 1]
        place = SourceLocation(site.file, site.line, site.column) if site.file else None
        fault = Fault(site.message, place, source_line=source_line(place), notes=(note,))
        fault.program = place_in_grid
        raise fault


def _new_block(size: int) -> tuple[int, int, Any]:
    """The size of a block, its aligned address, and what owns it."""
    memory = (ctypes.c_char * (size + _ALIGNMENT))()
    start = ctypes.addressof(memory)
    return size, start + -start % _ALIGNMENT, memory
