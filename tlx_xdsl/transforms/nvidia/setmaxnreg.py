"""`tlx-rebalance-setmaxnreg`: check and complete the registers that tasks request.

A multiprocessor has 65536 registers. A thread block starts with the same number for each of its threads (`ttg.maxnreg`,
or what divides them up), and its warp groups of four warps then give some back or take some (PTX ISA, "setmaxnreg").
Upstream Triton gives each partition what `requestedRegisters` says and the default task what is left; where the sum is
too large it drops the requests without a diagnostic. So the sum is checked here. Where the default task alone asks, the
partitions get equal parts of what it leaves.

The other attributes of all tasks end here, too. `tlx.exclusive` was an assertion that has been checked, and
`tlx.mbarrier_try_wait_suspend_ns` says how long the hardware may let a waiting thread sleep at a time, of which stock
Triton's waits have no notion: neither changes what a kernel computes.

Before, with 4 warps:
```mlir
ttg.warp_specialize() attributes {tlx.default_registers = 152 : i32}
default { ... } partition0() num_warps(4) { ... } partition1() num_warps(4) { ... }
```
After, since 3 * 128 threads have 168 registers each, and 3 * 168 - 152 are 2 * 176:
```mlir
ttg.warp_specialize() attributes {requestedRegisters = array<i32: 176, 176>}
...
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i32

from tlx_xdsl.analysis.module_attrs import MAX_REGISTERS_PER_THREAD, num_warps
from tlx_xdsl.dialects.base import module_integer
from tlx_xdsl.dialects.tt import AssertOp, PrintOp
from tlx_xdsl.dialects.ttg import MAX_REGISTERS, MIN_REGISTERS, WarpSpecializeOp
from tlx_xdsl.errors import OverBudgetError
from tlx_xdsl.layouts.distributed import WARP_SIZE, WARPS_PER_WARP_GROUP
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, ops_of

REGISTERS = 65536
"""32-bit registers of a multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability")."""
STEP = 8
"""Every number of registers per thread is a multiple of this."""
PRINTING_REGISTERS = 32
"""What a task that calls the driver, to print or to assert, needs: with fewer the call does nothing. Upstream Triton
gives it these since 3.8 (triton-lang/triton#10417)."""
GROUP_THREADS = WARPS_PER_WARP_GROUP * WARP_SIZE
DEFAULT_REGISTERS = "tlx.default_registers"
"""The attribute with the request of the default task."""
_HINTS = (DEFAULT_REGISTERS, "tlx.exclusive", "tlx.mbarrier_try_wait_suspend_ns")


class RebalanceSetmaxnregPass(Pass):
    """Check the registers that tasks request, and write them as upstream Triton reads them."""

    name = "tlx-rebalance-setmaxnreg"

    def run(self, op: ModuleOp) -> None:
        """Handle the tasks of the module.

        Raises CompilationError, located at the tasks, for a number that the hardware does not have, and
        OverBudgetError where they ask for more registers than there are.
        """
        for inner in ops_of(op, WarpSpecializeOp):
            asked = inner.attributes.get(DEFAULT_REGISTERS)
            if inner.requested_registers is not None or asked is not None:
                per_thread = module_integer(op, MAX_REGISTERS_PER_THREAD)
                wanted = asked.value.data if isinstance(asked, IntegerAttr) else None
                _rebalance(inner, _Budget.of(inner, num_warps(op), per_thread), wanted)
            for hint in _HINTS:
                inner.attributes.pop(hint, None)


@dataclass(frozen=True)
class _Budget:
    """The registers of a thread block, and the groups that share them."""

    default_threads: int
    groups: tuple[tuple[int, ...], ...]
    """The numbers of the partitions in each warp group, or in several that one partition fills."""
    group_threads: tuple[int, ...]
    """Threads of each of these; a last one that is not full is filled up."""
    per_thread: int
    """Registers that each thread starts with."""

    @staticmethod
    def of(op: WarpSpecializeOp, default_warps: int, per_thread: int | None) -> _Budget:
        """The budget of `op`; `per_thread` is a bound that the user has set."""
        groups = _warp_groups(op.num_warps)
        threads = [GROUP_THREADS * -(-sum(op.num_warps[i] for i in group) // WARPS_PER_WARP_GROUP) for group in groups]
        default_threads = default_warps * WARP_SIZE
        most = min(REGISTERS // (default_threads + sum(threads)) // STEP * STEP, MAX_REGISTERS)
        return _Budget(default_threads, groups, tuple(threads), per_thread or most)

    @property
    def total(self) -> int:
        """Registers of the thread block."""
        return self.per_thread * (self.default_threads + sum(self.group_threads))

    def taken(self, requested: Sequence[int]) -> tuple[int, ...]:
        """Registers that each group takes: its threads all have those of its greediest partition."""
        return tuple(
            threads * max(requested[number] for number in group)
            for group, threads in zip(self.groups, self.group_threads, strict=True)
        )

    def left(self, requested: Sequence[int]) -> int:
        """Registers for each thread of the default task, as the hardware counts them."""
        return min((self.total - sum(self.taken(requested))) // self.default_threads // STEP * STEP, MAX_REGISTERS)


def _warp_groups(num_warps: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Partitions in the order in which upstream Triton gives them warps, the largest ones first, by warp group."""
    groups: list[list[int]] = []
    free = 0
    for number in sorted(range(len(num_warps)), key=lambda i: -num_warps[i]):
        warps = num_warps[number]
        if free < warps:
            groups.append([])
            free = -(-warps // WARPS_PER_WARP_GROUP) * WARPS_PER_WARP_GROUP
        groups[-1].append(number)
        free -= warps
    return tuple(map(tuple, groups))


def _check_numbers(op: WarpSpecializeOp, requested: Sequence[int]) -> None:
    for partition, number in enumerate(requested):
        if not MIN_REGISTERS <= number <= MAX_REGISTERS or number % STEP:
            raise error_at(
                op,
                f"registers per thread are {MIN_REGISTERS} to {MAX_REGISTERS} in steps of {STEP}, "
                f"partition {partition} asks for {number}",
            )


def _reserve(op: WarpSpecializeOp, requested: list[int]) -> None:
    """Give tasks that print or assert the registers that they need."""
    for number, region in enumerate(op.partitions.regions):
        if requested[number] < PRINTING_REGISTERS and any(
            isinstance(each, PrintOp | AssertOp) for each in region.walk()
        ):
            requested[number] = PRINTING_REGISTERS
            op.properties["requestedRegisters"] = DenseArrayBase.from_list(i32, requested)


def _rebalance(op: WarpSpecializeOp, budget: _Budget, wanted: int | None) -> None:
    requested: list[int] | None = None
    if op.requested_registers is not None:
        requested = [int(number) for number in op.requested_registers.get_values()]
        _check_numbers(op, requested)
        _reserve(op, requested)
    elif wanted is not None:
        rest = (budget.total - wanted * budget.default_threads) // sum(budget.group_threads) // STEP * STEP
        if rest < MIN_REGISTERS:
            needed = wanted * budget.default_threads + MIN_REGISTERS * sum(budget.group_threads)
            message = f"{_sum(budget, wanted, None)}: {max(rest, 0)} per thread remain for the other tasks"
            raise OverBudgetError.of(error_at(op, message), "registers", needed, budget.total)
        requested = [min(rest, MAX_REGISTERS)] * len(op.num_warps)
        op.properties["requestedRegisters"] = DenseArrayBase.from_list(i32, requested)
    assert requested is not None
    left = budget.left(requested)
    if left < (wanted or MIN_REGISTERS):
        least = "" if wanted else f", which needs {MIN_REGISTERS}"
        needed = (wanted or MIN_REGISTERS) * budget.default_threads + sum(budget.taken(requested))
        message = f"{_sum(budget, wanted, requested)}: {max(left, 0)} per thread remain for the default task{least}"
        raise OverBudgetError.of(error_at(op, message), "registers", needed, budget.total)


def _sum(budget: _Budget, wanted: int | None, requested: Sequence[int] | None) -> str:
    """The requests of all tasks, for an error."""
    threads = budget.default_threads + sum(budget.group_threads)
    parts: list[str] = []
    if wanted is not None:
        parts.append(f"the default task for {wanted} * {budget.default_threads}")
    for group, size in zip(budget.groups, budget.group_threads, strict=True):
        if requested is not None:
            names = " and ".join(f"partition{number}" for number in sorted(group))
            parts.append(f"{names} for {max(requested[number] for number in group)} * {size}")
    return (
        f"the tasks ask for more registers than the thread block has, {budget.per_thread} * {threads} = "
        f"{budget.total}: {', '.join(parts)}"
    )
