"""`tlx-dump-layout`: check what the user asserts of layouts, and print those that the user wants to see.

`tlx.assert_same_layout` and `tlx.assert_same_layout_expected` compare linear layouts: two attributes that put every
element at the same location are the same layout. Both, and `tlx.dump_layout`, leave the module.

Before:
```mlir
tlx.assert_same_layout %a, %b : tensor<64xf32, #blocked>, tensor<64xf32, #linear>
tlx.dump_layout %tile : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
```
After, nothing is left of them, and on standard error stands:
```
// tlx.dump_layout @ kernel.py:12:5
//   !ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{...}>, #ttg.shared_memory, mutable>
//   cute: Swizzle<3,3,3> o (_64,_64):(_64,_1)
//   line 9: TMA writes
//   line 14: threads read: ldmatrix, 128 bits per lane, no bank conflicts (16 wavefronts per warp)
//   stock Triton may still choose other layouts for registers
```
The layouts of buffers are final here; those of registers, and with them the accesses of threads, are what stock
Triton's passes begin with.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, NoneAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.layout_costs import FunctionBuffers
from tlx_xdsl.dialects.base import LayoutAttr, bare, element_bits, scalar_type, shape_of_tensor, tensor_type
from tlx_xdsl.dialects.tlx import AssertSameLayoutExpectedOp, AssertSameLayoutOp, DumpLayoutOp
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.dialects.ttg import MemDescType
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.conversion import to_linear_layout
from tlx_xdsl.layouts.conversion.shared import buffer_rank
from tlx_xdsl.layouts.cute import describe_layout
from tlx_xdsl.layouts.encodings import DistributedLayout, Ints, Layout, PaddedSharedLayout, SharedLayout
from tlx_xdsl.layouts.global_access import global_access
from tlx_xdsl.layouts.linear_layout import LinearLayout
from tlx_xdsl.text.diagnostics import error_at, source_location

from ..rewriting import Pass, ops_of, with_layout

GLOBAL_ALIGNMENT = 16
"""Bytes at which rows in global memory are taken to be aligned: what Triton knows of most pointers."""


class DumpLayoutPass(Pass):
    """Evaluate layout assertions, print layouts, and drop both."""

    name = "tlx-dump-layout"

    def run(self, op: ModuleOp) -> None:
        """Check first: what fails is not printed.

        Raises CompilationError at the assertion that does not hold, or where a layout is not chosen yet.
        """
        asserts = ops_of(op, AssertSameLayoutOp, AssertSameLayoutExpectedOp)
        for inner in asserts:
            if isinstance(inner, AssertSameLayoutOp):
                _check(inner, inner.lhs.type, inner.rhs.type)
            else:
                _check(inner, inner.src.type, _with_encoding(inner.src.type, inner.expected))
        for func in ops_of(op, FuncOp):
            if dumps := ops_of(func, DumpLayoutOp):
                known = FunctionBuffers(func)
                for dump in dumps:
                    print("\n".join(f"// {line}".rstrip() for line in _dumped(dump, known)), file=sys.stderr)
                    Rewriter.erase_op(dump)
        for inner in asserts:
            Rewriter.erase_op(inner)


@dataclass(frozen=True)
class _Placed:
    """A layout with the shape that it is used for."""

    layout: Layout
    shape: Ints

    @property
    def linear(self) -> LinearLayout:
        """The linear layout; of a buffer of several tiles that of one."""
        shape = self.shape
        if isinstance(self.layout, SharedLayout):
            shape = shape[len(shape) - buffer_rank(self.layout) :]
        elif not isinstance(self.layout, DistributedLayout):
            shape = shape[-2:]
        return to_linear_layout(self.layout, shape)

    def same(self, other: _Placed) -> bool:
        """True if every element is at the same location in both."""
        return (
            self.shape == other.shape
            and self.linear == other.linear
            and _paddings(self.layout) == _paddings(other.layout)
        )


def _paddings(layout: Layout) -> tuple[Ints, Ints]:
    """The properties of a padded buffer that a linear layout has not."""
    return (layout.intervals, layout.paddings) if isinstance(layout, PaddedSharedLayout) else ((), ())


def _encoding_and_shape(type_: Attribute) -> tuple[Attribute, Ints]:
    if isinstance(type_, MemDescType):
        return type_.encoding, type_.shape
    tensor = tensor_type(type_)
    return tensor.encoding, shape_of_tensor(tensor)


def _with_encoding(type_: Attribute, encoding: Attribute) -> Attribute:
    """The type with the layout that the user expects."""
    if isinstance(type_, MemDescType):
        return type_.with_encoding(encoding)
    return with_layout(tensor_type(type_), encoding)


def _placed(op: Operation, type_: Attribute) -> _Placed:
    encoding, shape = _encoding_and_shape(type_)
    encoding = bare(encoding)
    if isinstance(encoding, NoneAttr):
        raise error_at(op, f"{type_} has no layout yet: convert-triton-to-tritongpu gives it one")
    if not isinstance(encoding, LayoutAttr):
        raise error_at(op, f"the layout of {type_} is not chosen yet: tlx-resolve-placeholder-layouts does that")
    return _Placed(encoding.data, shape)


def _check(op: Operation, left: Attribute, right: Attribute) -> None:
    """Raise CompilationError, with both layouts, unless the types have the same one."""
    ours, theirs = _placed(op, left), _placed(op, right)
    try:
        same = ours.same(theirs)
    except InputError as error:
        raise error_at(op, f"layout assertion failed: {error}") from error
    if not same:
        notes = [
            f"{side} {_encoding_and_shape(type_)[0]}, which is {_one_line(placed)}"
            for side, type_, placed in (("here", left, ours), ("expected", right, theirs))
        ]
        raise error_at(op, "layout assertion failed: LinearLayouts differ", notes)


def _one_line(placed: _Placed) -> str:
    return "; ".join(line.strip() for line in describe_layout(placed.layout, placed.shape))


def _dumped(op: DumpLayoutOp, known: FunctionBuffers) -> Iterator[str]:
    """The lines about one value."""
    location = source_location(op.location)
    yield "tlx.dump_layout" if location is None else f"tlx.dump_layout @ {location}"
    yield f"  {op.src.type}"
    placed = _placed(op, op.src.type)
    try:
        yield from (f"  {line}" for line in describe_layout(placed.layout, placed.shape))
    except InputError as error:
        raise error_at(op, f"the layout does not fit {op.src.type}: {error}") from error
    if isinstance(op.src.type, MemDescType):
        accesses = known.accesses(known.root(op.src))
        yield from (f"  {'' if access.line is None else f'line {access.line}: '}{access}" for access in accesses)
        if all(access.cost is None for access in accesses):
            return
    else:
        yield f"  {_in_global_memory(op.src, placed)}"
    yield "  stock Triton may still choose other layouts for registers"


def _in_global_memory(value: SSAValue, placed: _Placed) -> str:
    """The dimension along which the layout reads and writes global memory best, and how."""
    assert isinstance(placed.layout, DistributedLayout)
    layout, shape, bits = placed.layout, placed.shape, element_bits(scalar_type(value.type))
    accesses = [
        global_access(layout, shape, bits, contiguity=size, alignment=GLOBAL_ALIGNMENT, dim=dim)
        for dim, size in enumerate(shape)
    ]
    # The last dimension wins a draw: most tensors are row-major.
    best = max(reversed(range(len(shape))), key=lambda dim: (accesses[dim].efficiency, accesses[dim].width_bits))
    return f"global memory that is contiguous along dimension {best}: {accesses[best]}"
