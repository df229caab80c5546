"""The work of a launch: operations of the tensor cores, and bytes that programs read and write in global memory.

One program, in the middle of the grid, is followed: its scalar integers are computed with the values of the arguments
(`analysis/constants.py`), so that the lengths of most loops are known. The launch is that program as many times as
there are programs. Bytes count each time they are read, wherever they come from: caches are no part of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.analysis.constants import Constants
from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import (
    Kind,
    OperandAccess,
    as_tensor,
    element_bits,
    global_access,
    integer_bits,
    pointee_type,
    scalar_type,
    shape_of_tensor,
)
from tlx_xdsl.dialects.scf import WhileOp

from .coverage.launch import Launch, argument_names

_DEEPEST = 32
"""Calls within calls that are followed."""


@dataclass
class Work:
    """Work of a launch: operations of matrix products, bytes of global memory, registers."""

    flops: int = 0
    """Multiplications and additions of matrix products."""
    read_bytes: int = 0
    written_bytes: int = 0
    accumulator: int = 0
    """32-bit registers that the result of the largest product takes, of all threads outside of tasks together."""
    unknown_loops: list[Operation] = field(default_factory=list[Operation])
    """Loops whose length is not known: their body counts once."""

    @property
    def bytes(self) -> int:
        """Bytes that are read or written."""
        return self.read_bytes + self.written_bytes


def work_of(module: ModuleOp, function: tt.FuncOp, launch: Launch) -> Work:
    """The work of a kernel, a function of the module that the frontend makes, in a launch."""
    module = module.clone()
    functions = {each.sym_name.data: each for each in module.walk() if isinstance(each, tt.FuncOp)}
    kernel = functions[function.sym_name.data]
    x, y, z = launch.place(launch.programs // 2)
    _give_values(kernel, launch.numbers, (x, y, z), launch.grid)
    walk = _Walk(functions)
    walk.function(kernel, 1, 0)
    work = walk.work
    for name in ("flops", "read_bytes", "written_bytes"):
        setattr(work, name, getattr(work, name) * launch.programs)
    return work


def _give_values(
    kernel: tt.FuncOp, numbers: Mapping[str, int], program: tuple[int, int, int], grid: tuple[int, int, int]
) -> None:
    """Put numbers in the place of arguments, of the program's ids, and of the sizes of the grid."""
    entry = kernel.body.blocks[0]
    for argument, name in argument_names(kernel).items():
        if name in numbers and (bits := integer_bits(argument.type)) is not None:
            constant = arith.ConstantOp.from_int_and_width(numbers[name], IntegerType(bits), truncate_bits=True)
            entry.insert_ops_before([constant], cast(Operation, entry.first_op))
            argument.replace_all_uses_with(constant.result)
    for op in [*kernel.walk()]:
        if isinstance(op, tt.GetProgramIdOp | tt.GetNumProgramsOp):
            values = program if isinstance(op, tt.GetProgramIdOp) else grid
            constant = arith.ConstantOp.from_int_and_width(values[op.axis.value.data], IntegerType(32))
            cast(Block, op.parent).insert_ops_before([constant], op)
            op.results[0].replace_all_uses_with(constant.result)


class _Walk:
    def __init__(self, functions: Mapping[str, tt.FuncOp]):
        self.work = Work()
        self._functions = functions
        self._constants: Constants

    def function(self, function: tt.FuncOp, times: int, depth: int) -> None:
        """Add what a function does in so many calls."""
        before = getattr(self, "_constants", None)
        self._constants = Constants(function)
        for block in function.body.blocks:
            if self._constants.reaches(block):
                self._block(block, times, depth)
        if before is not None:
            self._constants = before

    def _block(self, block: Block, times: int, depth: int) -> None:
        for op in block.ops:
            if isinstance(op, tt.CallOp):
                callee = self._functions.get(op.callee.string_value())
                if callee is not None and callee.body.blocks and depth < _DEEPEST:
                    self.function(callee, times, depth + 1)
                continue
            self._add(op, times)
            within = times * self._trips(op)
            for region in op.regions:
                for inner in region.blocks:
                    if self._constants.reaches(inner):
                        self._block(inner, within, depth)

    def _trips(self, op: Operation) -> int:
        """Return how often the regions of an operation are run each time."""
        if isinstance(op, scf.ForOp):
            low, high, step = (self._constants.of(value) for value in (op.lb, op.ub, op.step))
            if low is not None and high is not None and step:
                return max(0, -(-(high - low) // step))
            self.work.unknown_loops.append(op)
        elif isinstance(op, WhileOp | scf.WhileOp):
            self.work.unknown_loops.append(op)
        return 1

    def _add(self, op: Operation, times: int) -> None:
        # Every matrix product of the dialects, and nothing else, names its operands so.
        if all(hasattr(op, name) for name in "abd"):
            product: Any = op
            *batch, rows, depth = _shape(product.a)
            self.work.flops += 2 * times * prod(batch) * rows * depth * _shape(product.b)[-1]
            result = as_tensor(product.d.type)
            if result is not None and not _is_in_a_task(op):
                registers = prod(result.get_shape()) * element_bits(result.element_type) // 32
                self.work.accumulator = max(self.work.accumulator, registers)
        access = global_access(op)
        if access is None:
            return
        moved = times * _bytes(access)
        if Kind.READ in access.kind:
            self.work.read_bytes += moved
        if Kind.WRITE in access.kind:
            self.work.written_bytes += moved


def _is_in_a_task(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ttg.WarpSpecializeOp):
        parent = parent.parent_op()
    return parent is not None


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, ttg.MemDescType) else shape_of_tensor(value.type)


def _bytes(access: OperandAccess) -> int:
    """Bytes of an access through a pointer, a tensor of pointers, or a descriptor with its block."""
    type_ = access.value.type
    if isinstance(type_, tt.TensorDescType):
        return prod(type_.shape) * element_bits(type_.element_type) // 8
    tensor = as_tensor(type_)
    elements = 1 if tensor is None else prod(tensor.get_shape())
    return elements * element_bits(scalar_type(pointee_type(type_))) // 8
