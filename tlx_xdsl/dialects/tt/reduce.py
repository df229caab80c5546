"""Reductions and scans with a region that combines two elements (TritonOps.td).

They have no syntax but the generic one:

```mlir
%1 = "tt.reduce"(%0) <{axis = 1 : i32}> ({
^bb0(%a: f32, %b: f32):
  %sum = arith.addf %a, %b : f32
  tt.reduce.return %sum : f32
}) : (tensor<64x64xf32>) -> tensor<64xf32>
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, Region
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.inferred import fault_of_slice

from ..base import (
    ANY_LIKE,
    ANY_TENSOR,
    SameShapeAndLayout,
    TritonOp,
    as_tensor,
    scalar_type,
    shape_of_tensor,
    verify_places,
)


class _CombiningOp(TritonOp):
    """Shared parts of reduce and scan."""

    srcs = var_operand_def(ANY_TENSOR)
    axis = prop_def(IntegerAttr.constr(i32))

    def verify_sources(self, region: Region) -> tuple[int, ...]:
        """Check the sources against the axis and the region, and return their shape."""
        if not self.srcs:
            raise VerifyException("needs at least one operand")
        shape = shape_of_tensor(self.srcs[0].type)
        axis = self.axis.value.data
        if not 0 <= axis < len(shape):
            raise VerifyException(f"axis {axis} is outside the {len(shape)} dimensions of {self.srcs[0].type}")
        for source in self.srcs:
            if shape_of_tensor(source.type) != shape:
                raise VerifyException(f"the operands must have one shape, found {source.type}")
        elements = [scalar_type(source.type) for source in self.srcs]
        block = region.block
        if [argument.type for argument in block.args] != elements * 2:
            raise VerifyException("the region must take two elements of each operand")
        last = block.last_op
        if not isinstance(last, ReduceReturnOp | ScanReturnOp):
            raise VerifyException(f"the region must end in '{self.name}.return'")
        if [value.type for value in last.result] != elements:
            raise VerifyException("the region must return one element of each operand")
        return shape


@irdl_op_definition
class ReduceOp(_CombiningOp):
    """Combine the elements along `axis`, which vanishes; several operands are reduced together.

    `reduction_ordering` is of Meta's Triton: with "inner_tree" neighbours are combined first, then pairs of them,
    and so on, whatever the layout is. That is the order of the interpreter.
    """

    name = "tt.reduce"

    reduction_ordering = opt_prop_def(StringAttr)
    result = var_result_def(ANY_LIKE)
    combine_op = region_def("single_block")

    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Each result is its operand without the axis."""
        shape = self.verify_sources(self.combine_op)
        axis = self.axis.value.data
        expected = shape[:axis] + shape[axis + 1 :]
        if len(self.result) != len(self.srcs):
            raise VerifyException(f"has {len(self.srcs)} operands but {len(self.result)} results")
        for source, result in zip(self.srcs, self.result, strict=True):
            if scalar_type(result.type) != scalar_type(source.type) or _shape(result.type) != expected:
                raise VerifyException(f"{source.type} cannot reduce to {result.type} along axis {axis}")
            if as_tensor(result.type) is not None:
                verify_places(source.type, result.type, lambda whole, of: fault_of_slice(whole, of, expected, axis))

    def why_not_compiled(self) -> str | None:
        """Upstream Triton reads an ordering and forgets it."""
        if self.reduction_ordering in (None, StringAttr("unordered")):
            return None
        return f"upstream Triton does not keep reduction_ordering = {self.reduction_ordering}"


def _shape(type_: Attribute) -> tuple[int, ...]:
    tensor = as_tensor(type_)
    return () if tensor is None else tensor.get_shape()


@irdl_op_definition
class ReduceReturnOp(TritonOp):
    """End the region of a `tt.reduce`."""

    name = "tt.reduce.return"

    result = var_operand_def()

    traits = traits_def(IsTerminator(), HasParent(ReduceOp), Pure())
    assembly_format = "$result attr-dict `:` type($result)"


@irdl_op_definition
class ScanOp(_CombiningOp):
    """Combine each element with those before it along `axis` (after it with `reverse`), itself included."""

    name = "tt.scan"

    reverse = prop_def(BoolAttr)
    result = var_result_def(ANY_TENSOR)
    combine_op = region_def("single_block")

    traits = traits_def(SameShapeAndLayout(), Pure())

    def verify_(self) -> None:
        """The results have the types of the operands."""
        self.verify_sources(self.combine_op)
        if [result.type for result in self.result] != [source.type for source in self.srcs]:
            raise VerifyException("the results must have the types of the operands")


@irdl_op_definition
class ScanReturnOp(TritonOp):
    """End the region of a `tt.scan`."""

    name = "tt.scan.return"

    result = var_operand_def()

    traits = traits_def(IsTerminator(), HasParent(ScanOp), Pure())
    assembly_format = "$result attr-dict `:` type($result)"
