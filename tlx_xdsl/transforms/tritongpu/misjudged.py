"""Passes that keep upstream Triton from what single versions of it take for granted, and is not so.

`tlx-hide-alignment`: what leads to something that is wrongly taken for aligned or equal comes through an instruction
that hides it from the analysis of alignment, which decides on vectors, and on what is computed once for elements.

Before:
```mlir
%row = arith.remsi %i, %divisors : tensor<32xi32>
```
After:
```mlir
%0 = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", ...} %i : tensor<32xi32> -> tensor<32xi32>
%row = arith.remsi %0, %divisors : tensor<32xi32>
```
Every version takes quotients and remainders for those of numbers that are not negative. The options name what only some
of them misjudge: remainders by a tensor, sums of two ranges, selected ranges, and shifts by a number that is not known.
Remainders of a whole range by one number, such as `(pid * BLOCK + tl.arange(0, BLOCK)) % N`, all of them have right.

`tlx-keep-sums-of-products`: a sum of `x[:, :, None] * y[None, :, :]` is taken for a dot of x and y, along whatever
axis, and with fp32 rounded to tf32. The pattern knows one order of the factors; here they change places.

`tlx-guard-flattened-loops`: an inner loop of a flattened one is taken to run at least once where its end is not its
begin. Here its end is at least its begin, so that an empty one has no iterations by subtraction, too.

`tlx-check-miscompiled`: what no pass can put right is an error, and what may be wrong a warning. In a kernel with
`num_ctas` above 1 each CTA has a part of a tensor, and each version lacks some of the ways to the other part. A dot of
two products or so along K takes `tl.join` for the packing of K where it packs M.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, StringAttr, i16, i32, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tlx_xdsl.analysis.axis_info import axis_infos
from tlx_xdsl.analysis.integers.axis_domain import AxisInfo
from tlx_xdsl.analysis.module_attrs import NUM_CTAS
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.arith import SelectOp
from tlx_xdsl.dialects.base import as_tensor, module_integer, scalar_type, tensor_type
from tlx_xdsl.text.diagnostics import error_at, report_warning

from ..rewriting import Pass, insert_before, ops_of

_REGISTERS: dict[Attribute, tuple[int, str]] = {i16: (16, "h"), i32: (32, "r"), i64: (64, "l")}
"""Bits, and the constraint of a register, by the type of an integer."""
_MOST = float(2**31)
Interval: TypeAlias = tuple[float, float]
"""Bounds of an integer, both of which it may have."""


@dataclass(frozen=True)
class HideAlignmentPass(Pass):
    """Hide from upstream Triton what it would misjudge; each option is one kind of that."""

    name = "tlx-hide-alignment"

    remainders: bool = False
    """Remainders of a range where the divisor changes within it, or the range within an axis, until 3.8."""
    sums: bool = False
    """Sums and differences of two ranges, in 3.6."""
    selects: bool = False
    """Choices between two ranges, until 3.7."""
    shifts: bool = False
    """Shifts by numbers that are not known, until 3.8."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            for inner in list(self._misjudged(function)):
                _hide(inner, len(inner.operands) - 2)

    def _misjudged(self, function: tt.FuncOp) -> Iterator[Operation]:
        ranges: dict[SSAValue, Interval] = {}
        infos: dict[SSAValue, AxisInfo] | None = None
        for op in ops_of(
            function,
            arith.DivSIOp, arith.RemSIOp, arith.RemUIOp, arith.ShLIOp, arith.AddiOp, arith.SubiOp, SelectOp,
        ):  # fmt: skip
            if as_tensor(op.results[0].type) is None or scalar_type(op.results[0].type) not in _REGISTERS:
                continue
            infos = axis_infos(function) if infos is None else infos
            one, other = (infos.get(operand) for operand in op.operands[-2:])
            if one is None or other is None:
                continue
            if isinstance(op, arith.DivSIOp | arith.RemSIOp) and _interval(op.operands[0], infos, ranges)[0] < 0:
                yield op
            elif isinstance(op, arith.RemSIOp | arith.RemUIOp):
                if self.remainders and _splits_ranges(one, other, op.results[0].type):
                    yield op
            elif isinstance(op, arith.ShLIOp):
                if self.shifts and other.value is None:
                    yield op
            elif isinstance(op, SelectOp):
                if self.selects and _are_ranges(one, other):
                    yield op
            elif self.sums and isinstance(op, arith.AddiOp | arith.SubiOp) and _are_ranges(one, other):
                yield op


def _are_ranges(one: AxisInfo, other: AxisInfo) -> bool:
    return any(min(lengths) > 1 for lengths in zip(one.contiguity, other.contiguity, strict=True))


def _splits_ranges(dividend: AxisInfo, divisor: AxisInfo, type_: Attribute) -> bool:
    """Return whether a remainder is taken for a multiple of what only the first element of each range is one of.

    That is so along an axis on which the result is not known to be contiguous. Source: triton-lang/triton#11544.
    """
    shape = tensor_type(type_).get_shape()
    axes = zip(shape, dividend.contiguity, divisor.constancy, dividend.divisibility, divisor.divisibility, strict=True)
    return any(
        min(length, equal) > 1 and (length, equal) != (size, size) and math.gcd(multiple, other_multiple) > 1
        for size, length, equal, multiple, other_multiple in axes
    )


def _hide(op: Operation, index: int) -> None:
    """Let an operand come through an instruction; the result would be too late: what seems equal is computed once."""
    value = op.operands[index]
    bits, register = _REGISTERS[scalar_type(value.type)]
    hidden = tt.ElementwiseInlineAsmOp(
        operands=[[value]],
        result_types=[[value.type]],
        properties={
            "asm_string": StringAttr(f"mov.b{bits} $0, $1;"),
            "constraints": StringAttr(f"={register},{register}"),
            "pure": BoolAttr.from_bool(True),
            "packed_element": IntegerAttr(1, i32),
        },
    )
    op.operands[index] = insert_before(op, hidden).result[0]


def _interval(value: SSAValue, infos: dict[SSAValue, AxisInfo], known: dict[SSAValue, Interval]) -> Interval:
    """Bounds of a value; what the kernel is given, loads or carries is taken for a size, which is not negative."""
    if value not in known:
        known[value] = (0, _MOST)
        known[value] = _interval_of(value, infos, known)
    return known[value]


def _interval_of(value: SSAValue, infos: dict[SSAValue, AxisInfo], known: dict[SSAValue, Interval]) -> Interval:
    info = infos.get(value)
    if info is not None and info.value is not None:
        return (info.value, info.value)
    op = value.owner
    if isinstance(op, tt.MakeRangeOp):
        return (op.start.value.data, op.end.value.data - 1)
    if isinstance(value, BlockArgument) or not isinstance(op, Operation) or not op.operands:
        return (0, _MOST)
    operands = [_interval(operand, infos, known) for operand in op.operands]
    if len(operands) == 1:
        # Most of these move elements or widen them.
        return operands[0]
    if isinstance(op, SelectOp):
        (low, high), (other_low, other_high) = operands[1:]
        return (min(low, other_low), max(high, other_high))
    return _bounds(op, *operands) if len(operands) == 2 else (0, _MOST)


def _bounds(op: Operation, left: Interval, right: Interval) -> Interval:
    """Bounds of the result of an operation on two numbers."""
    (low, high), (other_low, other_high) = left, right
    match op:
        case arith.AddiOp():
            return (low + other_low, high + other_high)
        case arith.SubiOp():
            return (low - other_high, high - other_low)
        case arith.MuliOp():
            products = [one * other for one in left for other in right]
            return (min(products), max(products))
        case arith.DivSIOp() if other_low > 0:
            return (math.trunc(min(low / other_low, low / other_high)), math.trunc(max(high / other_low, 0)))
        case arith.RemSIOp():
            most = max(abs(other_low), abs(other_high)) - 1
            return (max(low, -most) if low < 0 else 0, min(max(high, 0), most))
        case arith.MaxSIOp():
            return (max(low, other_low), max(high, other_high))
        case arith.MinSIOp():
            return (min(low, other_low), min(high, other_high))
        case _:
            return (0, _MOST)


class KeepSumsOfProductsPass(Pass):
    """Exchange the factors of each sum of products that upstream Triton would take for a dot."""

    name = "tlx-keep-sums-of-products"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for reduction in ops_of(op, tt.ReduceOp):
            factors = reduction.srcs[0].owner
            if isinstance(factors, arith.MulfOp) and [_axis(each) for each in factors.operands] == [2, 0]:
                factors.operands[0], factors.operands[1] = factors.operands[1], factors.operands[0]


def _axis(value: SSAValue) -> int | None:
    """The axis along which a tensor was expanded before it was broadcast."""
    if isinstance(value.owner, tt.BroadcastOp) and isinstance(expanded := value.owner.src.owner, tt.ExpandDimsOp):
        return expanded.axis.value.data
    return None


class GuardFlattenedLoopsPass(Pass):
    """Let loops in flattened loops end where they begin, or later."""

    name = "tlx-guard-flattened-loops"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for outer in ops_of(op, scf.ForOp):
            if "tt.flatten" in outer.attributes:
                for inner in ops_of(outer, scf.ForOp):
                    if inner is not outer:
                        end = insert_before(inner, arith.MaxSIOp(inner.lb, inner.ub))
                        inner.operands[1] = end.result


@dataclass(frozen=True)
class CheckMiscompiledPass(Pass):
    """Report what upstream Triton miscompiles; each option is something that only some versions do."""

    name = "tlx-check-miscompiled"

    atomics: bool = False
    """Atomic operations of clusters of two CTAs that share a tile."""
    histograms: bool = False
    """Histograms of such clusters."""
    reductions: bool = False
    """Reductions of such clusters."""
    joins: bool = False
    """Operands of products that `tl.join` makes."""

    def run(self, op: ModuleOp) -> None:
        """Check the module.

        Raises CompilationError, located at the operation, for what is certainly wrong.
        """
        spans = (module_integer(op, NUM_CTAS) or 1) > 1
        for inner in op.walk():
            if spans:
                self._check_across_ctas(inner)
            if self.joins and isinstance(inner, tt.DotOp) and _is_of_joined(inner):
                report_warning(
                    inner,
                    f"stock Triton before 3.9 may multiply the wrong elements of what tl.join made, with K below "
                    f"{_LEAST_K}; Triton 3.9 has it right",
                )

    def _check_across_ctas(self, op: Operation) -> None:
        what = ""
        if isinstance(op, tt.GatherOp) and op.axis.value.data == 0:
            what = "tl.gather along axis 0 (and tl.flip), whatever the version of Triton"
        elif self.histograms and isinstance(op, tt.HistogramOp):
            what = "tl.histogram before Triton 3.9"
        elif self.atomics and isinstance(op, tt.AtomicRMWOp | tt.AtomicCASOp):
            if as_tensor(op.result.type) is None and op.result.uses:
                what = "the result of an atomic operation on one address before Triton 3.9"
        elif self.reductions and isinstance(op, tt.ReduceOp):
            report_warning(
                op,
                "with num_ctas above 1 stock Triton before 3.8 may reduce the part of one CTA only; 3.8 has it right",
            )
        if what:
            raise error_at(op, f"num_ctas above 1 is miscompiled by stock Triton for {what}")


_LEAST_K = 32


def _is_of_joined(dot: tt.DotOp) -> bool:
    """Return whether an operand with few elements along K comes from `tl.join`, by whatever computes each element."""
    tensor = as_tensor(dot.a.type)
    if tensor is None or tensor.get_shape()[-1] >= _LEAST_K:
        return False
    pending, seen = [dot.a, dot.b], set[SSAValue]()
    while pending:
        op = pending.pop().owner
        if isinstance(op, tt.JoinOp):
            return True
        if isinstance(op, Operation) and not isinstance(op, tt.LoadOp):
            pending.extend(value for value in op.operands if value not in seen and as_tensor(value.type) is not None)
            seen.update(op.operands)
    return False
