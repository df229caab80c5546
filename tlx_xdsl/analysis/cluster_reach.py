"""Reach across a cluster: operations that use other CTAs' memory, and allocations that other CTAs use."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Use

from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base import TCGEN05, TCGEN05_COPY, Kind, Space, accesses_of, effects_of, space_of

from .buffer_users import uses
from .value_classes import ValueClasses


class ClusterReach:
    """The uses of other CTAs' memory in a module, also those of the functions that it calls."""

    def __init__(self, module: ModuleOp):
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, tt.FuncOp)}
        self._reaching: dict[str, bool] = {}

    def at(self, op: Operation) -> bool:
        """True if `op` itself uses memory of other CTAs, or calls what does.

        The commit of what a pair's tensor cores do signals its end to both CTAs, and is no such use.
        """
        if isinstance(op, tt.CallOp):
            return self._function_reaches(op.callee.string_value())
        by_pair = effects_of(op).by in (TCGEN05, TCGEN05_COPY)
        return isinstance(op, tlx.MapToRemoteOp) or (not by_pair and accesses_other_ctas(op))

    def within(self, op: Operation) -> bool:
        """True if `op`, or an operation in its regions, uses memory of other CTAs."""
        return any(map(self.at, op.walk()))

    def concerns(self, func: tt.FuncOp) -> bool:
        """True if anything in a function uses memory of other CTAs, a pair's tensor cores included."""
        return any(self.at(op) or accesses_other_ctas(op) for op in func.walk())

    def _function_reaches(self, name: str) -> bool:
        if name not in self._reaching:
            # A function that calls itself reaches what the rest of it does.
            self._reaching[name] = False
            func = self._functions.get(name)
            self._reaching[name] = func is None or self.within(func)
        return self._reaching[name]


def accesses_other_ctas(op: Operation) -> bool:
    """True if `op` accesses data of other CTAs; a commit alone does not say whether it arrives at their mbarriers."""
    return any(access.cluster and access.kind & (Kind.READ | Kind.WRITE) for access in accesses_of(op) or ())


def is_reached(alloc: Operation, classes: ValueClasses) -> bool:
    """True if memory may be in use when no one in its own CTA knows.

    Other CTAs access it by its address there, or by a copy or a signal to several CTAs, or it is the source of a copy
    whose end is signalled to another CTA. What is not known counts. `classes` are the buffers of the function.
    """
    return any(_is_for_other_ctas(use) for use in uses(alloc.results[0], classes))


def _is_for_other_ctas(use: Use) -> bool:
    op, value = use.operation, use.operation.operands[use.index]
    buffers = [each.type for each in op.operands if isinstance(each.type, ttg.MemDescType)]
    if any(space_of(each) is Space.CLUSTER for each in buffers):
        return True
    found = accesses_of(op)
    if found is None:
        return True
    return effects_of(op).completes_in_cluster or any(access.cluster for access in found if access.value is value)
