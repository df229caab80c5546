"""`convert-triton-to-tritongpu`: give every tensor a layout.

A tensor without requirements gets the default blocked layout of its region's warps; accumulators of wgmma keep the
instruction's layout all the way (see `accumulators`); beside matrix instructions, accesses to global memory are
coalesced or have the layout of what they meet (see `access_layouts`); layouts of the text are kept. Where two layouts
meet, a `ttg.convert_layout` is put, and upstream Triton's `remove-layout-conversions` picks the best of them. Tensor
descriptors get the shared-memory layout of the buffers that they are copied to and from.

Before:
```mlir
%0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
%1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
```
After, with 4 warps:
```mlir
%0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
%1 = ttg.convert_layout %0 : tensor<128xi32, #blocked> -> tensor<128xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
%2 = tt.expand_dims %1 {axis = 0 : i32} : tensor<128xi32, #ttg.slice<...>> -> tensor<1x128xi32, #blocked1>
```
"""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp, NoneAttr, TensorType
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.analysis.module_attrs import NUM_CTAS, num_warps
from tlx_xdsl.dialects.base import EachElement, is_elementwise, module_integer
from tlx_xdsl.dialects.ttg import as_tensor
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, ops_of

# The handlers register themselves when they are imported.
from . import conversion as conversion
from .access_layouts import access_layouts, has_matrix_instructions
from .accumulators import accumulator_layouts
from .callees import functions_by_warps
from .conversion.control_flow import function
from .conversion.converter import Converter
from .descriptors import assign_descriptor_layouts


class ConvertTritonToTritonGPUPass(Pass):
    """Give every tensor and descriptor a layout, and convert at the borders."""

    name = "convert-triton-to-tritongpu"

    def run(self, op: ModuleOp) -> None:
        """Convert all functions of the module."""
        warps = num_warps(op)
        ctas = _shared_by(op)
        _unshare_tensor_constants(op)
        for func, its_warps in functions_by_warps(op, warps).items():
            accumulators = accumulator_layouts(func, its_warps)
            accesses = access_layouts(func, its_warps, accumulators) if has_matrix_instructions(op) else {}
            assign_descriptor_layouts(func)
            function(Converter(accumulators, accesses, ctas), func, its_warps)


def _shared_by(module: ModuleOp) -> int:
    """The CTAs that share each tensor of the module.

    Raises CompilationError where several share what is no element by element work on tensors of one dimension: each
    has a part of it, and no layout here says which part of others it would have to reach.
    """
    if (ctas := module_integer(module, NUM_CTAS) or 1) == 1:
        return 1
    for op in module.walk():
        types = [type_ for value in (*op.operands, *op.results) if (type_ := as_tensor(value.type))]
        chosen = all(not isinstance(type_.encoding, NoneAttr) for type_ in types)
        if not chosen and (any(len(type_.get_shape()) != 1 for type_ in types) or not _is_for_each_element(op)):
            raise error_at(
                op,
                f"num_ctas={ctas} shares tensors among CTAs: beside tlx that works for what is done to each element of "
                f"tensors of one dimension only, found '{op.name}'",
                ["ctas_per_cga=(2, 1, 1) makes clusters in which each CTA has tensors of its own"],
            )
    return ctas


def _is_for_each_element(op: Operation) -> bool:
    """True if no element of a tensor has to do with another one."""
    return is_elementwise(op) or op.has_trait(EachElement, value_if_unregistered=False)


def _unshare_tensor_constants(module: ModuleOp) -> None:
    """Give each use of a tensor constant its own constant, since each use may want another layout."""
    for op in ops_of(module, ConstantOp):
        if isinstance(op.result.type, TensorType):
            for use in list(op.result.uses)[1:]:
                copy = op.clone()
                Rewriter.insert_op(copy, InsertPoint.after(op))
                use.operation.operands[use.index] = copy.result
