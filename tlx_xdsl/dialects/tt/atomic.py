"""Atomic operations of `tt` on global memory (TritonOps.td; PTX ISA, "Memory Consistency Model")."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from ..base import (
    ANY_LIKE,
    INT_LIKE,
    POINTER_LIKE,
    UNKNOWN,
    Access,
    Derived,
    Effects,
    EnumNumber,
    Kind,
    MaskedResult,
    TritonOp,
    as_tensor,
    element_bits,
    is_float,
    is_integer,
    keyword_directive,
    mask_type,
    pointee_type,
    pointer_type,
    same,
    scalar_type,
)
from .enums import MemSemantic, MemSyncScope, RMWOp

ORDERING = (keyword_directive(MemSemantic), keyword_directive(MemSyncScope))
"""Directives for the memory ordering and its scope."""


class Polls:
    """Mark of operations that read memory until it has a value, which another program or GPU may have to write."""


class AtomicOp(TritonOp):
    """Shared parts of the atomic operations."""

    KIND: ClassVar = Kind.READ | Kind.WRITE | Kind.ATOMIC

    @property
    def reach(self) -> MemSyncScope:
        """The threads among which it is atomic, and orders memory."""
        return MemSyncScope(cast(Any, self.properties["scope"]).value.data)

    def effects(self) -> Effects:
        """An access that synchronises as the semantics say."""
        semantics = self.properties.get("sem")
        known = isinstance(semantics, IntegerAttr)
        return Effects(Access("ptr", self.KIND), sync=MemSemantic(semantics.value.data).sync if known else UNKNOWN.sync)


@irdl_op_definition
class AtomicLoadOp(AtomicOp):
    """Load atomically, 0 where `mask` is false; a synchronisation, so that it stays even where its result is not used.

    Example: `%0 = tt.atomic_load acquire, gpu, %p : (!tt.ptr<i32>) -> i32`
    """

    name = "tt.atomic_load"
    KIND: ClassVar = Kind.READ | Kind.ATOMIC

    POINTER: ClassVar = same("POINTER", POINTER_LIKE)

    ptr = operand_def(POINTER)
    mask = opt_operand_def(Derived("POINTER", mask_type, "the mask"))
    sem = prop_def(EnumNumber(MemSemantic))
    scope = prop_def(EnumNumber(MemSyncScope))
    result = result_def(Derived("POINTER", pointee_type, "the loaded value"))

    custom_directives = ORDERING
    assembly_format = (
        "custom<MemSemantic>($sem) `,` custom<MemSyncScope>($scope) `,` $ptr (`,` $mask^)? "
        "attr-dict `:` functional-type(operands, $result)"
    )

    @property
    def masked_result(self) -> MaskedResult:
        """Return what the result is where the mask is false."""
        return MaskedResult.GIVEN if self.mask is None else MaskedResult.ZERO

    def verify_(self) -> None:
        """A load cannot release."""
        if self.sem.value.data not in (MemSemantic.RELAXED, MemSemantic.ACQUIRE):
            raise VerifyException("an atomic load must be relaxed or acquire")


@irdl_op_definition
class AtomicStoreOp(AtomicOp):
    """Store atomically: `tt.atomic_store release, gpu, %p, %v : !tt.ptr<i32>`."""

    name = "tt.atomic_store"
    KIND: ClassVar = Kind.WRITE | Kind.ATOMIC

    POINTER: ClassVar = same("POINTER", POINTER_LIKE)

    ptr = operand_def(POINTER)
    value = operand_def(Derived("POINTER", pointee_type, "the stored value"))
    mask = opt_operand_def(Derived("POINTER", mask_type, "the mask"))
    sem = prop_def(EnumNumber(MemSemantic))
    scope = prop_def(EnumNumber(MemSyncScope))

    custom_directives = ORDERING
    assembly_format = (
        "custom<MemSemantic>($sem) `,` custom<MemSyncScope>($scope) `,` $ptr `,` $value (`,` $mask^)? "
        "attr-dict `:` type($ptr)"
    )

    def verify_(self) -> None:
        """A store cannot acquire."""
        if self.sem.value.data not in (MemSemantic.RELAXED, MemSemantic.RELEASE):
            raise VerifyException("an atomic store must be relaxed or release")


@irdl_op_definition
class AtomicPollOp(Polls, AtomicOp):
    """Load again and again until every element equals `expected` or `timeout` (ns) is over; which of them did.

    Example: `%ok = tt.atomic_poll relaxed, gpu, %p, %v timeout %t : !tt.ptr<i32>, i32 -> i1`
    """

    name = "tt.atomic_poll"
    KIND: ClassVar = Kind.READ | Kind.ATOMIC

    VALUE: ClassVar = same("VALUE", INT_LIKE)

    ptr = operand_def(POINTER_LIKE)
    expected = operand_def(VALUE)
    timeout = opt_operand_def(i64)
    sem = prop_def(EnumNumber(MemSemantic))
    scope = prop_def(EnumNumber(MemSyncScope))
    result = result_def(Derived("VALUE", mask_type, "the result"))

    custom_directives = ORDERING
    assembly_format = (
        "custom<MemSemantic>($sem) `,` custom<MemSyncScope>($scope) `,` $ptr `,` $expected (`timeout` $timeout^)? "
        "attr-dict `:` type($ptr) `,` type($expected) `->` type($result)"
    )

    def verify_(self) -> None:
        """The pointers point to what is expected, of 16, 32 or 64 bits, and polling does not release."""
        if self.ptr.type != (pointer := pointer_type(self.expected.type)):
            raise VerifyException(f"the pointer must be {pointer}, found {self.ptr.type}")
        if (bits := element_bits(scalar_type(self.expected.type))) not in (16, 32, 64):
            raise VerifyException(f"polls values of 16, 32 or 64 bits, found {bits} bits")
        if self.sem.value.data not in (MemSemantic.RELAXED, MemSemantic.ACQUIRE):
            raise VerifyException("polling must be relaxed or acquire")


FLOAT_RMW = (RMWOp.FADD,)
"""Read-modify-writes of floats."""
ANY_RMW = (RMWOp.XCHG,)
"""Read-modify-writes of integers and floats."""


@irdl_op_definition
class AtomicRMWOp(AtomicOp):
    """Replace the value at `ptr` by what `atomic_rmw_op` makes of it and `val`, and yield the old value.

    Where `mask` is false nothing happens, and an element of a tensor is 0. A number, which one thread hands to the
    others in shared memory, is then whatever lay there.

    Example: `%old = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %m : (!tt.ptr<f32>, f32, i1) -> f32`
    """

    name = "tt.atomic_rmw"

    VALUE: ClassVar = same("VALUE", ANY_LIKE)

    atomic_rmw_op = prop_def(EnumNumber(RMWOp))
    ptr = operand_def(POINTER_LIKE)
    val = operand_def(VALUE)
    mask = opt_operand_def(Derived("VALUE", mask_type, "the mask"))
    sem = prop_def(EnumNumber(MemSemantic))
    scope = prop_def(EnumNumber(MemSyncScope))
    result = result_def(VALUE)

    custom_directives = (keyword_directive(RMWOp), *ORDERING)
    assembly_format = (
        "custom<RMWOp>($atomic_rmw_op) `,` custom<MemSemantic>($sem) `,` custom<MemSyncScope>($scope) `,` "
        "$ptr `,` $val (`,` $mask^)? attr-dict `:` functional-type(operands, $result)"
    )

    @property
    def masked_result(self) -> MaskedResult:
        """Return what the result is where the mask is false."""
        if self.mask is None:
            return MaskedResult.GIVEN
        return MaskedResult.ZERO if as_tensor(self.result.type) is not None else MaskedResult.ANY

    def verify_(self) -> None:
        """The pointers point to the value, and the operation exists for its type."""
        if self.ptr.type != (pointer := pointer_type(self.val.type)):
            raise VerifyException(f"the pointer must be {pointer}, found {self.ptr.type}")
        kind, element = RMWOp(self.atomic_rmw_op.value.data), scalar_type(self.val.type)
        if kind in FLOAT_RMW and not is_float(element):
            raise VerifyException(f"'{kind.keyword}' takes floating-point values, found {element}")
        if kind not in (*FLOAT_RMW, *ANY_RMW) and not is_integer(element):
            raise VerifyException(f"'{kind.keyword}' takes integers, found {element}")


@irdl_op_definition
class AtomicCASOp(AtomicOp):
    """Put `val` at `ptr` if `cmp` is there, and yield what was there.

    Example: `%old = tt.atomic_cas acq_rel, gpu, %p, %c, %v : (!tt.ptr<i32>, i32, i32) -> i32`
    """

    name = "tt.atomic_cas"

    VALUE: ClassVar = same("VALUE", ANY_LIKE)

    ptr = operand_def(POINTER_LIKE)
    cmp = operand_def(VALUE)
    val = operand_def(VALUE)
    sem = prop_def(EnumNumber(MemSemantic))
    scope = prop_def(EnumNumber(MemSyncScope))
    result = result_def(VALUE)

    custom_directives = ORDERING
    assembly_format = (
        "custom<MemSemantic>($sem) `,` custom<MemSyncScope>($scope) `,` $ptr `,` $cmp `,` $val "
        "attr-dict `:` functional-type(operands, $result)"
    )

    def verify_(self) -> None:
        """The pointers point to the value."""
        if self.ptr.type != (pointer := pointer_type(self.val.type)):
            raise VerifyException(f"the pointer must be {pointer}, found {self.ptr.type}")
