"""Functions of a module, their calls and signatures."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import SSAValue

from tlx_xdsl.dialects.tt import CallOp, FuncOp, ReturnOp


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of `module` by name."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def callee_of(call: CallOp) -> str:
    """The name of the function that `call` calls."""
    return call.callee.string_value()


def returned(func: FuncOp) -> Sequence[SSAValue]:
    """The values of one `tt.return`: those of all of them are one SSA equivalence class."""
    ends = [block.last_op for block in func.body.blocks if isinstance(block.last_op, ReturnOp)]
    return ends[0].srcs if ends else ()


def update_signature(func: FuncOp) -> None:
    """Give a function the type that follows from its arguments and from what it returns."""
    if func.body.blocks:
        outputs = [value.type for value in returned(func)] or list(func.function_type.outputs.data)
        inputs = [argument.type for argument in func.body.blocks[0].args]
        func.function_type = FunctionType.from_lists(inputs, outputs)
