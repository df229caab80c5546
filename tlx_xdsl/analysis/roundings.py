"""Roundings to narrow types, decisions and orders of programs that affect the values which a kernel writes.

Two right compilations of a kernel may differ by what a rounding leaves: LLVM contracts products with sums, and units
for matrices add up in another order than a loop. How far results may be apart depends on the narrowest type to which a
value was rounded on its way, whatever the type of the memory at its end:

```mlir
%p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xf16>      // rounded to f16
%o = tt.dot %p, %v, %zero : ... -> tensor<64x64xf32>
tt.store %out, %o : tensor<64x64x!tt.ptr<f32>>                     // so 'out' is as exact as f16 is
```

Values are followed through arithmetic, regions, and memory: all that reaches one array or buffer counts for each load
of it. The order of operations is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import scalar_type
from tlx_xdsl.dialects.base.constraints import is_float
from tlx_xdsl.dialects.base.effects import TCGEN05, WGMMA, Kind, accesses_of, effects_of, space_of
from tlx_xdsl.dialects.regions import SCALAR_CODE, condition_of, forwarded
from tlx_xdsl.dialects.tt import InputPrecision
from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.text.diagnostics import source_location

DECIDED, UNORDERED = "decided", "unordered"
"""Marks beside the names of types: a comparison or a rounding to an integer of a computed number decides about it, so
that the last bit may change it wholly; the order of programs does, or one that the compiler may choose."""

_MOVES = ("arith.constant", "arith.select", "arith.bitcast", "arith.extf")
_COMPUTES = (
    "tt.fp_to_fp", "tt.dot", "tt.dot_scaled", "tt.reduce", "tt.scan", "tt.extern_elementwise",
    "tt.elementwise_inline_asm", "tt.map_elementwise", "tt.precise_divf", "tt.precise_sqrt", "tt.clampf",
    "tt.approx_divf", "tt.atomic_rmw", "tt.descriptor_reduce",
)  # fmt: skip
"""Operations that round, beside those of `arith` and `math`."""
_DECIDES = (
    "arith.cmpf", "arith.fptosi", "arith.fptoui", "arith.remf", "math.floor", "math.ceil", "math.roundeven",
    "math.trunc", "tt.bitcast",
)  # fmt: skip
_UNITS = (WGMMA, TCGEN05)
_ORDERED_BY_PROGRAMS = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_poll", "tlx.wait_signal")


@dataclass(frozen=True)
class Way:
    """Marks of the values that reach one array, and their writers."""

    marks: frozenset[str] = frozenset()
    """Names of the float types in which values were computed, such as `f16` and `tf32`, and the marks above."""
    writers: tuple[SourceLocation, ...] = ()
    """Where the kernel writes it."""


@dataclass
class _Flow:
    marks: dict[SSAValue, set[str]] = field(default_factory=dict[SSAValue, "set[str]"])
    """Of numbers by value, and of memory by the value that stands for it."""
    heads: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """For pointers, buffers and descriptors: another one of the same memory."""
    everywhere: set[str] = field(default_factory=set[str])
    """What counts for all: control flow depends on it, or it is written where no argument points to."""
    changed: bool = True

    def head(self, value: SSAValue) -> SSAValue:
        """Return what stands for the memory that a value refers to."""
        while (other := self.heads.get(value, value)) is not value:
            value = other
        return value

    def of(self, value: SSAValue) -> set[str]:
        """The marks of a number, or of memory."""
        return self.marks.get(self.head(value), set())

    def add(self, value: SSAValue, marks: set[str]) -> None:
        """More marks."""
        held = self.marks.setdefault(self.head(value), set())
        self.changed |= not marks <= held
        held |= marks

    def forward(self, source: SSAValue, to: SSAValue) -> None:
        """One value becomes another one."""
        if space_of(source.type) is not None and space_of(to.type) is not None:
            one, other = self.head(source), self.head(to)
            if one is not other:
                self.heads[other] = one
                self.add(one, self.marks.get(other, set()))
                self.changed = True
        else:
            self.add(to, self.of(source))


def ways(module: ModuleOp) -> Mapping[int, Way]:
    """The way to each array of the kernel, by the number of its argument among those that refer to memory.

    What is written through pointers that are no arguments counts for all.
    """
    kernel = next((op for op in module.ops if isinstance(op, tt.FuncOp) and op.is_kernel), None)
    if kernel is None or not kernel.body.blocks:
        return {}
    flow = _Flow()
    operations = [op for op in module.walk() if not isinstance(op, ModuleOp)]
    while flow.changed:
        flow.changed = False
        for op in operations:
            _transfer(op, flow)
    arguments = [each for each in kernel.body.blocks[0].args if space_of(each.type) is not None]
    known = {flow.head(each) for each in arguments}
    calls = any(isinstance(op, tt.CallOp) for op in operations)
    writers: dict[SSAValue, list[Operation]] = {}
    for op in operations:
        for value in _written(op):
            writers.setdefault(flow.head(value), []).append(op)
    for head in writers:
        if head not in known and (calls or _is_made(head)):
            flow.everywhere |= flow.of(head)
    if calls:
        flow.everywhere |= set().union(*flow.marks.values())
    return {
        number: Way(frozenset(flow.of(each) | flow.everywhere), tuple(_places(writers.get(flow.head(each), ()))))
        for number, each in enumerate(arguments)
    }


def _places(operations: Iterator[Operation] | list[Operation] | tuple[()]) -> Iterator[SourceLocation]:
    known: list[SourceLocation] = []
    for op in operations:
        place = source_location(op.location)
        if place is not None and place not in known:
            known.append(place)
            yield place


def _is_made(value: SSAValue) -> bool:
    """Return whether a pointer was computed from a number."""
    return isinstance(value.owner, tt.IntToPtrOp)


def _written(op: Operation) -> Iterator[SSAValue]:
    accesses = accesses_of(op)
    if accesses is None:
        yield from (each for each in op.operands if space_of(each.type) is not None)
        return
    yield from (each.value for each in accesses if each.kind & (Kind.WRITE | Kind.ATOMIC))


def _transfer(op: Operation, flow: _Flow) -> None:
    inputs = forwarded(op)
    for number, values in inputs.items():
        for each in values:
            flow.forward(op.operands[number], each)
    marks = set[str]().union(*map(flow.of, op.operands))
    condition = condition_of(op)
    if condition is not None and DECIDED in flow.of(condition):
        flow.everywhere.add(DECIDED)
    if op.regions and not isinstance(op, SCALAR_CODE):
        return
    marks |= _own(op, marks)
    for result in op.results:
        for operand in op.operands if space_of(result.type) is not None else ():
            if space_of(operand.type) is not None:
                flow.forward(operand, result)
        flow.add(result, marks)
    for value in _written(op):
        flow.add(value, marks)


def _own(op: Operation, marks: set[str]) -> set[str]:
    """The marks that an operation puts on what it makes of operands with `marks`."""
    found: set[str] = set()
    is_computed = op.name.startswith(("arith.", "math.")) and op.name not in (*_MOVES, *_DECIDES)
    if is_computed or op.name in _COMPUTES:
        # An update of memory has no result.
        types = (scalar_type(each.type) for each in op.results or op.operands)
        if floats := [each for each in types if is_float(each)]:
            found |= set(map(str, floats))
    if isinstance(op, tt.DotOp | tt.DotScaledOp) or effects_of(op).by in _UNITS:
        is_exact = getattr(op, "input_precision", None) == InputPrecision.IEEE.attr
        if any(_bits(_element(each.type)) in ((4, 6, 8) if is_exact else (4, 6, 8, 32)) for each in op.operands[:2]):
            # Units for matrices take less of f32, and add less of products of 8 bits, than these types hold.
            found.add("tf32")
    is_choice = op.name in _DECIDES or (isinstance(op, tt.ReduceOp) and len(op.results) > 1)
    if is_choice and marks - {DECIDED, UNORDERED}:
        found.add(DECIDED)
    is_reordered = op.name == "tt.cat" or getattr(op, "allow_reorder", None) is not None
    # A reduction of all has the same elements in any order.
    is_reduced = all(isinstance(use.operation, tt.ReduceOp) for each in op.results for use in each.uses)
    if (is_reordered and not is_reduced) or (op.name in _ORDERED_BY_PROGRAMS and any(each.uses for each in op.results)):
        found.add(UNORDERED)
    return found


def _element(type_: Attribute) -> Attribute:
    """The type of the elements of a tensor or of a buffer."""
    return getattr(type_, "element_type", type_)


def _bits(type_: Attribute) -> int:
    return int(getattr(type_, "bitwidth", 64))
