"""Blocks that are stored in pieces of their columns, one after the other through one small buffer.

Before:
```mlir
tt.descriptor_store %c[%i, %j], %x : !tt.tensordesc<64x256xf16>, tensor<64x256xf16>
```
After `store_in_pieces(..., 2)`, where `%first, %second` are the halves of `%x`:
```mlir
tt.descriptor_store %c[%i, %j], %first : !tt.tensordesc<64x128xf16>, tensor<64x128xf16>
%k = arith.addi %j, %c128 : i32
tt.descriptor_store %c[%i, %k], %second : !tt.tensordesc<64x128xf16>, tensor<64x128xf16>
```
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, StringAttr, TensorType, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import scalar_type, shape_of_tensor
from tlx_xdsl.dialects.tt import TensorDescType

from ...rewriting import constant, insert_before, retype, update_signature
from ..tasks_of import NOTE

LEAST_BITS = 512
"""Bits of a row of a piece: TMA then writes whole sectors, and swizzles 64 bytes or more."""


MANY = 8
"""Pieces from which on two buffers alternate: one is written while TMA reads the other."""


def buffers_of_pieces(pieces: int) -> int:
    """Return the buffers through which so many blocks go one after the other."""
    return 2 if pieces >= MANY else 1


def store_in_pieces(function: tt.FuncOp, stores: list[tt.DescriptorStoreOp], pieces: int) -> list[tt.DescriptorStoreOp]:
    """Split each store that can be into `pieces`, a power of two; return all stores, in order."""
    found: list[tt.DescriptorStoreOp] = []
    made: dict[SSAValue, SSAValue] = {}
    for store in stores:
        descriptor = made.get(store.desc) or _descriptor_of_pieces(store, stores, pieces)
        if descriptor is None:
            found.append(store)
            continue
        made[store.desc] = descriptor
        found += _split(store, descriptor, pieces)
    update_signature(function)
    return found


def _descriptor_of_pieces(
    store: tt.DescriptorStoreOp, stores: list[tt.DescriptorStoreOp], pieces: int
) -> SSAValue | None:
    """Return a descriptor like that of a store, of a piece; None where it can't be made."""
    type_ = store.desc.type
    assert isinstance(type_, TensorDescType), "a block is stored through a descriptor"
    columns = type_.shape[-1]
    if len(shape_of_tensor(store.src.type)) < 2 or columns % pieces:
        return None
    if columns // pieces * type_.element_bits < LEAST_BITS:
        return None
    smaller = TensorDescType.get((*type_.shape[:-1], columns // pieces), type_.element_type, type_.encoding)
    owner = store.desc.owner
    if isinstance(owner, Block):
        is_only_stored = all(use.operation in stores for use in store.desc.uses)
        if not isinstance(owner.parent_op(), tt.FuncOp) or not is_only_stored:
            return None
        retype(store.desc, smaller)
        return store.desc
    if not isinstance(owner, tt.MakeTensorDescOp):
        return None
    copy = insert_before(owner, owner.clone())
    retype(copy.result, smaller)
    copy.result.name_hint = store.desc.name_hint
    return copy.result


def _split(store: tt.DescriptorStoreOp, descriptor: SSAValue, pieces: int) -> list[tt.DescriptorStoreOp]:
    """Replace a store by those of its pieces."""
    values: list[SSAValue] = [store.src]
    note = StringAttr(f"in {pieces} pieces, through less shared memory: the rings have more")
    while len(values) < pieces:
        splits = [_halves(value, store) for value in values]
        if len(splits) == 1:
            splits[0].attributes[NOTE] = note
        values = [half for split in splits for half in split.results]
    for value in values:
        value.name_hint = "piece"
    made: list[tt.DescriptorStoreOp] = []
    *rows, column = store.indices
    for number, value in enumerate(values):
        at = column
        if number:
            offset = insert_before(store, constant(number * shape_of_tensor(value.type)[-1], i32)).result
            at = insert_before(store, arith.AddiOp(column, offset)).result
        made.append(insert_before(store, tt.DescriptorStoreOp(operands=[descriptor, value, [*rows, at]])))
    store.detach()
    store.erase()
    return made


def _halves(value: SSAValue, before: Operation) -> tt.SplitOp:
    """Take the left and the right half of a tensor: registers of a thread become those of two values."""
    *rows, columns = shape_of_tensor(value.type)
    element, rank = scalar_type(value.type), len(rows)
    apart = _tensor(element, *rows, 2, columns // 2)
    reshaped = insert_before(before, tt.ReshapeOp(operands=[value], properties={}, result_types=[apart])).result
    order = DenseArrayBase.from_list(i32, [*range(rank), rank + 1, rank])
    turned_type = _tensor(element, *rows, columns // 2, 2)
    turned = insert_before(
        before, tt.TransOp(operands=[reshaped], properties={"order": order}, result_types=[turned_type])
    ).result
    half = _tensor(element, *rows, columns // 2)
    return insert_before(before, tt.SplitOp(operands=[turned], result_types=[half, half]))


def _tensor(element: Attribute, *shape: int) -> TensorType[Attribute]:
    return TensorType(element, shape)
