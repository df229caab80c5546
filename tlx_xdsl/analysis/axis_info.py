"""How regular the values of a tensor are along each axis: what a vector access, or a coalesced one, rests on.

Three numbers per axis, all powers of two, about aligned groups of elements along it (positions k*c to k*c + c - 1):

- `contiguity`: in each group of so many elements the value grows by 1 from one to the next (a pointer: by one element);
- `divisibility`: the first value of each of those groups is a multiple of it (a pointer: of so many bytes);
- `constancy`: in each group of so many elements all values are equal.

They hold wherever the group lies along the other axes. A scalar has one axis with one element. The facts come from
the arguments (`tt.divisibility`), from the kernel's assumptions (`tl.multiple_of` and its kin) and from arithmetic, for
which `integers/axis_domain.py` has the transfer functions. Triton's own analysis of this name means the same by them,
so that both agree on vectors.

A value that goes round a loop, or comes from two branches, has what holds on every way. Such values begin as what
arrives first and are weakened until nothing changes: each step divides a number by two, so that ends soon.

Layouts are chosen by these facts; no result depends on them. So the transfer functions may take indices as not
negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.axis_domain import AxisDomain, AxisInfo, axes_of, unknown
from tlx_xdsl.analysis.integers.transfer import transfer
from tlx_xdsl.dialects import tt, ttg

_DOMAIN = AxisDomain()
_HINTS = {"tt.contiguity": "contiguity", "tt.divisibility": "divisibility", "tt.constancy": "constancy"}


def axis_infos(func: tt.FuncOp) -> dict[SSAValue, AxisInfo]:
    """What is known about each integer, pointer and mask in `func`; of other values nothing is."""
    analysis = _Analysis(func)
    while analysis.sweep():
        pass
    return analysis.infos


class _Analysis:
    """Sweeps over a function in program order, until a sweep changes nothing."""

    def __init__(self, func: tt.FuncOp):
        self.infos: dict[SSAValue, AxisInfo] = {}
        self._func = func
        self._changed = False

    def sweep(self) -> bool:
        """Visit each operation once; whether anything that is carried against the program order was weakened."""
        self._changed = False
        attributes = self._func.arg_attrs.data if self._func.arg_attrs is not None else ()
        for index, argument in enumerate(self._func.body.blocks[0].args):
            info = unknown(argument)
            if index < len(attributes) and isinstance(
                divisor := attributes[index].data.get("tt.divisibility"), IntegerAttr
            ):
                info = AxisInfo((1,), (divisor.value.data,), (1,))
            self.infos[argument] = info
        for op in self._func.body.walk():
            self._visit(op)
        return self._changed

    def _visit(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                self._enter_loop(op)
            case scf.WhileOp():
                self._arrive(op.arguments, op.before_region.block.args)
            case scf.YieldOp():
                self._yield(op)
            case scf.ConditionOp():
                loop = op.parent_op()
                assert isinstance(loop, scf.WhileOp)
                self._arrive(op.args, loop.after_region.block.args)
                self._arrive(op.args, loop.results)
            case cf.BranchOp():
                self._arrive(op.arguments, op.successor.args)
            case cf.ConditionalBranchOp():
                self._arrive(op.then_arguments, op.then_block.args)
                self._arrive(op.else_arguments, op.else_block.args)
            case ttg.WarpSpecializePartitionsOp():
                for region in op.partition_regions:
                    self._arrive(op.explicit_captures, region.blocks[0].args)
            case scf.IfOp():
                return
            case _:
                self._compute(op)

    def _compute(self, op: Operation) -> None:
        for block in (block for region in op.regions for block in region.blocks):
            for argument in block.args:
                self.infos.setdefault(argument, unknown(argument))
        known = transfer(_DOMAIN, op, [self._info(operand) for operand in op.operands])
        for result in op.results:
            self.infos[result] = _promised(op, known or unknown(result))

    def _info(self, value: SSAValue) -> AxisInfo:
        """What is known about `value`; nothing before it was visited."""
        return self.infos.get(value) or unknown(value)

    def _enter_loop(self, loop: scf.ForOp) -> None:
        counter, *arguments = loop.body.block.args
        bounds = [self._info(value).divisibility[0] for value in (loop.lb, loop.step)]
        self.infos[counter] = AxisInfo((1,), (gcd(*bounds),), (1,))
        self._arrive(loop.iter_args, arguments)
        self._arrive(loop.iter_args, loop.results)

    def _yield(self, op: scf.YieldOp) -> None:
        match parent := op.parent_op():
            case scf.ForOp():
                self._arrive(op.operands, parent.body.block.args[1:])
                self._arrive(op.operands, parent.results)
            case scf.WhileOp():
                self._arrive(op.operands, parent.before_region.block.args)
            case scf.IfOp():
                self._arrive(op.operands, parent.results)
            case _:
                return

    def _arrive(self, values: Iterable[SSAValue], targets: Sequence[SSAValue]) -> None:
        """Let `values` be among those that `targets` stand for."""
        for value, target in zip(values, targets, strict=True):
            arriving, known = self._info(value), self.infos.get(target)
            info = arriving if known is None else known.meet(arriving)
            if info != known:
                self.infos[target] = info
                self._changed = True


def _promised(op: Operation, info: AxisInfo) -> AxisInfo:
    """`info` with what the kernel promises about the result of `op`."""
    numbers = {name: getattr(info, name) for name in _HINTS.values()}
    for attribute, name in _HINTS.items():
        given = op.attributes.get(attribute)
        if isinstance(given, DenseIntOrFPElementsAttr):
            promised = [int(value) for value in given.get_values()]
            if len(promised) == len(axes_of(op.results[0])):
                numbers[name] = tuple(max(old, new & -new) for old, new in zip(numbers[name], promised, strict=True))
    return AxisInfo(**numbers, value=info.value)
