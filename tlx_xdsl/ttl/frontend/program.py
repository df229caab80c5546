"""`ttl.Program(compute, read, write)(a, b, c)`: it lists what the decorators have said."""

from __future__ import annotations

from .calls import Call, lowering
from .values import Items, Program, Thread, Value


@lowering("ttl.Program")
def _program(call: Call) -> Value:
    threads = call["threads"]
    assert isinstance(threads, Items)
    for each in threads.items:
        if not isinstance(each, Thread):
            raise call.error(
                None,
                f"a program is of functions with @ttl.compute() or @ttl.datamovement(), found {each.describe()}",
            )
    return Program()
