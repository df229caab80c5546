"""`linalg-lower-functions`: kernels as functions of MLIR's `func`, with memory for pointers and program ids at the end.

Before:
```mlir
tt.func public @kernel(%x: !tt.ptr<f32>, %n: i32) {
  %0 = tt.get_program_id x : i32
  %1 = builtin.unrealized_conversion_cast %x : !tt.ptr<f32> to memref<*xf32>
  tt.return
}
```
After:
```mlir
func.func @kernel(%x: memref<*xf32>, %n: i32, %pid_x: i32, %pid_y: i32, %pid_z: i32) {
  func.return
}
```
With `num-programs`, or if a function of the module asks for them, the sizes of the grid follow the ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith as upstream, func
from xdsl.dialects.builtin import (
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnrankedMemRefType,
    UnrealizedConversionCastOp,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.integers.transfer import bytes_of
from tlx_xdsl.dialects import llvm, memref, tt, ttg
from tlx_xdsl.dialects.func import PROGRAM_IDS
from tlx_xdsl.transforms.rewriting import forward, insert_before, ops_of, replace, retype

from .emitter import INDEX, refuse
from .lower_accesses import memory_element

GRID_NAMES = ("pid_x", "pid_y", "pid_z", "num_programs_x", "num_programs_y", "num_programs_z")
"""Names of the trailing arguments."""
_LOWERED = ("tt.", "ttg.", "ttng.", "tlx.", "nvvm.")
"""Prefixes of operations that have no meaning below."""


@dataclass(frozen=True)
class LowerFunctionsPass(ModulePass):
    """Lower functions, calls and program ids."""

    name = "linalg-lower-functions"

    num_programs: bool = False
    """The sizes of the grid are arguments, too, even where nothing asks for them."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for an operation that no pass has lowered.
        """
        asks = any(isinstance(inner, tt.GetNumProgramsOp) for inner in op.walk())
        count = 6 if self.num_programs or asks else 3
        for function in ops_of(op, tt.FuncOp):
            _lower(function, count)
        for name in [name for name in op.attributes if name.startswith(_LOWERED)]:
            del op.attributes[name]


def _lower(function: tt.FuncOp, count: int) -> None:
    _retype_pointers(function)
    entry = function.body.blocks[0]
    grid = [entry.insert_arg(i32, len(entry.args), function.location) for _ in range(count)]
    for argument, name in zip(grid, GRID_NAMES, strict=False):
        argument.name_hint = name
    for op in list(function.body.walk()):
        _lower_op(op, grid)
    types = FunctionType.from_lists(
        [argument.type for argument in entry.args], [_memory_type(type_) for type_ in function.function_type.outputs]
    )
    is_private = function.sym_visibility is not None and function.sym_visibility.data == "private"
    new = func.FuncOp(
        function.sym_name.data, types, function.detach_region(function.body),
        visibility=StringAttr("private") if is_private else None,
    )  # fmt: skip
    if not is_private:
        new.attributes[PROGRAM_IDS] = IntegerAttr(count, i32)
    replace(function, new)


def _lower_op(op: Operation, grid: Sequence[SSAValue]) -> None:
    match op:
        case tt.GetProgramIdOp():
            forward(op, grid[op.axis.value.data])
        case tt.GetNumProgramsOp():
            forward(op, grid[3 + op.axis.value.data])
        case tt.ReturnOp():
            replace(op, func.ReturnOp(*op.srcs))
        case tt.CallOp():
            types = [result.type for result in op.results]
            replace(op, func.CallOp(op.callee.string_value(), [*op.arguments, *grid], types))
        case tt.BitcastOp() if _is_memory(op.result) and op.operand_types == op.result_types:
            forward(op, op.src)
        case tt.BitcastOp() if isinstance(moved := op.src.owner, tt.AddPtrOp) and _is_memory(op.result):
            # The memory from there on.
            there = insert_before(op, upstream.IndexCastOp(moved.offset, INDEX)).result
            view = insert_before(op, memref.ReinterpretCastOp(moved.ptr, there, [1], [1])).result
            replace(op, UnrealizedConversionCastOp.get([view], [op.result.type]))
            Rewriter.erase_op(moved)
        case tt.BitcastOp() | tt.IntToPtrOp() if _is_memory(op.result):
            # What memory lies there, or has elements of another type, is left to the user's conversion to LLVM.
            replace(op, UnrealizedConversionCastOp.get([op.src], [op.result.type]))
        case UnrealizedConversionCastOp() if op.operand_types == op.result_types:
            forward(op, op.inputs[0])
        case tt.PtrToIntOp() if _is_memory(op.src) or isinstance(op.src.owner, tt.AddPtrOp):
            _lower_address(op)
        case ttg.BarrierOp() | llvm.AssumeOp():
            # The threads of a program do not exist below, and nothing there relies on a promise.
            Rewriter.erase_op(op)
        case _ if op.name.startswith(_LOWERED) and not (isinstance(op, tt.AddPtrOp) and _is_memory(op.ptr)):
            raise refuse(op, "it has no counterpart there")
        case _:
            pass


def _lower_address(op: tt.PtrToIntOp) -> None:
    """The address of the base, and the bytes from there on."""
    pointer, offset = op.src, None
    moved = pointer.owner
    if isinstance(moved, tt.AddPtrOp):
        pointer, offset = moved.ptr, moved.offset
    base = insert_before(op, memref.ExtractAlignedPointerAsIndexOp(pointer)).aligned_pointer
    address = insert_before(op, upstream.IndexCastOp(base, i64)).result
    if offset is not None:
        if offset.type != i64:
            wide = insert_before(op, upstream.IndexCastOp(offset, INDEX)).result
            offset = insert_before(op, upstream.IndexCastOp(wide, i64)).result
        size = bytes_of(memref.element_of(pointer.type))
        number = insert_before(op, upstream.ConstantOp.from_int_and_width(size, 64)).result
        bytes_ = insert_before(op, upstream.MuliOp(offset, number)).result
        address = insert_before(op, upstream.AddiOp(address, bytes_)).result
    forward(op, address)
    if isinstance(moved, tt.AddPtrOp) and not moved.result.uses:
        Rewriter.erase_op(moved)


def _memory_type(type_: Attribute) -> Attribute:
    if isinstance(type_, tt.PointerType):
        return UnrankedMemRefType.from_type(memory_element(type_.pointee))
    return type_


def _is_memory(value: SSAValue) -> bool:
    return isinstance(value.type, UnrankedMemRefType)


def _retype_pointers(function: tt.FuncOp) -> None:
    """Let every pointer be memory: what carries and selects pointers does the same with memory."""
    for op in function.walk():
        for value in (
            *op.results,
            *(argument for region in op.regions for block in region.blocks for argument in block.args),
        ):
            retype(value, _memory_type(value.type))
