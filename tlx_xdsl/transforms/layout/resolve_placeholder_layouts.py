"""`tlx-resolve-placeholder-layouts`: replace placeholders by layouts.

A `#tlx.dummy_register_layout` becomes the layout in which the warps of its region, which may be a partition's, load
or store the buffer in tensor memory that the tensor comes from or goes to; without such a buffer one that would do
for an accumulator of its shape when `tmem_compatible`, else the default blocked layout. `#tlx.no_verify_layout` goes
everywhere, and `#tlx.user_layout` where it is around the layout of a buffer. A load whose only use is a conversion to a
layout that tensor memory can be loaded in has that layout at once: upstream Triton would drop the conversion.

Before, with 4 warps:
```mlir
%v = ttng.tmem_load %acc : !ttg.memdesc<128x64xf32, #tmem, ...>
    -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
```
After:
```mlir
%v = ttng.tmem_load %acc : !ttg.memdesc<128x64xf32, #tmem, ...> -> tensor<128x64xf32, #linear>
```
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.base import LayoutAttr, as_tensor, bare, is_elementwise, layout_attr, num_warps_of, tensor_type
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.layouts.conversion.tiling import LANE, REGISTER, WARP, dim_names
from tlx_xdsl.layouts.distributed import default_blocked_layout, tensor_memory_register_layout
from tlx_xdsl.layouts.encodings import DistributedLayout, Ints, TensorMemoryLayout, TmemLayout
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, insert_adaptor, insert_before, retype, with_layout
from .encodings import give_constant_its_type, map_encodings, values_of, without
from .needs import MAX_BLOCK_M, MAX_BLOCK_N


class ResolvePlaceholderLayoutsPass(Pass):
    """Replace placeholders for layouts by layouts."""

    name = "tlx-resolve-placeholder-layouts"

    def run(self, op: ModuleOp) -> None:
        """Unwrap, then find layouts for what is left."""
        map_encodings(op, _unwrapped)
        _Resolver(op).resolve()


def _unwrapped(encoding: Attribute, of_buffer: bool) -> Attribute:
    return bare(encoding) if of_buffer else without(encoding, tlx.NoVerifyLayoutAttr)


def _placeholder(value: SSAValue) -> tlx.DummyRegisterLayoutAttr | None:
    type_ = as_tensor(value.type)
    encoding = None if type_ is None else bare(type_.encoding)
    return encoding if isinstance(encoding, tlx.DummyRegisterLayoutAttr) else None


class _Resolver:
    """Finds groups of values that must have one layout, and the layout of each."""

    def __init__(self, module: ModuleOp):
        self._ops = list(module.walk())
        self._values = [value for op in self._ops for value in values_of(op) if _placeholder(value) is not None]
        self._classes = ValueClasses.of(module, TensorType) if self._values else ValueClasses()
        self._layouts: dict[SSAValue, Attribute] = {}

    def resolve(self) -> None:
        """Give every value with a placeholder a layout."""
        anchors = list(self._anchors())
        for _, value, layout in anchors:
            if value not in self._layouts:
                self._spread(value, layout)
        for value in self._values:
            if value not in self._layouts:
                self._spread(value, _default(value))
        for value in self._values:
            retype(value, with_layout(tensor_type(value.type), self._layouts[value]))
            if isinstance(value.owner, ConstantOp):
                give_constant_its_type(value.owner)
        for op, value, layout in anchors:
            if self._layouts[value] != layout:
                _convert(op, value, layout)

    def _anchors(self) -> Iterator[tuple[Operation, SSAValue, Attribute]]:
        """The loads from and stores to tensor memory, their tensors, and the layouts for that."""
        for op in self._ops:
            for value, buffer in _at_tensor_memory(op):
                if _placeholder(value) is not None:
                    layout = tensor_memory_encoding(op, buffer)
                    yield op, value, _wanted(value, buffer) or layout

    def _spread(self, value: SSAValue, layout: Attribute) -> None:
        """Give `layout` to `value` and all values that must have the same."""
        pending = [value]
        while pending:
            at = pending.pop()
            if at in self._layouts or _placeholder(at) is None:
                continue
            self._layouts[at] = layout
            pending += self._classes.members(at)
            neighbours = [use.operation for use in at.uses]
            if isinstance(at.owner, Operation):
                neighbours.append(at.owner)
            for op in neighbours:
                if is_elementwise(op):
                    pending += [*op.operands, *op.results]


def _at_tensor_memory(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """The tensor that `op` loads from tensor memory or stores to it, and the buffer."""
    match op:
        case ttng.TMEMLoadOp():
            return [(op.result, op.src)]
        case ttng.TMEMStoreOp():
            return [(op.src, op.dst)]
        case ttng.TMEMAllocOp() if op.src is not None:
            return [(op.src, op.result)]
        case _:
            return []


def _wanted(loaded: SSAValue, buffer: SSAValue) -> Attribute | None:
    """The layout that a tensor is converted to at once, if the load itself can have it."""
    value = loaded
    # As the user's pin comes here: out of the placeholder, and into the layout.
    for _ in range(2):
        users = [use.operation for use in value.uses]
        if len(users) != 1 or not isinstance(users[0], ttg.ConvertLayoutOp):
            return None
        value = users[0].result
    layout = tensor_type(value.type).encoding
    return layout if _loads_rows(layout, ttg.memdesc_type(buffer.type)) else None


def _loads_rows(encoding: Attribute, buffer: ttg.MemDescType) -> bool:
    """Return whether a thread holds whole words of one of 128 rows, as `tcgen05.ld.32x32b` loads them.

    Warp w can access rows 32 * (w % 4) and up only (PTX ISA, "Tensor Memory Access Restrictions"); which warp of a row
    holds which columns, and which of its registers, is free.
    """
    layout = ttng.tensor_memory_layout(buffer)
    if not isinstance(encoding, LayoutAttr) or not isinstance(encoding.data, DistributedLayout):
        return False
    if not isinstance(layout, TensorMemoryLayout) or (layout.block_m, layout.col_stride) != (MAX_BLOCK_M, 1):
        return False
    if len(buffer.shape) != 2 or buffer.shape[0] != MAX_BLOCK_M or buffer.element_bits != 32:
        return False
    bases = distributed_to_linear(encoding.data, buffer.shape).transpose_outs(dim_names(2)).bases
    rows = [*bases.get(LANE, ()), *bases.get(WARP, ())[:2]]
    columns = sorted([*bases.get(REGISTER, ()), *bases.get(WARP, ())[2:]])
    return [tuple(basis) for basis in rows] == [(1 << bit, 0) for bit in range(7)] and [
        tuple(basis) for basis in columns
    ] == [(0, 1 << bit) for bit in range(buffer.shape[1].bit_length() - 1)]


def _convert(op: Operation, value: SSAValue, layout: Attribute) -> None:
    """Let `op`, which loads or stores `value` with another layout than its own, do that in `layout`."""
    type_ = tensor_type(value.type)
    own = with_layout(type_, layout)
    if value.owner is not op:
        index = list(op.operands).index(value)
        op.operands[index] = insert_before(op, ttg.ConvertLayoutOp(operands=[value], result_types=[own])).result
        return
    insert_adaptor(value, ttg.ConvertLayoutOp(operands=[value], result_types=[type_]))
    retype(value, own)


def tensor_memory_encoding(op: Operation, buffer: SSAValue) -> Attribute:
    """The layout in which the warps that run `op` load and store a buffer in tensor memory.

    Raises CompilationError when there is none, or the buffer's layout is not chosen.
    """
    type_ = ttg.memdesc_type(buffer.type)
    if (layout := ttng.tensor_memory_layout(type_)) is None:
        raise error_at(op, f"the layout of this buffer in tensor memory is not chosen: {type_}")
    return _register_encoding(op, layout, type_.shape)


def _register_encoding(op: Operation, layout: TmemLayout, shape: Ints) -> Attribute:
    try:
        return layout_attr(tensor_memory_register_layout(layout, shape, _warps(op)))
    except InputError as error:
        raise error_at(op, str(error)) from error


def _warps(op: Operation) -> int:
    warps = num_warps_of(op)
    if warps is None:
        raise error_at(op, "the module needs the attribute 'ttg.num-warps'; the pass triton-tlx-fixup sets it")
    return warps


def _default(value: SSAValue) -> Attribute:
    """The layout of a tensor that no tensor memory says anything about."""
    placeholder = _placeholder(value)
    assert placeholder is not None
    shape = tensor_type(value.type).get_shape()
    op = value.owner if isinstance(value.owner, Operation) else value.owner.first_op
    assert op is not None, "a block has a terminator"
    if not placeholder.tmem_compatible.value.data:
        return layout_attr(default_blocked_layout(shape, _warps(op)))
    if len(shape) != 2:
        raise error_at(op, f"a tensor that tensor memory can hold has 2 dimensions, found {list(shape)}")
    layout = TensorMemoryLayout(min(shape[0], MAX_BLOCK_M), min(shape[1], MAX_BLOCK_N), 1)
    return _register_encoding(op, layout, shape)
