"""The regularity of a tensor's values along each axis, on which vector and coalesced accesses rest.

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

from collections.abc import Iterable
from math import gcd

from xdsl.dialects import builtin, scf
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import regions, tt

from .integers.axis_domain import AxisDomain, AxisInfo, axes_of, unknown
from .integers.transfer import transfer

_DOMAIN = AxisDomain()
_HINTS = {"tt.contiguity": "contiguity", "tt.divisibility": "divisibility", "tt.constancy": "constancy"}


def axis_infos(func: tt.FuncOp) -> dict[SSAValue, AxisInfo]:
    """The facts about each integer, pointer and mask in `func`; other values have none."""
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
                divisor := attributes[index].data.get("tt.divisibility"), builtin.IntegerAttr
            ):
                info = AxisInfo((1,), (divisor.value.data,), (1,))
            self.infos[argument] = info
        for op in self._func.body.walk():
            self._visit(op)
        return self._changed

    def _visit(self, op: Operation) -> None:
        if isinstance(op, scf.ForOp):
            bounds = [self._info(value).divisibility[0] for value in (op.lb, op.step)]
            self.infos[op.body.block.args[0]] = AxisInfo((1,), (gcd(*bounds),), (1,))
        leaving = regions.edges(op)
        for edge in leaving or ():
            self._arrive(edge)
        if leaving is None:
            self._forget(argument for block in op.successors for argument in block.args)
        self._compute(op)

    def _compute(self, op: Operation) -> None:
        """Find out about what no edge defines: results of plain operations, and arguments that `op` computes."""
        defined = regions.incoming(regions.region_edges(op) or ()) if op.regions else {}
        self._forget(
            argument
            for region in op.regions
            if region.blocks
            for argument in region.blocks[0].args
            if argument not in defined and argument not in self.infos
        )
        known = transfer(_DOMAIN, op, [self._info(operand) for operand in op.operands])
        for result in (result for result in op.results if result not in defined):
            self.infos[result] = _promised(op, known or unknown(result))

    def _forget(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            self.infos[value] = unknown(value)

    def _info(self, value: SSAValue) -> AxisInfo:
        """The facts about `value`; none before it was visited."""
        return self.infos.get(value) or unknown(value)

    def _arrive(self, edge: regions.Edge) -> None:
        """Let the forwarded operands be among those that define the inputs."""
        for value, target in edge.pairs:
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
        if isinstance(given, builtin.DenseIntOrFPElementsAttr):
            promised = [int(value) for value in given.get_values()]
            if len(promised) == len(axes_of(op.results[0])):
                numbers[name] = tuple(max(old, new & -new) for old, new in zip(numbers[name], promised, strict=True))
    return AxisInfo(**numbers, value=info.value)
