"""Use analysis: whether what an operation computes serves as an address, as data, or as both.

A value serves as an address (`META`) where an access takes it as pointer or mask, and as data where anything else with
an effect takes it. What a pure operation computes serves as its results do; values that control flow carries serve as
the block arguments and results that they define. The lattice is the set of the two, joined by union; what has neither
is dead.
"""

from __future__ import annotations

from enum import Flag, auto

from xdsl.ir import Operation, SSAValue, Use
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects.base import pointers_of
from tlx_xdsl.dialects.regions import forwarded


class UseKind(Flag):
    """Kinds of uses of a value."""

    META = auto()
    """To compute addresses and masks."""
    DATA = auto()
    """In any other way."""

    @property
    def label(self) -> str:
        """The name of the seed: MetaUse, DataUse, or MixedUse for both."""
        if self == UseKind.META | UseKind.DATA:
            return "MixedUse"
        return "MetaUse" if self == UseKind.META else "DataUse"


NOWHERE = UseKind(0)


class Uses:
    """The uses of the values of a function."""

    def __init__(self, function: Operation):
        """Analyse `function`: backward over its operations, until nothing changes."""
        self._kinds: dict[SSAValue, UseKind] = {}
        operations = list(function.walk())[::-1]
        while any([self._visit(op) for op in operations]):
            pass

    def of(self, op: Operation) -> UseKind:
        """Return how the results of an operation are used."""
        kind = NOWHERE
        for result in op.results:
            kind |= self._kinds.get(result, NOWHERE)
        return kind

    def of_value(self, value: SSAValue) -> UseKind:
        """Return how a value is used."""
        return self._kinds.get(value, NOWHERE)

    def as_address(self, use: Use) -> bool:
        """True for a use that serves as an address alone."""
        return self._of_use(use) == UseKind.META

    def _visit(self, op: Operation) -> bool:
        """Find out about what `op` defines; whether anything is new."""
        blocks = [block for region in op.regions for block in region.blocks]
        changed = False
        for value in (*op.results, *(argument for block in blocks for argument in block.args)):
            kind = NOWHERE
            for use in value.uses:
                kind |= self._of_use(use)
            if kind != self._kinds.get(value, NOWHERE):
                self._kinds[value] = kind
                changed = True
        return changed

    def _of_use(self, use: Use) -> UseKind:
        op, number = use.operation, use.index
        if is_address(op, number):
            return UseKind.META
        if (inputs := forwarded(op).get(number)) is not None:
            kinds = [self._kinds.get(input_, NOWHERE) for input_ in inputs]
        elif op.results and not op.regions and is_side_effect_free(op):
            kinds = [self.of(op)]
        else:
            return UseKind.DATA
        found = NOWHERE
        for kind in kinds:
            found |= kind
        return found


def is_address(op: Operation, number: int) -> bool:
    """True if an operand is the address, or the mask, of an access of `op` to memory."""
    if (pointers := pointers_of(op)) is None:
        return False
    operand = op.operands[number]
    return operand is pointers or operand is getattr(op, "mask", None)
