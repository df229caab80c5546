"""A machine that runs IR for the places of its buffers: written from what the operations mean, not from the passes.

Integers are integers. An array of buffers is an address in an allocation, counted in bytes or TMEM columns. Views are
checked to stay inside their allocation, and indices inside their array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, FileLineColLoc, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tlx_xdsl.dialects.ttg.types import MemDescType


@dataclass(frozen=True)
class View:
    """An array of buffers, or a buffer."""

    allocation: Operation
    address: int
    type_: MemDescType
    corner: int = 0
    """Elements before a slice of a buffer, as if its rows lay one after the other."""
    strides: tuple[int, ...] = ()
    """Elements from one row to the next, dimension by dimension."""


Value = int | View


@dataclass(frozen=True)
class Access:
    """A value whose location is that of an access."""

    path: str
    leaf: int
    view: View


def bits_of(type_: MemDescType) -> int:
    """Bits of an element."""
    text = str(type_.element_type).removeprefix("f").removeprefix("i").removeprefix("bf")
    return int(text.split("E")[0])


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))


class Machine:
    """Runs the function `@main` of a module; `size_of` gives the bytes (or columns) of a memdesc type."""

    def __init__(self, module: ModuleOp, size_of: Callable[[MemDescType], int]):
        self.size_of = size_of
        self.accesses: list[Access] = []
        self.functions: dict[str, Region] = {}
        for op in module.body.block.ops:
            name = op.properties.get("sym_name")
            assert isinstance(name, StringAttr)
            self.functions[name.data] = op.regions[0]

    def main(self, arguments: Sequence[Value]) -> list[Access]:
        """The accesses of one run."""
        self.accesses = []
        self.call(self.functions["main"], arguments, {})
        return self.accesses

    # --- control flow ---

    def call(self, region: Region, arguments: Sequence[Value], env: dict[SSAValue, Value]) -> list[Value]:
        """Run `region` from its first block on; what its terminator hands back."""
        block, env = region.blocks[0], dict(env)
        for _ in range(100):
            env.update(zip(block.args, arguments, strict=True))
            terminator = self.block(block, env)
            operands = [env[value] for value in terminator.operands]
            if terminator.name == "cf.br":
                block, arguments = terminator.successors[0], operands
            elif terminator.name == "cf.cond_br":
                taken = 0 if operands[0] else 1
                block = terminator.successors[taken]
                then = len(terminator.successors[0].args)
                arguments = operands[1 : 1 + then] if taken == 0 else operands[1 + then :]
            else:
                return operands
        raise AssertionError("a loop of blocks does not end")

    def block(self, block: Block, env: dict[SSAValue, Value]) -> Operation:
        """Run `block`; its terminator, which is not run."""
        for op in block.ops:
            if op.next_op is None:
                return op
            results = self.operation(op, env)
            env.update(zip(op.results, results, strict=True))
            for value in results:
                self.record(op, value)
        raise AssertionError("a block without an end")

    def record(self, op: Operation, value: Value) -> None:
        location = op.location
        if isinstance(value, View) and isinstance(location, FileLineColLoc):
            what, _, path = location.filename.data.partition(" ")
            if what == "access":
                self.accesses.append(Access(path, location.line.data - 1, value))

    def operation(self, op: Operation, env: dict[SSAValue, Value]) -> list[Value]:
        operands = [env[value] for value in op.operands]
        match op.name:
            case "scf.if":
                region = op.regions[0] if operands[0] else op.regions[1]
                return self.call(region, [], env) if region.blocks else []
            case "scf.for":
                low, high, step, *carried = operands
                for counter in range(integer(low), integer(high), integer(step)):
                    carried = self.call(op.regions[0], [counter, *carried], env)
                return carried
            case "scf.while":
                for _ in range(100):
                    go, *results = self.call(op.regions[0], operands, env)
                    if not go:
                        return results
                    operands = self.call(op.regions[1], results, env)
                raise AssertionError("a while loop does not end")
            case "tt.call":
                callee = op.properties["callee"]
                assert isinstance(callee, SymbolRefAttr)
                return self.call(self.functions[callee.string_value()], operands, {})
            case "ttg.warp_specialize":
                self.specialize(op, operands, env)
                return []
            case _:
                return [self.value(op, operands)] if op.results else []

    def specialize(self, op: Operation, operands: Sequence[Value], env: dict[SSAValue, Value]) -> None:
        default, holder = op.regions
        self.call(default, [], env)
        (partitions,) = holder.block.ops
        # The captures stand on one of the two, whichever way the operation is built.
        captures = [env[value] for value in partitions.operands] or operands
        for region in partitions.regions:
            self.call(region, captures, {})

    # --- values ---

    def value(self, op: Operation, operands: Sequence[Value]) -> Value:
        if op.name == "arith.constant":
            constant = op.properties["value"]
            assert isinstance(constant, IntegerAttr)
            return constant.value.data
        if op.name == "arith.cmpi":
            predicate = op.properties["predicate"]
            assert isinstance(predicate, IntegerAttr)
            return int(COMPARISONS[predicate.value.data](integer(operands[0]), integer(operands[1])))
        if op.name == "arith.select":
            return operands[1] if operands[0] else operands[2]
        if op.name in INTEGER_OPS:
            return INTEGER_OPS[op.name](*(integer(operand) for operand in operands))
        return self.view(op, operands)

    def view(self, op: Operation, operands: Sequence[Value]) -> View:
        type_ = op.results[0].type
        assert isinstance(type_, MemDescType)
        if op.name in ("ttg.local_alloc", "ttng.tmem_alloc"):
            assert not operands
            return View(op, 0, type_, 0, row_major(type_.shape))
        source = operands[0]
        assert isinstance(source, View)
        match op.name:
            case "ttg.memdesc_reinterpret" | "tlx.local_alias":
                assert source.corner == 0
                assert source.address + self.size_of(type_) <= self.size_of(allocated(source))
                return View(source.allocation, source.address, type_, 0, row_major(type_.shape))
            case "ttg.memdesc_index":
                index = integer(operands[1])
                assert 0 <= index < source.type_.shape[0], f"index {index} into {source.type_}"
                # The first dimension counts buffers, wherever a permutation put the others.
                address = source.address + index * self.size_of(whole_buffer(source.type_))
                return View(source.allocation, address, type_, source.corner, source.strides[1:])
            case "ttg.memdesc_trans":
                order = numbers(op, "order")
                strides = tuple(source.strides[dim] for dim in order)
                return View(source.allocation, source.address, type_, source.corner, strides)
            case "ttg.memdesc_reshape":
                assert source.strides == row_major(source.type_.shape)
                return View(source.allocation, source.address, type_, source.corner, row_major(type_.shape))
            case "ttg.memdesc_subslice":
                offsets = numbers(op, "offsets")
                corner = source.corner + sum(map(operator.mul, offsets, source.strides))
                return View(source.allocation, source.address, type_, corner, source.strides)
            case _:
                raise AssertionError(f"the machine does not know {op.name}")


COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
"""By the number of the predicate; unsigned ones are not distinguished, because indices are not negative."""

INTEGER_OPS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divui": operator.floordiv,
    "arith.remui": operator.mod,
    "arith.divsi": operator.floordiv,
    "arith.remsi": operator.mod,
    "arith.andi": operator.and_,
    "arith.shli": operator.lshift,
    "arith.shrui": operator.rshift,
    "arith.xori": operator.xor,
}


def whole_buffer(array: MemDescType) -> MemDescType:
    """The buffer that a buffer of `array` is a part of."""
    rank = len(array.shape) - 1
    return array.with_shape(array.alloc_shape[-rank:] if array.alloc_shape != array.shape else array.shape[1:])


def integer(value: Value) -> int:
    assert isinstance(value, int)
    return value


def numbers(op: Operation, name: str) -> tuple[int, ...]:
    value = op.properties[name]
    assert isinstance(value, DenseArrayBase)
    return tuple(int(number) for number in value.get_values())


def allocated(view: View) -> MemDescType:
    type_ = view.allocation.results[0].type
    assert isinstance(type_, MemDescType)
    return type_
