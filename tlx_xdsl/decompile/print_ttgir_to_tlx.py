"""Print a module as the Python that a kernel's author would write: `tl` and `tlx` calls, loops, branches and tasks.

The module stays as it is, and may be at any stage between the frontend's and the last one. What the language can
not express is a warning at its operation and a comment in the text. `tlx reverse` writes the same to a file.

Before:
```mlir
%buffers = ttg.local_alloc : () -> !ttg.memdesc<2x64xf32, #shared, #smem, mutable>
%0 = ttg.memdesc_index %buffers[%c1] : !ttg.memdesc<2x64xf32, ...> -> !ttg.memdesc<64xf32, ...>
%x = ttg.local_load %0 : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> tensor<64xf32, #blocked>
```
Prints:
```python
buffers = tlx.local_alloc((64,), tl.float32, 2)
x = tlx.local_load(buffers[1])
```
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .module import python_of


class PrintTTGIRToTLXPass(ModulePass):
    """Print the module as Python to standard output."""

    name = "tlx-print-ttgir-to-tlx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Print `op`; what can't be expressed is a warning at its place."""
        text, _ = python_of(op)
        print(text, end="")
