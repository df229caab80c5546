"""Plans: the launches of a call, to be repeated on other tensors of the same shapes, strides, types and alignment.

A plan has the launches in order, with their parameter blocks filled (`runtime.launch.movable`). To run it is to put the
addresses of other tensors into the blocks, where they differ, and to enqueue; where it runs often, as a graph of its
stream (`Lane`), whose nodes get the parameters that have changed. Which argument of a kernel has the
address of which tensor is said by `Launch.sources`; the addresses of one call do not say it, for two tensors may start
at the same. `planned_function` keeps plans and finds them.

A plan keeps no tensor alive. The memory that a call needs only while it runs, its workspace and the scratch memory of
its kernels, is that of the stream (`workspaces`).
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tlx_xdsl.runtime.driver.host_values import is_descriptor
from tlx_xdsl.runtime.launch.cuda_driver import ERROR_INVALID_CONTEXT, CudaDriverError
from tlx_xdsl.runtime.launch.launch_graph import LaunchGraph
from tlx_xdsl.runtime.launch.movable import MovableLaunch

from .launching import WORKSPACE, Launch, leaves
from .operands import current_raw_stream, empty_strided, is_capturing, torch_module
from .workspaces import COUNTER_BYTES, WORKSPACES, Piece, aligned, captured

NOWHERE = -1
"""The address of a tensor that is not there."""

COUNTERS = "counters"
"""The same of its counters: memory that is zero before and after the call, `workspaces.COUNTER_BYTES` at most."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Tensors and launches of one call.

    `tensors` are by the names that `Launch.sources` use: first those that were given, in their order, with results that
    were allocated in the places of None; then a contiguous `workspace`, or None, if there is one, and `counters`.
    Without launches there is nothing left to do, and nothing is kept.
    """

    tensors: Mapping[str, Any]
    launches: Sequence[Launch] = ()


class Use(NamedTuple):
    """An argument of a launch that has the address of a tensor, `offset` bytes after its first element."""

    launch: MovableLaunch
    argument: str
    offset: int


class Plan:
    """The launches of a call. Threads may share it.

    Made of a call whose tensors `given` were, None for results that it allocated. Compiles the kernels that are new.

    Raises ValueError for an argument of a launch whose tensor is not said, RuntimeError where a kernel would have to be
    loaded while a CUDA graph is captured, and errors of the CUDA driver.
    """

    def __init__(self, prepared: Prepared, given: Sequence[Any]):
        torch = torch_module()
        self.is_used = False
        self._device: int = prepared.launches[0].device.index
        self._is_only_device: bool = torch.cuda.device_count() == 1
        self._current_device: Callable[[], int] = torch.cuda.current_device
        self._on_device: Callable[[int], Any] = torch.cuda.device
        # What Triton's launches ask: an integer, and no object of torch's.
        self._current_stream: Callable[[int], int] = current_raw_stream(torch)
        self._is_capturing: Callable[[], bool] = is_capturing(torch)
        # On the current device, as the programs of torch's compiler allocate.
        self._allocate: Callable[..., Any] = empty_strided(torch)
        tensors = list(prepared.tensors.values())[: len(given)]
        self._allocations = [
            (at, tuple(made.shape), tuple(made.stride()), made.dtype)
            for at, made in enumerate(tensors)
            if made is not None and given[at] is None
        ]
        with self._on_device(self._device):
            self._launches: tuple[MovableLaunch, ...] = tuple(launch.movable() for launch in prepared.launches)
        uses = _uses(prepared, self._launches)
        # The driver reads addresses from here, one for each tensor, and all are written at once.
        self._table = ctypes.create_string_buffer(8 * len(given))
        self._write: Callable[..., None] = struct.Struct(f"{len(given)}q").pack_into
        self._moves = self._shared(uses, list(prepared.tensors)[: len(given)])
        self._addresses: list[int] = []
        self._workspace_moves, self._workspace_bytes = _workspace(prepared, uses, self._launches)
        self._counts = bool(uses.get(COUNTERS))
        self._workspace_address = 0
        self._lanes: dict[int, Lane] = {}
        order = {launch: index for index, launch in enumerate(self._launches)}
        # Which launches have each tensor.
        self._users = [[order[use.launch] for use in uses[name]] for name in list(prepared.tensors)[: len(given)]]
        self._enqueues = [(launch.enqueue, launch) for launch in self._launches]
        self._stream = 0
        self._turn = threading.Lock()

    def run(self, tensors: tuple[Any, ...], addresses: list[int]) -> tuple[Any, ...]:
        """Launch on tensors at these addresses, NOWHERE where there is none, on the stream that is current.

        Returns them, with new results.
        """
        if not self._is_only_device and self._current_device() != self._device:
            with self._on_device(self._device):
                return self.run(tensors, addresses)
        if self._allocations:
            found, addresses = list(tensors), addresses.copy()
            for at, shape, strides, dtype in self._allocations:
                # The call that the plan was made of has its results.
                if found[at] is None:
                    found[at] = made = self._allocate(shape, strides, dtype)
                    addresses[at] = made.data_ptr()
            tensors = tuple(found)
        stream = self._current_stream(self._device)
        if self._is_capturing():
            self._capture(addresses, stream)
            return tensors
        lane = self._lanes.get(stream)
        if lane is None:
            lane = self._lanes.setdefault(stream, Lane(WORKSPACES.piece(self._device, stream)))
        piece = lane.piece
        # The driver's calls let other threads run.
        with piece.in_use:
            if piece.size < self._workspace_bytes:
                piece.grow(self._workspace_bytes)
            workspace = piece.address if self._workspace_bytes else 0
            graph = lane.graph
            if graph is not None:
                is_there = addresses == lane.addresses and workspace == lane.workspace
                if is_there or self._update(lane, graph, addresses, workspace):
                    code = graph.enqueue()
                    if not code:
                        return tensors
                    lane.refuse(code)
            self._enqueue(addresses, stream, workspace)
            lane.calls += 1
            if lane.calls == CALLS_BEFORE_A_GRAPH and ARE_MADE:
                self._make_graph(lane, addresses, stream, workspace)
        return tensors

    def _capture(self, addresses: list[int], stream: int) -> None:
        """Launch on a stream that is captured."""
        if not self._workspace_bytes:
            self._enqueue(addresses, stream, 0)
            return
        memory = captured(self._device, self._workspace_bytes, self._counts)
        self._enqueue(addresses, stream, memory.data_ptr() + memory.numel() - self._workspace_bytes)

    def _enqueue(self, addresses: list[int], stream: int, workspace: int) -> None:
        with self._turn:
            self._place(addresses, workspace)
            if stream != self._stream:
                self._stream = stream
                for launch in self._launches:
                    launch.move_to(stream)
            for enqueue, launch in self._enqueues:
                if code := enqueue():
                    launch.retry(code)

    def _make_graph(self, lane: Lane, addresses: list[int], stream: int, workspace: int) -> None:
        """Have the next calls on a stream launch a graph, where the driver makes one."""
        with self._turn:
            self._place(addresses, workspace)
            self._stream = -1  # a capture has one of its own
            try:
                graph = LaunchGraph(self._launches, stream)
            except (CudaDriverError, ValueError):
                # Plain launches go on, and say what is wrong if there is something.
                return
        lane.addresses, lane.before, lane.workspace = addresses, addresses, workspace
        lane.keep_graph(graph)

    def _update(self, lane: Lane, graph: LaunchGraph, addresses: list[int], workspace: int) -> bool:
        """Put addresses into the graph of a stream where they differ; return whether it can be launched.

        A single launch takes no longer than that, so that its graph only gets addresses that come twice.
        """
        if len(self._launches) == 1 and addresses != lane.before:
            lane.before = addresses
            return False
        before, lane.addresses = lane.addresses, []  # in case that this fails
        with self._turn:
            self._place(addresses, workspace)
            changed: Iterable[int] = range(len(self._launches))
            if len(changed) > 1 and before and workspace == lane.workspace:
                moved = zip(addresses, before, self._users, strict=True)
                changed = {index for address, last, users in moved if address != last for index in users}
            for index in changed:
                if code := graph.updates[index]():
                    lane.refuse(code)
                    return False
        lane.addresses, lane.workspace = addresses, workspace
        return True

    def _place(self, addresses: list[int], workspace: int) -> None:
        if addresses != self._addresses:
            self._move(addresses)
        if workspace != self._workspace_address:
            self._move_workspace(workspace)

    def _move(self, addresses: list[int]) -> None:
        self._write(self._table, 0, *addresses)
        before, self._addresses = self._addresses, []  # in case that a move fails
        for at, to, offset in self._moves:
            if not before or addresses[at] != before[at]:
                to(addresses[at] + offset)
        self._addresses = addresses

    def _shared(
        self, uses: Mapping[str, list[Use]], names: Sequence[str]
    ) -> list[tuple[int, Callable[[int], None], int]]:
        """Have launches read the addresses of tensors from the table; return what is to be moved one by one.

        That is what lies elsewhere in a tensor than at its start, and descriptors: which tensor, how, and how far from
        its first element.
        """
        start = ctypes.addressof(self._table)
        return [
            (at, use.launch.mover(use.argument), use.offset)
            for at, name in enumerate(names)
            for use in uses[name]
            if use.offset or not use.launch.share(use.argument, start + 8 * at)
        ]

    def _move_workspace(self, address: int) -> None:
        self._workspace_address = 0
        for to, offset in self._workspace_moves:
            to(address + offset)
        self._workspace_address = address


def _uses(prepared: Prepared, movables: Sequence[MovableLaunch]) -> dict[str, list[Use]]:
    """Return the arguments that have the address of each tensor."""
    found: dict[str, list[Use]] = {name: [] for name in prepared.tensors}
    for launch, movable in zip(prepared.launches, movables, strict=True):
        for name, value in leaves(launch.arguments, with_tables=False):
            memory = value.base if is_descriptor(value) else value
            if not hasattr(memory, "data_ptr"):
                continue
            source = launch.sources.get(name, "")
            start = prepared.tensors.get(source)
            if start is None:
                raise ValueError(
                    f"kernel '{launch.kernel.source.name}': argument '{name}': expected in the launch's sources one of "
                    f"{', '.join(prepared.tensors)}, got {source!r}"
                )
            offset = memory.data_ptr() - start.data_ptr()
            if not 0 <= offset <= _bytes_of(start):
                kernel = launch.kernel.source.name
                raise ValueError(f"kernel '{kernel}': argument '{name}': expected memory of '{source}', got another")
            found[source].append(Use(movable, name, offset))
    return found


def _bytes_of(tensor: Any) -> int:
    """Return the bytes from a tensor's first element to the end of its last one."""
    last = sum(max(size - 1, 0) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()


def _workspace(
    prepared: Prepared, uses: Mapping[str, list[Use]], movables: Sequence[MovableLaunch]
) -> tuple[list[tuple[Callable[[int], None], int]], int]:
    """Return the setters of addresses in the workspace, each with its offset, and the size of the workspace, in bytes.

    The function's own memory comes first, then kernels' scratch. Counters lie before the workspace, and need one.
    """
    found = [(use.launch.mover(use.argument), use.offset) for use in uses.get(WORKSPACE, ())]
    found += [(use.launch.mover(use.argument), use.offset - COUNTER_BYTES) for use in uses.get(COUNTERS, ())]
    memory = prepared.tensors.get(WORKSPACE)
    size = 0 if memory is None else aligned(memory.numel() * memory.element_size())
    for movable in movables:
        if movable.scratch_bytes:
            found.append((movable.move_scratch, size))
            size += aligned(movable.scratch_bytes)
    return found, size


# --- lanes ------------------------------------------------------------------------------------------------------------
#
# A plan has for each stream the memory that its calls need there, and its launches as one graph.
#
# The driver enqueues a graph in half of the time that one kernel takes, and what has moved since the last call costs a
# call of the driver for each kernel concerned, so that a plan that is called again and again on a stream has a graph
# there. Streams do not share one: the driver would run it in one of them at a time. Whatever the driver has against a
# graph, plain launches take its place.
#
# Graphs are bounded, for each has memory of the GPU. `TLX_LAUNCH_GRAPHS=0` in the environment, when this is imported,
# has all launches made one by one: for tools that see a graph as one piece.


ARE_MADE = os.environ.get("TLX_LAUNCH_GRAPHS", "1") != "0"
"""Whether there are graphs."""

CALLS_BEFORE_A_GRAPH = 16
"""Calls of a plan on a stream that are launched one by one: to make a graph takes as long as some ten calls."""

MAX_GRAPHS = 256
"""Graphs of this process, of which each takes 128 KiB of the GPU's memory."""


class Lane:
    """State of one stream. Read and written by who holds the piece's `in_use`, but for `drop_graph`.

    `addresses` are those of the tensors that the graph has, `workspace` is that of the workspace; `before` are those of
    the call before, for plans of one launch. `calls` are those of plain launches.
    """

    __slots__ = ("__weakref__", "addresses", "before", "calls", "graph", "piece", "workspace")

    def __init__(self, piece: Piece):
        self.piece = piece
        self.calls = 0
        self.graph: LaunchGraph | None = None
        self.addresses: list[int] = []
        self.before: list[int] = []
        self.workspace = 0

    def keep_graph(self, graph: LaunchGraph) -> None:
        """Have a graph from now on, in the place of the oldest one of this process where there are too many.

        Who uses a graph often is given another one after CALLS_BEFORE_A_GRAPH calls.
        """
        with _Graphs.changing:
            while len(_Graphs.lanes) >= MAX_GRAPHS:
                if (oldest := _Graphs.lanes.popleft()()) is not None:
                    oldest.drop_graph()
            _Graphs.lanes.append(weakref.ref(self))
        self.graph = graph

    def drop_graph(self) -> None:
        """Have none. A call that is about to launch it has it until then."""
        self.graph, self.calls = None, 0

    def refuse(self, code: int) -> None:
        """Go on with plain launches after `code` of the driver's: they say what is wrong if there is something.

        A thread that has made no call to CUDA yet, which they know how to help, leaves the graph for later.
        """
        if code != ERROR_INVALID_CONTEXT:
            self.graph = None


class _Graphs:
    """The lanes that have one, the oldest first."""

    lanes: deque[weakref.ref[Lane]] = deque()
    changing = threading.Lock()
