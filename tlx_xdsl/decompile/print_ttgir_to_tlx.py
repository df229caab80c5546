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
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tlx_xdsl.analysis.module_attrs import cluster_dims
from tlx_xdsl.dialects.tt.func import FuncOp
from tlx_xdsl.text.diagnostics import error_at

from . import (
    asynchronous as asynchronous,
    buffers as buffers,
    elementwise as elementwise,
    memory as memory,
    special as special,
    tensors as tensors,
)
from .control import blocks, has_cycle
from .function import Function, parameters
from .host import PlainKernel, host_part
from .shared import Module
from .types import NotExpressible, signature
from .wrapping import wrapped


class PrintTTGIRToTLXPass(ModulePass):
    """Print the module as Python to standard output."""

    name = "tlx-print-ttgir-to-tlx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Print `op`; what can't be expressed is a warning at its place."""
        text, _ = python_of(op)
        print(text, end="")


# A whole module as a Python file that tlx_xdsl compiles again.

_IMPORTS = "import tlx_xdsl\nimport tlx_xdsl.language as tl\nimport tlx_xdsl.language.tlx as tlx\n"


def python_of(
    module: ModuleOp, title: str = "Written from IR by tlx_xdsl.", plain: PlainKernel | None = None
) -> tuple[str, list[Operation]]:
    """The text of a Python file with the functions of `module`, and the operations that it can't express.

    The kernels' signatures are in its table `TLX_COMPILE`, so that `tlx compile` and `tlx run` take the file. Layouts
    of registers and what our own passes add at the end (conversions, the ends of barriers) are left to the compiler.
    `title` begins the file. With the `plain` kernel that was specialised, a function makes the arguments of a launch.

    Raises CompilationError, located in the IR, for a function whose jumps or arguments the language lacks.
    """
    shared = Module()
    functions = [op for op in module.walk() if isinstance(op, FuncOp)]
    for function in functions:
        shared.name_of(function.sym_name.data)
    texts: list[str] = []
    table: list[str] = []
    for function in functions:
        text, types = _function(shared, function)
        texts.append(text)
        if _is_public(function):
            table.append(_table_entry(shared, module, function, types))
    body = [*shared.constants(), *shared.helpers(), *texts]
    if table:
        body.append("TLX_COMPILE = {\n" + "".join(table) + "}\n")
    if plain is not None:
        body += [part for each in functions if _is_public(each) for part in _host_part(shared, each, plain)]
    head = f'"""{title}"""\n' if "\n" not in title else f'"""{title}\n"""\n'
    return "\n\n".join([f"{head}\n{_IMPORTS}", *body]), shared.refused


def _host_part(shared: Module, function: FuncOp, plain: PlainKernel) -> list[str]:
    return host_part(function, shared.name_of(function.sym_name.data), plain)


def _is_public(function: FuncOp) -> bool:
    return function.sym_visibility is None or function.sym_visibility.data == "public"


def _function(shared: Module, function: FuncOp) -> tuple[str, dict[str, str]]:
    fn = Function(shared, shared.function_names())
    entry = function.body.blocks[0]
    types: dict[str, str] = {}
    names: list[str] = []
    for index, name in parameters(fn, entry):
        names.append(name)
        try:
            types[name] = signature(entry.args[index].type, _divisibility(function, index))
        except NotExpressible as reason:
            raise error_at(entry.args[index], f"tlx reverse can't express {reason}") from reason
    if has_cycle(function.body):
        raise error_at(
            function, f"tlx reverse can't express the jumps of '{function.sym_name.data}', which go in a cycle"
        )
    blocks(fn, entry)
    noinline = function.attributes.get("noinline")
    apart = isinstance(noinline, IntegerAttr) and bool(noinline.value.data)
    decorator = "@tlx_xdsl.jit(noinline=True)" if apart else "@tlx_xdsl.jit"
    head = f"def {shared.name_of(function.sym_name.data)}({', '.join(names)}):"
    lines = [part for line in fn.lines for part in wrapped(line)] or ["    pass"]
    if all(line.lstrip().startswith("#") for line in lines):
        lines = [*lines, "    pass"]
    return "\n".join([decorator, *wrapped(head), *lines]) + "\n", types


def _divisibility(function: FuncOp, index: int) -> int:
    attributes = function.arg_attrs
    if attributes is None:
        return 1
    number = attributes.data[index].data.get("tt.divisibility")
    return number.value.data if isinstance(number, IntegerAttr) else 1


def _table_entry(shared: Module, module: ModuleOp, function: FuncOp, types: dict[str, str]) -> str:
    lines = [f'    "{shared.name_of(function.sym_name.data)}": {{\n        "signature": {{\n']
    lines += [f'            "{name}": "{type_}",\n' for name, type_ in types.items()]
    lines.append("        },\n")
    target = module.attributes.get("ttg.target")
    if isinstance(target, StringAttr) and (digits := target.data.removeprefix("cuda:")).isdigit():
        suffix = "a" if int(digits) >= 90 else ""
        lines.append(f'        "target": "sm_{digits}{suffix}",\n')
    for attribute, option in (("ttg.num-warps", "num_warps"), ("ttg.num-ctas", "num_ctas"), ("ttg.maxnreg", "maxnreg")):
        value = module.attributes.get(attribute)
        if isinstance(value, IntegerAttr) and (option, value.value.data) != ("num_ctas", 1):
            lines.append(f'        "{option}": {value.value.data},\n')
    if (cluster := cluster_dims(module)) is not None:
        lines.append(f'        "cluster": {cluster},\n')
    return "".join([*lines, "    },\n"])
