"""`ttl.print`: text of threads, with blocks as matrices."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from .blocks import View
from .ttkernel.machine import CircularBuffer, CoreThread
from .ttkernel.printing import buffer_text, elements_text, format_of, write
from .ttkernel.translate import Builder, Local


def _print(op: Operation) -> Local:
    """Write integers, and a buffer or a block in the end."""

    def shown(value: Any) -> Any:
        if isinstance(value, CircularBuffer):
            return buffer_text(value)
        if not isinstance(value, View):
            return value
        block = value.read(op)
        rows = block.shape[0] * block.shape[2] if block.ndim == 4 else block.shape[0]
        return "\n" + elements_text(block.swapaxes(1, 2).reshape(rows, -1) if block.ndim == 4 else block)

    def run(thread: CoreThread, *values: Any) -> None:
        write(thread, format_of(op).format(*(shown(each) for each in values)))

    return run


BUILDERS: dict[str, Builder] = {"ttl.print": _print}
