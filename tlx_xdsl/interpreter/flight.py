"""Results of asynchronous matrix products that were not waited for."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from xdsl.ir import Operation

from tlx_xdsl.interpreter.engine import Queue
from tlx_xdsl.interpreter.faults import Fault, fault_at, location_of
from tlx_xdsl.numerics.arrays import Array


class InFlight:
    """The result of a wgmma that may still run: only another wgmma, or the wait for it, may take it."""

    # numpy refuses to compute with it.
    __array_ufunc__: ClassVar[None] = None

    def __init__(self, queue: Queue, number: int, op: Operation):
        self.queue = queue
        self.number = number
        """Of the transfer in its queue."""
        self.op = op
        self.value: Array | None = None
        """The result, when the transfer is complete."""

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse to become an array."""
        raise TypeError("the result of an asynchronous operation is in flight")

    def misused(self, op: Operation) -> Fault:
        """The report when `op` takes it."""
        return fault_at(
            op,
            f"'{op.name}' uses the result of an asynchronous dot that was not waited for",
            (f"the dot is at {location_of(self.op)}", "wait with tlx.async_dot_wait(0, acc)"),
        )
