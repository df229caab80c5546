"""`expand-local-scatter`: putting into a buffer as stores to its addresses, for Triton 3.6, which lacks the former.

The threads compute the address of each element that they hold, by the buffer's layout, and store it. Barriers of the
region keep that in order with other accesses to the buffer, as upstream Triton sees none in PTX.

Before:
```mlir
ttg.local_scatter %b[%i], %v {axis = 0 : i32} : !ttg.memdesc<1024xf32, ...>, tensor<32xi32>, tensor<32xf32>
```
After `expand-local-scatter`:
```mlir
ttg.barrier local
%at = arith.addi %base, %offsets : tensor<32xi32>
%0 = tt.elementwise_inline_asm "st.shared.b32 [$1], $2; mov.u32 $0, 0;" {...} %at, %bits : ...
ttg.barrier local
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import arith, tt, ttg
from tlx_xdsl.dialects.base import element_bits, tensor_type

from ..rewriting import Pass, insert_before, ops_of
from .emit.integers import Integers, Number
from .emit.ptx import elementwise_ptx, wait_for_region
from .emit.shared_address import address_terms, byte_of, shared_base


class ExpandLocalScatterPass(Pass):
    """Replace every `ttg.local_scatter` by stores to the buffer's addresses."""

    name = "expand-local-scatter"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for a buffer whose elements have no linear addresses.
        """
        for inner in ops_of(op, ttg.LocalScatterOp):
            wait_for_region(inner)
            _store(inner)
            Rewriter.erase_op(inner)


class _Elements(Integers):
    """Integer arithmetic on tensors of one shape: numbers and scalars are the same for each element."""

    def __init__(self, anchor: Operation, shape: Sequence[int]):
        super().__init__(anchor)
        self.shape = tuple(shape)

    def value(self, number: Number, type_: IntegerType = i32) -> SSAValue:
        tensor = TensorType(type_, self.shape)
        if not isinstance(number, SSAValue):
            constant = DenseIntOrFPElementsAttr.from_list(cast(Any, tensor), [number])
            return insert_before(self.anchor, ConstantOp(constant)).result
        if isinstance(number.type, TensorType):
            return number
        return insert_before(self.anchor, tt.SplatOp(operands=[number], result_types=[tensor])).result

    def position(self, dim: int) -> SSAValue:
        """The index of each element along `dim`."""
        size = self.shape[dim]
        bounds = {"start": IntegerAttr(0, i32), "end": IntegerAttr(size, i32)}
        value: SSAValue = insert_before(
            self.anchor, tt.MakeRangeOp(properties=bounds, result_types=[TensorType(i32, [size])])
        ).result
        shape = [size]
        for axis in range(len(self.shape)):
            if axis != dim:
                shape.insert(axis, 1)
                expanded = tt.ExpandDimsOp(
                    operands=[value],
                    properties={"axis": IntegerAttr(axis, i32)},
                    result_types=[TensorType(i32, shape)],
                )
                value = insert_before(self.anchor, expanded).result
        broadcast = tt.BroadcastOp(operands=[value], result_types=[TensorType(i32, self.shape)])
        return value if tuple(shape) == self.shape else insert_before(self.anchor, broadcast).result


def _store(op: ttg.LocalScatterOp) -> None:
    elements = _Elements(op, tensor_type(op.indices.type).get_shape())
    axis = op.axis.value.data
    base, start = shared_base(op, op.dst)
    index: list[Number] = [elements.position(dim) if dim != axis else _as_i32(op) for dim in range(len(start))]
    index = [elements.add(number, at) for number, at in zip(index, start, strict=True)]
    address = elements.value(elements.add(base, byte_of(elements, address_terms(op, op.dst), index)))
    bits, width = _as_register(op)
    constraint = "l" if width == 64 else "r"
    code = f"st.shared.b{width} [$1], $2; mov.u32 $0, 0;"
    operands = [address, bits]
    # Triton knows PTX with results only.
    result = TensorType(i32, elements.shape)
    insert_before(op, elementwise_ptx(code, f"=r,r,{constraint}", 1, operands, result, pure=False))
    wait_for_region(op)


def _as_i32(op: ttg.LocalScatterOp) -> SSAValue:
    """The indices, which name places of the buffer."""
    bits = element_bits(tensor_type(op.indices.type).element_type)
    if bits == 32:
        return op.indices
    make = arith.TruncIOp if bits > 32 else arith.ExtUIOp
    return insert_before(op, make(op.indices, i32)).result


def _as_register(op: ttg.LocalScatterOp) -> tuple[SSAValue, int]:
    """The bits of the values as integers of 32 or 64 bits, and how many of them are stored."""
    type_ = tensor_type(op.values.type)
    width, shape = element_bits(type_.element_type), type_.get_shape()
    value: SSAValue = op.values
    if not isinstance(type_.element_type, IntegerType):
        make = tt.PtrToIntOp if isinstance(type_.element_type, tt.PointerType) else tt.BitcastOp
        integer: Attribute = TensorType(IntegerType(width), shape)
        value = insert_before(op, make(operands=[value], result_types=[integer])).result
    if width < 32:
        value = insert_before(op, arith.ExtUIOp(value, i32)).result
    return value, width
