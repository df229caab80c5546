"""Parts of values: the rewriting of a function after a cut, so that each value has what one group of warps needs."""

from __future__ import annotations

from math import gcd, prod
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, IntegerAttr, TensorType, i32
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from tlx_xdsl.dialects import arith as our_arith, tt
from tlx_xdsl.dialects.base import as_tensor
from tlx_xdsl.dialects.dimensions import shape_of_value
from tlx_xdsl.dialects.tlx import ReplicaIdOp

from ...rewriting import constant, insert_before, retype, update_signature
from ..slices import is_only_read
from .cuts import Cuts
from .group_places import BLOCK_ACCESSES
from .whole_accesses import whole_stores


class Parts:
    """Rewrites a function so that it computes the part of group `tlx.replica_id`."""

    def __init__(self, function: tt.FuncOp, cuts: Cuts) -> None:
        self._function = function
        self._cuts = cuts
        self._made: dict[tuple[SSAValue, int], SSAValue] = {}
        self._group = ReplicaIdOp().result
        self._group.name_hint = "group"

    def make(self) -> None:
        """Rewrite the function."""
        first = self._function.body.blocks[0].first_op
        assert first is not None, "a function ends in an operation"
        insert_before(first, self._group.owner, located_at=self._function)
        ops = list(self._function.walk())
        once = whole_stores(self._function, self._cuts)
        for op in ops:
            # What is computed again is taken from ties, which the shapes give: before they change.
            for index, operand in enumerate(op.operands):
                dim = self._cuts.dim_of(op, index)
                if dim is not None and dim in self._cuts.parts.get(operand, ()):
                    op.operands[index] = self._part(operand, dim)
        blocks = [(op, dim) for op in ops if (dim := self._dim_of_block(op)) is not None]
        for value, dim in self._cuts.dims.items():
            retype(value, self._type_of_part(value, dim))
            if isinstance(value, OpResult):
                _fit_hints(value.op, dim, shape_of_value(value)[dim])
        for op, dim in blocks:
            self._move_block(op, dim)
        for op in once:
            self._let_first_group(op)
        for op in reversed(ops):
            if is_only_read(op) and not op.regions and op.results and not any(each.uses for each in op.results):
                op.detach()
                op.erase()
        update_signature(self._function)

    def _type_of_part(self, value: SSAValue, dim: int) -> Attribute:
        shape = list(shape_of_value(value))
        shape[dim] //= self._cuts.groups
        type_ = value.type
        if isinstance(type_, tt.TensorDescType):
            return tt.TensorDescType.get(shape, type_.element_type, type_.encoding)
        tensor = as_tensor(type_)
        assert tensor is not None, "tensors and descriptors are cut"
        return TensorType(tensor.element_type, shape, tensor.encoding)

    def _part(self, value: SSAValue, dim: int) -> SSAValue:
        """Compute a part of what follows from numbers, beside the whole."""
        if (value, dim) not in self._made:
            assert isinstance(value, OpResult)
            part = self._copy(value, dim)
            part.name_hint = value.name_hint
            self._made[value, dim] = part
        return self._made[value, dim]

    def _copy(self, value: OpResult, dim: int) -> SSAValue:
        op, type_ = value.op, self._type_of_part(value, dim)
        if isinstance(op, tt.MakeRangeOp):
            return self._part_of_range(op, type_)
        if isinstance(op, arith.ConstantOp):
            return insert_before(op, _resized(op, type_)).result
        copy = op.clone()
        for index, dim_of_operand in self._cuts.operands_of_part(value, dim).items():
            copy.operands[index] = self._part(op.operands[index], dim_of_operand)
        result = copy.results[value.index]
        retype(result, type_)
        insert_before(op, copy)
        _fit_hints(copy, dim, shape_of_value(result)[dim])
        return result

    def _part_of_range(self, op: tt.MakeRangeOp, type_: Attribute) -> SSAValue:
        """Compute the numbers of a group: those of the first one, and how many come before."""
        start, length = op.start.value.data, shape_of_value(op.result)[0] // self._cuts.groups
        properties = {"start": op.start, "end": IntegerAttr(start + length, i32)}
        numbers = insert_before(op, tt.MakeRangeOp.create(properties=properties, result_types=[type_]))
        before = self._elements_before(op, length)
        offset = insert_before(op, tt.SplatOp.create(operands=[before], result_types=[type_]))
        return insert_before(op, arith.AddiOp(offset.results[0], numbers.results[0])).result

    def _elements_before(self, user: Operation, length: int) -> SSAValue:
        """Compute how many elements come before those of the group."""
        number = insert_before(user, constant(length, i32))
        return insert_before(user, arith.MuliOp(self._group, number.result)).result

    def _dim_of_block(self, op: Operation) -> int | None:
        """Return the dimension along which the block is cut that `op` accesses by a descriptor."""
        if not isinstance(op, BLOCK_ACCESSES):
            return None
        return self._cuts.dim_of(op, op.operands.index(op.desc))

    def _move_block(self, op: Operation, dim: int) -> None:
        """Access the block of the group."""
        assert isinstance(op, BLOCK_ACCESSES)
        before = self._elements_before(op, shape_of_value(op.desc)[dim])
        # The indices are the last operands.
        number = len(op.operands) - len(op.indices) + dim
        op.operands[number] = insert_before(op, arith.AddiOp(op.operands[number], before)).result

    def _let_first_group(self, op: Operation) -> None:
        """Let the first group alone do `op`."""
        zero = insert_before(op, constant(0, i32))
        is_first = insert_before(op, our_arith.CmpiOp("eq", self._group, zero.result))
        insert_before(op, scf.IfOp(is_first.result, [], Region(Block([end := scf.YieldOp()]))))
        op.detach()
        insert_before(end, op, located_at=op)
        end.location = op.location


def _resized(op: arith.ConstantOp, type_: Attribute) -> arith.ConstantOp:
    """Make the constant of fewer elements."""
    value = op.value
    assert isinstance(value, DenseIntOrFPElementsAttr)
    tensor: Any = type_
    element = value.data.data[: value.get_element_type().compile_time_size]
    resized = DenseIntOrFPElementsAttr(tensor, BytesAttr(element * prod(tensor.get_shape())))
    return arith.ConstantOp.create(properties={"value": resized}, result_types=[type_])


def _fit_hints(op: Operation, dim: int, size: int) -> None:
    """Let what the user says of runs of elements hold for runs that fit the part."""
    runs = {name: _numbers(op, f"tt.{name}") for name in ("contiguity", "constancy")}
    divisibility = _numbers(op, "tt.divisibility")
    for name, numbers in runs.items():
        if numbers is not None and dim < len(numbers) and numbers[dim] > size:
            numbers[dim] = size
            _say(op, f"tt.{name}", numbers)
            if name == "contiguity" and divisibility is not None:
                # A run that began in the middle of a longer one begins at another multiple.
                divisibility[dim] = gcd(divisibility[dim], size)
                _say(op, "tt.divisibility", divisibility)


def _numbers(op: Operation, name: str) -> list[int] | None:
    value = op.attributes.get(name)
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return None
    return [int(number) for number in value.get_values()]


def _say(op: Operation, name: str, numbers: list[int]) -> None:
    type_: Any = TensorType(i32, [len(numbers)])
    op.attributes[name] = DenseIntOrFPElementsAttr.from_list(type_, numbers)
