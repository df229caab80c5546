"""What a plan has for each stream: the memory that its calls need there, and its launches as one graph.

The driver enqueues a graph in half of the time that one kernel takes, and what has moved since the last call costs a
call of the driver for each kernel concerned, so that a plan that is called again and again on a stream has a graph
there. Streams do not share one: the driver would run it in one of them at a time. Whatever the driver has against a
graph, plain launches take its place.

Graphs are bounded, for each has memory of the GPU. `TLX_LAUNCH_GRAPHS=0` in the environment, when this is imported, has
all launches made one by one: for tools that see a graph as one piece.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque

from tlx_xdsl.runtime.launch.cuda_driver import ERROR_INVALID_CONTEXT
from tlx_xdsl.runtime.launch.launch_graph import LaunchGraph

from .workspaces import Piece

ARE_MADE = os.environ.get("TLX_LAUNCH_GRAPHS", "1") != "0"
"""Whether there are graphs."""

CALLS_BEFORE_A_GRAPH = 16
"""Calls of a plan on a stream that are launched one by one: to make a graph takes as long as some ten calls."""

MAX_GRAPHS = 256
"""Graphs of this process, of which each takes 128 KiB of the GPU's memory."""


class Lane:
    """That of one stream. Read and written by who holds the piece's `in_use`, but for `drop_graph`.

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
