"""The structure of every integer tensor of a function, in one walk.

Values that control flow carries are opaque here: `linalg-scalarize-carried` has made scalars of those that are not.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation, Region, SSAValue

from tlx_xdsl.dialects.base import as_tensor, is_elementwise

from ..integers.transfer import bits_of, shape_of, transfer
from .domain import StructureDomain
from .values import State, opaque_value, scalar_state

_DOMAIN = StructureDomain()


class Structure:
    """States of values, each found when it is first asked for or walked."""

    def __init__(self, function: Operation | Region, domain: StructureDomain = _DOMAIN):
        """Analyse `function`, or a region of it, in time linear in its operations."""
        self._domain = domain
        self._states: dict[SSAValue, State] = {}
        for op in function.walk():
            for result in op.results:
                if as_tensor(result.type) is not None and bits_of(result) is not None:
                    self._states[result] = self._computed(op, result)

    def of(self, value: SSAValue) -> State:
        """The state of an integer, or of a tensor of integers."""
        if (state := self._states.get(value)) is None:
            bits = bits_of(value)
            assert bits is not None, "an integer"
            state = self._states[value] = self._atom(value, bits)
        return state

    def _atom(self, value: SSAValue, bits: int) -> State:
        shape = shape_of(value)
        if as_tensor(value.type) is not None:
            return opaque_value(value, shape, bits)
        if isinstance(value.owner, ConstantOp) and (known := transfer(self._domain, value.owner, ())) is not None:
            return known
        return scalar_state(value, bits)

    def _computed(self, op: Operation, result: SSAValue) -> State:
        bits, shape = bits_of(result), shape_of(result)
        assert bits is not None
        known: State | None = None
        numbers = all(bits_of(operand) is not None for operand in op.operands)
        if numbers and not op.regions and len(op.results) == 1:
            known = transfer(self._domain, op, [self.of(operand) for operand in op.operands])
        if known is not None:
            return known
        along = self._varies(op, shape) if numbers and is_elementwise(op) else None
        return opaque_value(result, shape, bits, along)

    def _varies(self, op: Operation, shape: tuple[int, ...]) -> Iterable[int]:
        """The dimensions along which an elementwise function of the operands may differ."""
        found = set[int]()
        for operand in op.operands:
            if shape_of(operand) == shape:
                found |= self.of(operand).varies
        return found
