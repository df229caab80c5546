"""Memory spaces, and the ways in which an operation orders accesses to memory."""

from __future__ import annotations

from enum import Enum, Flag, auto


class Space(Enum):
    """The memory that a pointer, a descriptor or a buffer refers to."""

    GLOBAL = auto()
    SHARED = auto()
    CLUSTER = auto()
    """The shared memory of another CTA of the cluster."""
    TENSOR = auto()


class Sync(Flag):
    """The ordering that an operation establishes (PTX ISA, "Memory Consistency Model")."""

    NONE = 0
    RELEASE = auto()
    """Other threads may acquire everything that this thread has done before: an arrival, a release at a flag."""
    ACQUIRE = auto()
    """This thread sees what others have released: a wait, an acquire at a flag."""
    FENCE = auto()
    """A fence that gives operations after it the power to release; alone it signals nothing."""
    FENCE_PROXY = auto()
    """Earlier accesses through the generic proxy become visible to the async proxy."""
    NAMED = auto()
    """The release or acquire is at a named barrier of the thread block."""
    CLUSTER = auto()
    """The release or acquire is at the barrier of the cluster."""
    ORDERED = auto()
    """Nothing is ordered for other threads, but the operation must not be merged, moved or dropped."""
    THREADS = auto()
    """All threads that run the region take part, or none goes on."""
