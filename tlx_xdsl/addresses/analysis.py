"""The analysis of a module: kernel by kernel, with what is known of the launch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tlx_xdsl.analysis.integers.polynomials import Argument, Extent, Polynomial, Symbol
from tlx_xdsl.analysis.integers.symbols import ANYTHING
from tlx_xdsl.analysis.integers.transfer import bits_of, is_pointer
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import as_tensor

from .accesses import access_of
from .bounds import Bounds, assume
from .intervals import Interval
from .model import Access, LaunchFacts, ProgramAddresses
from .polynomial_domain import PolynomialDomain
from .regularity import Alignments
from .values import Descriptor, Other, Pointer, State
from .walk import Walk


def analyse_program_addresses(
    module: ModuleOp, facts: LaunchFacts | None = None, *, strict: bool = False
) -> ProgramAddresses:
    """Find out how the address of each access to global memory depends on the program's ids.

    What holds for some launches only has `Access.conditions`; with `strict` it is UNKNOWN.
    A function that others call is analysed as a part of its callers; one without callers is a kernel. The time grows
    linearly with the number of operations.
    """
    functions = [op for op in module.walk() if isinstance(op, tt.FuncOp) and op.body.blocks]
    by_name = {function.sym_name.data: function for function in functions}
    called = {op.callee.string_value() for op in module.walk() if isinstance(op, tt.CallOp)}
    accesses: list[Access] = []
    ranges: dict[Symbol, Interval] = {}
    states: dict[SSAValue, State] = {}
    for name, function in by_name.items():
        if name in called and not function.is_kernel:
            continue
        found = _Kernel(function, by_name, facts or LaunchFacts(), strict=strict)
        accesses += found.accesses
        ranges.update(found.known.bounds.known)
        states.update(found.walk.states)
    return ProgramAddresses(module, tuple(accesses), ranges, states)


class _Kernel:
    """One kernel."""

    def __init__(self, function: tt.FuncOp, functions: dict[str, tt.FuncOp], facts: LaunchFacts, *, strict: bool):
        self.known = PolynomialDomain(Bounds(facts), strict=strict)
        arguments = function.body.blocks[0].args
        names = argument_names(arguments)
        self.walk = self._walk(function, functions, names)
        if self.walk.assumptions:
            for assumption in self.walk.assumptions:
                assume(self.known.bounds, assumption)
            # What was seen before an assumption was made profits from it, too.
            self.walk = self._walk(function, functions, names)
        aligned = Alignments(function)
        self.accesses = [access_of(self.known, visit, function, names, aligned) for visit in self.walk.visits]

    def _walk(self, function: tt.FuncOp, functions: dict[str, tt.FuncOp], names: dict[SSAValue, str]) -> Walk:
        walk = Walk(self.known, functions)
        for argument, name in names.items():
            walk.states[argument] = self._argument(argument, name)
        walk.visit_region(function.body)
        return walk

    def _argument(self, argument: SSAValue, name: str) -> State:
        if as_tensor(argument.type) is not None:
            # No launch gives these: each element is one of its own.
            return self.known.state_of_unknown(argument, ANYTHING)
        if is_pointer(argument):
            return Pointer(argument, Polynomial({}))
        if isinstance(argument.type, tt.TensorDescType):
            block = tuple(argument.type.shape)
            last = len(block) - 1
            shape = [self._number(Extent(argument, name, "shape", dim)) for dim in range(len(block))]
            # TMA takes tensors whose last dimension is contiguous only.
            strides = [self._number(Extent(argument, name, "stride", dim)) for dim in range(last)]
            return Descriptor(
                argument, Polynomial({}), tuple(shape), (*strides, Polynomial.constant(1)), block,
                -(-argument.type.element_bits // 8),
            )  # fmt: skip
        bits = bits_of(argument)
        if bits is None:
            return Other(ANYTHING)
        symbol = Argument(argument, name)
        number = self.known.bounds.of(symbol).number
        return self.known.symbol(symbol, bits) if number is None else self.known.number(number, bits)

    def _number(self, symbol: Extent) -> Polynomial:
        number = self.known.bounds.of(symbol).number
        return Polynomial.of(symbol) if number is None else Polynomial.constant(number)


def argument_names(arguments: Sequence[SSAValue]) -> dict[SSAValue, str]:
    """The names of a kernel's arguments; the third one is `arg2` if it has none."""
    return {argument: argument.name_hint or f"arg{number}" for number, argument in enumerate(arguments)}
