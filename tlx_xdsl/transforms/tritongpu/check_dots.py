"""`tlx-check-dots-in-flight`: refuse what touches the result of an asynchronous dot before its wait.

The tensor cores write the registers of such a result some time after the dot was issued. Whatever reads them before a
wait that covers the dot reads undefined data, so this is an error:
```mlir
%d = ttng.warp_group_dot %a, %b, %c {isAsync = true} : ...
%e = arith.mulf %d, %scale : tensor<64x64xf32>
```
is refused, at the line of the multiplication, with the dot's line in a note. Nothing is changed in
```mlir
%d = ttng.warp_group_dot %a, %b, %c {isAsync = true} : ...
%w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
%e = arith.mulf %w, %scale : tensor<64x64xf32>
```
Another dot may add to a result in flight, and loops and branches may carry it (see `analysis/dots_in_flight.py`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.dots_in_flight import EarlyUse, check_dots_in_flight
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at, location_of, source_location

from ..rewriting import Pass


class CheckDotsInFlightPass(Pass):
    """Refuse the first operation that uses the result of an asynchronous dot too early."""

    name = "tlx-check-dots-in-flight"

    def run(self, op: ModuleOp) -> None:
        """Check all functions of the module; nothing is changed."""

        def refuse(use: EarlyUse) -> None:
            raise _refusal(use)

        for inner in op.ops:
            check_dots_in_flight(inner, refuse)


def _refusal(use: EarlyUse) -> CompilationError:
    """The error at the operation, with the dot, and the wait that fell short or the one to write."""
    flight = use.flight
    notes = [f"{source_location(location_of(flight.dot.d))}: the dot"]
    if flight.short is None:
        notes.append("wait with acc = tlx.async_dot_wait(0, acc), and use what it returns")
    else:
        pendings = flight.short.pendings.value.data
        notes.append(
            f"{source_location(flight.short.location)}: this wait may leave {_dots(pendings)} in flight; "
            f"it covers the dot only if as many were issued after that one"
        )
    return error_at(
        use.op, f"'{use.op.name}' uses the result of an asynchronous dot that may still be in flight", notes
    )


def _dots(count: int) -> str:
    return "1 dot" if count == 1 else f"{count} dots"
