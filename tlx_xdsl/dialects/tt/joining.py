"""Operations of `tt` that make one tensor of two, or two of one (TritonOps.td)."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.inferred import fault_of_cat, fault_of_halves

from ..base import ANY_TENSOR, SourceType, TritonOp, same, scalar_type, shape_of_tensor, verify_places


@irdl_op_definition
class CatOp(TritonOp):
    """The elements of both tensors in one, in an order that is up to the compiler.

    Example: `%2 = tt.cat %0, %1 : tensor<64xf32> -> tensor<128xf32>`
    """

    name = "tt.cat"

    TYPE: ClassVar = same("TYPE", ANY_TENSOR)

    lhs = operand_def(TYPE)
    rhs = operand_def(TYPE)
    result = result_def(ANY_TENSOR)

    traits = traits_def(NoMemoryEffect())
    custom_directives = (SourceType,)
    assembly_format = "$lhs `,` $rhs attr-dict `:` custom<SourceType>(type($lhs)) `->` type($result)"

    def verify_(self) -> None:
        """The result holds the elements of both."""
        if scalar_type(self.lhs.type) != scalar_type(self.result.type):
            raise VerifyException(f"the element type must stay, found {self.lhs.type} and {self.result.type}")
        source, result = shape_of_tensor(self.lhs.type), shape_of_tensor(self.result.type)
        if len(source) != len(result) or prod(result) != 2 * prod(source):
            raise VerifyException(f"two tensors of shape {list(source)} do not fill the shape {list(result)}")
        verify_places(self.lhs.type, self.result.type, lambda a, b: fault_of_cat(a, b, source, result))


@irdl_op_definition
class JoinOp(TritonOp):
    """Both tensors side by side in a new last dimension of size 2.

    Example: `%2 = tt.join %0, %1 : tensor<64xf32> -> tensor<64x2xf32>`
    """

    name = "tt.join"

    TYPE: ClassVar = same("TYPE", ANY_TENSOR)

    lhs = operand_def(TYPE)
    rhs = operand_def(TYPE)
    result = result_def(ANY_TENSOR)

    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def verify_(self) -> None:
        """The result has the elements of the sources and one more dimension."""
        verify_halves(self.lhs.type, self.result.type)


@irdl_op_definition
class SplitOp(TritonOp):
    """The two halves along the last dimension, which has size 2.

    Example: `%a, %b = tt.split %0 : tensor<64x2xf32> -> tensor<64xf32>`
    """

    name = "tt.split"

    HALF: ClassVar = same("HALF", ANY_TENSOR)

    src = operand_def(ANY_TENSOR)
    out_lhs = result_def(HALF)
    out_rhs = result_def(HALF)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($out_lhs)"

    def verify_(self) -> None:
        """The source ends in a dimension of 2, which the halves lack."""
        verify_halves(self.out_lhs.type, self.src.type)


def verify_halves(half: Attribute, whole: Attribute) -> None:
    """Check that two tensors of type `half` make up a tensor of type `whole` with a last dimension of 2."""
    shape = shape_of_tensor(whole)
    if not shape or shape[-1] != 2:
        raise VerifyException(f"the last dimension must be 2, found the shape {list(shape)}")
    if shape_of_tensor(half) != shape[:-1]:
        raise VerifyException(
            f"a half of {list(shape)} must have shape {list(shape[:-1])}, found {list(shape_of_tensor(half))}"
        )
    if scalar_type(half) != scalar_type(whole):
        raise VerifyException(f"the element type must stay, found {half} and {whole}")
    verify_places(half, whole, lambda a, b: fault_of_halves(a, b, shape))
