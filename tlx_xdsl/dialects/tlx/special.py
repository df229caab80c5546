"""Single instructions that stock Triton has no operation for, and views at places that are known at run time."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BFloat16Type, Float8E4M3FNType, Float8E5M2Type, Float16Type, Float32Type, i32, i64
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import TensorMemoryLayout

from ..base import (
    BOOL_LIKE,
    FLOAT_TENSOR,
    I32_LIKE,
    I32_TENSOR,
    ORDERED,
    TCGEN05_SHIFT,
    Effects,
    Feature,
    Group,
    Needs,
    TritonOp,
    View,
    ViewLayout,
    reads,
    shape_of_tensor,
    tensor_type,
    with_element_type,
    writes,
)
from ..ttg import MemDescType, memdesc_type, verify_view
from ..ttng import columns_of, tensor_memory_layout


@irdl_op_definition
class Clock64Op(TritonOp):
    """The cycle counter of the multiprocessor (PTX: %clock64): `%t = tlx.clock64`."""

    name = "tlx.clock64"
    EFFECTS: ClassVar = ORDERED

    result = result_def(i64)

    # Two reads are two points in time.
    assembly_format = "attr-dict"


@irdl_op_definition
class ReplicaIdOp(TritonOp):
    """The number of the copy of a task, which `tlx.async_task(replicate=)` makes: `%half = tlx.replica_id`.

    It stands for a constant in code that is the same in all copies; `tlx-ws-replicate-tasks` puts the constants in.
    """

    name = "tlx.replica_id"

    result = result_def(i32)

    traits = traits_def(Pure())

    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[i32])


@irdl_op_definition
class VoteBallotOp(TritonOp):
    """A bit for each thread of the warp that `mask` names: whether its `pred` holds (PTX: vote.sync.ballot.b32).

    Of a tensor, a thread's predicate is whether any element that it holds is true, and the result has the bits of the
    warp in each element that the warp holds. So both have one layout, and the bits depend on it. Or the result is a
    number, of each thread its warp's.
    Example: `%b = tlx.vote_ballot %mask, %p : tensor<64xi1> -> tensor<64xi32>`
    """

    name = "tlx.vote_ballot"
    EFFECTS: ClassVar = ORDERED

    mask = operand_def(i32)
    pred = operand_def(BOOL_LIKE)
    result = result_def(I32_LIKE)

    # The threads of the warp meet here.
    assembly_format = "$mask `,` $pred attr-dict `:` type($pred) `->` type($result)"

    def verify_(self) -> None:
        """The result has the shape and the layout of the predicate, or is a number."""
        if self.result.type not in (i32, expected := with_element_type(self.pred.type, i32)):
            raise VerifyException(f"votes of {self.pred.type} must give {expected} or i32, found {self.result.type}")


ROUNDED = (BFloat16Type, Float8E4M3FNType, Float8E5M2Type, Float16Type)
"""The types that stochastic rounding rounds to (PTX ISA, "cvt", `.rs`)."""


@irdl_op_definition
class StochRoundOp(TritonOp):
    """Round f32 to a smaller type, up or down at random with the probability that keeps the mean.

    `rand_bits` holds 32 random bits for each element; values out of range become the largest finite ones (PTX:
    cvt.rs.satfinite). Example: `%1 = tlx.stoch_round %0, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xf16>`
    """

    name = "tlx.stoch_round"
    NEEDS: ClassVar = Needs("tlx.stoch_round", Feature.STOCHASTIC_ROUNDING)

    src = operand_def(FLOAT_TENSOR)
    rand_bits = operand_def(I32_TENSOR)
    result = result_def(FLOAT_TENSOR)

    traits = traits_def(Pure())
    assembly_format = "$src `,` $rand_bits attr-dict `:` type($src) `,` type($rand_bits) `->` type($result)"

    def verify_(self) -> None:
        """All shapes agree, and the types are those of the conversion."""
        shapes = {shape_of_tensor(type_) for type_ in (self.src.type, self.rand_bits.type, self.result.type)}
        if len(shapes) != 1:
            raise VerifyException(
                f"source, bits and result must have one shape, found {self.src.type}, {self.rand_bits.type} and "
                f"{self.result.type}"
            )
        if not isinstance(tensor_type(self.src.type).element_type, Float32Type):
            raise VerifyException(f"the source must be f32, found {self.src.type}")
        if not isinstance(self.result.type.element_type, ROUNDED):
            raise VerifyException(f"the result must be f16, bf16 or an 8-bit float, found {self.result.type}")


@irdl_op_definition
class TMEMShiftOp(TritonOp):
    """Start to move the rows of a buffer in tensor memory: row r gets what row r + 1 holds, in each group of 32 rows.

    The last row of a group stays. A commit signals the end (PTX: tcgen05.shift). Example:
    `tlx.tmem_shift %0 : !ttg.memdesc<128x16xf32, #tmem, #ttng.tensor_memory, mutable>`
    """

    name = "tlx.tmem_shift"
    NEEDS: ClassVar = Needs("tlx.tmem_shift", Feature.TENSOR_MEMORY)
    EFFECTS: ClassVar = Effects(reads("src"), writes("src"), by=TCGEN05_SHIFT, completes_on=Group.TCGEN05)

    src = operand_def(MemDescType)

    assembly_format = "$src attr-dict `:` type($src)"

    def verify_(self) -> None:
        """The buffer has 128 rows of whole units, which an instruction moves."""
        type_ = memdesc_type(self.src.type)
        layout = tensor_memory_layout(type_)
        if not isinstance(layout, TensorMemoryLayout) or type_.shape[:-1] != (128,) or layout.block_m != 128:
            raise VerifyException(f"a buffer of 128 rows in tensor memory is shifted, found {type_}")
        if columns_of(type_) % SHIFTED_COLUMNS:
            raise VerifyException(f"a multiple of {SHIFTED_COLUMNS} columns of 32 bits is shifted, found {type_}")


SHIFTED_COLUMNS = 8
"""Columns that an instruction moves: 32 bytes of a row (PTX ISA, "tcgen05.shift")."""


@irdl_op_definition
class MemDescDynamicSubsliceOp(TritonOp):
    """`ttg.memdesc_subslice` from offsets that are known at run time, in elements and multiples of the part's shape.

    Example: `%1 = tlx.memdesc_dynamic_subslice %0[%i, %c0] : !ttg.memdesc<128x64xf16, ...> -> !ttg.memdesc<64x64xf16,
    ..., 128x64>`
    """

    name = "tlx.memdesc_dynamic_subslice"
    VIEW: ClassVar = View(ViewLayout.SAME)

    src = operand_def(MemDescType)
    offsets = var_operand_def(i32)
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src `[` $offsets `]` attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The part has the rank and the allocation of the source, and its shape divides the source's."""
        source, result = memdesc_type(self.src.type), self.result.type
        verify_view(source, result)
        if not len(source.shape) == len(result.shape) == len(self.offsets):
            raise VerifyException(
                f"source, result and offsets must have one rank, found {len(source.shape)}, {len(result.shape)} and "
                f"{len(self.offsets)}"
            )
        if result.encoding != source.encoding or result.alloc_shape != source.alloc_shape:
            raise VerifyException(f"layout and allocation must stay: from {source} to {result}")
        for dim, (part, whole) in enumerate(zip(result.shape, source.shape, strict=True)):
            if part < 1 or whole % part:
                raise VerifyException(f"the {part} elements of dimension {dim} do not divide its {whole}")
