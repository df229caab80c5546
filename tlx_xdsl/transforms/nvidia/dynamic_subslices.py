"""`tlx-lower-dynamic-subslices`: parts of buffers at run-time offsets.

Upstream Triton takes a part of a buffer at constant offsets only, and one of an array of buffers at any index. Where
the parts follow each other in shared memory, each as a buffer of its own would (`layouts/offset_terms.py`), the buffer
is an array of them. Otherwise the part has no type in Triton, and is refused.

Before, with rows of 128 bytes:
```mlir
%p = tlx.memdesc_dynamic_subslice %b[%i, %c0] : !ttg.memdesc<128x64xf16, ...> -> !ttg.memdesc<64x64xf16, ..., 128x64>
```
After:
```mlir
%tiles = ttg.memdesc_reinterpret %b : !ttg.memdesc<128x64xf16, ...> -> !ttg.memdesc<2x64x64xf16, ...>
%n = arith.divsi %i, %c64 : i32
%p = ttg.memdesc_index %tiles[%n] : !ttg.memdesc<2x64x64xf16, ...> -> !ttg.memdesc<64x64xf16, ...>
```
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, builtin
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import tlx, ttg
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.offset_terms import tile_strides
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, insert_before, ops_of, replace, retype
from .emit.integers import Integers
from .emit.shared_address import shared_layout


class LowerDynamicSubslicesPass(Pass):
    """Replace parts at run-time offsets by tiles of an array."""

    name = "tlx-lower-dynamic-subslices"

    def run(self, op: builtin.ModuleOp) -> None:
        """Rewrite every such part of the module.

        Raises CompilationError for parts that do not follow each other.
        """
        for inner in ops_of(op, tlx.MemDescDynamicSubsliceOp):
            _lower(inner)


def _lower(op: tlx.MemDescDynamicSubsliceOp) -> None:
    if not op.result.uses:
        Rewriter.erase_op(op)
        return
    source, part = ttg.memdesc_type(op.src.type), op.result.type
    strides = _strides(op, source, part)
    count = prod(source.shape) // prod(part.shape)
    tiles_type = part.with_shape((count, *part.shape))
    tiles = insert_before(op, ttg.MemDescReinterpretOp(operands=[op.src], result_types=[tiles_type]))
    integers = Integers(op)
    number: SSAValue | None = None
    for offset, size, stride in zip(op.offsets, part.shape, strides, strict=True):
        if stride == 0:
            # The part fills the dimension, so it begins at 0.
            continue
        step = insert_before(op, arith.DivSIOp(offset, integers.value(size))).result
        if stride != 1:
            step = insert_before(op, arith.MuliOp(step, integers.value(stride))).result
        number = step if number is None else insert_before(op, arith.AddiOp(number, step)).result
    index = integers.value(0) if number is None else number
    new = replace(op, ttg.MemDescIndexOp(operands=[tiles.result, index], result_types=[part.with_shape(part.shape)]))
    _retype_views(new.result)


def _strides(op: tlx.MemDescDynamicSubsliceOp, source: ttg.MemDescType, part: ttg.MemDescType) -> tuple[int, ...]:
    if source.alloc_shape[-len(source.shape) :] != source.shape:
        raise error_at(op, f"a part of a part can't be taken at an offset that is known at run time only: {source}")
    layout = shared_layout(op, source)
    try:
        return tile_strides(layout, source.shape, part.shape, source.element_bits)
    except InputError as error:
        wanted, whole = ("x".join(map(str, type_.shape)) for type_ in (part, source))
        raise error_at(
            op,
            f"{wanted} elements of {whole} can't be taken at an offset that is known at run time only: {error}",
            ("Triton takes such parts where each lies in shared memory as a buffer of its own",),
        ) from error


def _retype_views(value: SSAValue) -> None:
    """Give the views of a part types that are no parts of a larger buffer."""
    for user in [use.operation for use in value.uses]:
        views = [result for result in user.results if isinstance(result.type, ttg.MemDescType)]
        if not views:
            continue
        if not isinstance(user, ttg.MemDescTransOp):
            raise error_at(user, f"'{user.name}' can't view a part at an offset that is known at run time only")
        type_ = ttg.memdesc_type(user.result.type)
        retype(user.result, type_.with_shape(type_.shape))
        _retype_views(user.result)
