"""Arrays that a kernel sets back itself, so that the host need not between launches.

A counter or a flag that a launch leaves raised is the host's to set back, or the kernel's: its code shows which. A
kernel that writes the former value somewhere, and leaves another one there, has forgotten a case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.addresses.analysis import analyse_program_addresses
from tlx_xdsl.analysis.constants import Constants
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.tensors import splat_number
from tlx_xdsl.dialects.tt.enums import RMWOp

from .launches import Left
from .report import Report, Sizes


def with_resets(report: Report, module_at: Callable[[Sizes], ModuleOp]) -> Report:
    """The report with each remark on a later launch a finding, where the kernel is to set the array back itself."""
    sure = [each for each in report.remarks if each.left is not None and sets_back(module_at(each.sizes), each.left)]
    found = [replace(each, diagnostic=replace(each.diagnostic, severity="error")) for each in sure]
    remarks = tuple(each for each in report.remarks if each not in sure)
    return replace(report, findings=(*report.findings, *found), remarks=remarks)


def sets_back(module: ModuleOp, left: Left) -> bool:
    """Return whether a kernel has an operation that writes to the array what it held before the launch."""
    constants = Constants(module)
    return any(
        access.base_name == left.array and _number(constants, _written(access.op)) == left.before
        for access in analyse_program_addresses(module).accesses
    )


def _written(op: Operation) -> SSAValue | None:
    """Return what memory holds after an operation, where that is one of its operands."""
    match op:
        case tt.StoreOp() | tt.AtomicStoreOp():
            return op.value
        case tt.AtomicCASOp():
            return op.val
        case tt.AtomicRMWOp() if RMWOp(op.atomic_rmw_op.value.data) is RMWOp.XCHG:
            return op.val
        case _:
            return None


def _number(constants: Constants, value: SSAValue | None) -> float | None:
    if value is None:
        return None
    owner = value.owner
    if isinstance(owner, tt.SplatOp):
        return constants.of(owner.src)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
        return splat_number(owner.value) if owner.value.is_splat() else None
    return constants.of(value)
