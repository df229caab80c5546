"""Costs of the layouts of a module: the accesses to each buffer, and the conversions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import (
    Kind,
    LayoutAttr,
    OperandAccess,
    Proxy,
    accesses_of,
    effects_of,
    element_bits,
    pointee_type,
    scalar_type,
    shape_of_tensor,
    tensor_type,
)
from tlx_xdsl.layouts.conversion_cost import ConversionCost, conversion_cost
from tlx_xdsl.layouts.encodings import DistributedLayout, Ints, SharedLayout
from tlx_xdsl.layouts.matrix_access import best_access
from tlx_xdsl.layouts.shared_access import SharedAccess, shared_access
from tlx_xdsl.text.diagnostics import source_location

from .buffer_users import uses
from .module_attrs import module_target
from .value_classes import ValueClasses

STMATRIX_CAPABILITY = 90
"""The first compute capability with stmatrix (PTX ISA, "stmatrix")."""

_INPUTS = {"a": "A", "b": "B", "a_scale": "the scales of A", "b_scale": "the scales of B"}
"""Names of the inputs of an MMA."""


@dataclass(frozen=True)
class BufferAccess:
    """One operation that reads or writes a buffer."""

    op: Operation
    does: str
    """Subject and verb: `TMA writes`, `threads read`."""
    cost: SharedAccess | None = None
    """The cost per warp where threads move registers to or from shared memory."""
    width_bits: int | None = None
    """Bits per copy where threads copy from global to shared memory."""
    registers: DistributedLayout | None = None
    """The layout of the tensor that threads move."""
    view: ttg.MemDescType | None = None
    """The type of the part of the buffer that they move it to or from."""

    @property
    def line(self) -> int | None:
        """The line of the user's source."""
        place = source_location(self.op.location)
        return None if place is None else place.line

    def __str__(self) -> str:
        """The access with its cost."""
        if self.cost is not None:
            return f"{self.does}: {self.cost}"
        return self.does if self.width_bits is None else f"{self.does}: {self.width_bits} bits per copy"


@dataclass(frozen=True)
class Buffer:
    """An allocation, or a view of one that gives its bytes another meaning, with who accesses it."""

    value: SSAValue
    accesses: tuple[BufferAccess, ...]

    @property
    def type(self) -> ttg.MemDescType:
        """The type of the whole buffer."""
        return ttg.memdesc_type(self.value.type)

    @property
    def name(self) -> str:
        """The user's name for it, or where it is allocated."""
        if self.value.name_hint:
            return self.value.name_hint
        place = source_location(self.value.owner.location) if isinstance(self.value.owner, Operation) else None
        return "a buffer" if place is None else f"the buffer of line {place.line}"


@dataclass(frozen=True)
class Conversion:
    """A layout conversion, and what it costs each time."""

    op: ttg.ConvertLayoutOp
    cost: ConversionCost
    loops: int
    """Loops around it."""


class FunctionBuffers:
    """The buffers of a function, and who accesses them."""

    def __init__(self, func: tt.FuncOp):
        self._ops = list(func.walk())
        self._order = {op: number for number, op in enumerate(self._ops)}
        self._classes = ValueClasses.of(func, ttg.MemDescType)

    def all(self) -> list[Buffer]:
        """The buffers in program order; what is only seen as another buffer and what is never accessed left out.

        So barriers are, which only barrier operations touch.
        """
        found: list[Buffer] = []
        for op in self._ops:
            if isinstance(op, ttg.LocalAllocOp | ttng.TMEMAllocOp | ttg.MemDescReinterpretOp):
                value: SSAValue = op.results[0]
                seen_otherwise = any(isinstance(use.operation, ttg.MemDescReinterpretOp) for use in value.uses)
                if not seen_otherwise and (accesses := self.accesses(value)):
                    found.append(Buffer(value, accesses))
        return found

    def root(self, view: SSAValue) -> SSAValue:
        """The allocation that `view` is a view of, or the nearest view whose origin is not known to be one value."""
        while True:
            if view in self._classes.successor_inputs:
                sources = [name for name in self._classes.members(view) if name not in self._classes.successor_inputs]
                if len(sources) != 1:
                    return view
                view = sources[0]
            op = view.owner
            if not isinstance(op, Operation) or isinstance(op, ttg.MemDescReinterpretOp):
                return view
            viewed = [operand for operand in op.operands if isinstance(operand.type, ttg.MemDescType)]
            if len(viewed) != 1:
                return view
            view = viewed[0]

    def accesses(self, buffer: SSAValue) -> tuple[BufferAccess, ...]:
        """The reads and writes of `buffer`, also through its views, in program order."""
        found: list[BufferAccess] = []
        if isinstance(buffer.owner, ttg.LocalAllocOp) and buffer.owner.src is not None:
            found.append(_by_threads(buffer.owner, buffer, buffer.owner.src, store=True))
        operands: dict[Operation, set[int]] = {}
        for use in uses(buffer, self._classes):
            operands.setdefault(use.operation, set()).add(use.index)
        for op in sorted(operands, key=self._order.__getitem__):
            found += _accesses_of(op, operands[op])
        return tuple(found)


def buffers(module: ModuleOp) -> list[Buffer]:
    """`FunctionBuffers.all` of every function."""
    return [buffer for op in module.walk() if isinstance(op, tt.FuncOp) for buffer in FunctionBuffers(op).all()]


def _accesses_of(op: Operation, operands: set[int]) -> Iterator[BufferAccess]:
    """The accesses by `op` to the buffer, which is its operands numbered `operands`."""
    mine = {op.operands[index] for index in operands}
    match op:
        case ttg.LocalLoadOp():
            yield _by_threads(op, op.src, op.result, store=False)
        case ttg.LocalStoreOp():
            yield _by_threads(op, op.dst, op.src, store=True)
        case ttg.AsyncCopyGlobalToLocalOp():
            yield BufferAccess(op, "threads copy (cp.async)", width_bits=_copy_width(op))
        case _:
            # The layouts of registers have no part in these, or the addresses depend on data.
            for access in accesses_of(op) or ():
                if access.value in mine and access.kind & (Kind.READ | Kind.WRITE):
                    yield BufferAccess(op, _does(op, access))


def _does(op: Operation, access: OperandAccess) -> str:
    """Subject, verb and object: `tcgen05 reads A`."""
    engine = effects_of(op).by
    if engine.proxy is not Proxy.TENSOR_CORE:
        both, operand = "update", ""
    else:
        both, operand = "accumulate", _INPUTS.get(access.operand, "")
    verb = both if Kind.READ | Kind.WRITE in access.kind else "read" if Kind.READ in access.kind else "write"
    return f"{engine.name} {verb}{'' if engine.name.endswith('s') else 's'} {operand}".rstrip()


def _by_threads(op: Operation, buffer: SSAValue, tensor: SSAValue, *, store: bool) -> BufferAccess:
    does = "threads write" if store else "threads read"
    memory, registers = ttg.memdesc_type(buffer.type), tensor_type(tensor.type)
    if not isinstance(memory.encoding, LayoutAttr) or not isinstance(registers.encoding, LayoutAttr):
        return BufferAccess(op, does)
    layout, shared = registers.encoding.data, memory.encoding.data
    if not isinstance(layout, DistributedLayout) or not isinstance(shared, SharedLayout):
        return BufferAccess(op, does)
    arguments = (layout, shared, memory.shape, memory.element_bits)
    whole = allocation_of(memory)
    if store and not _has_stmatrix(op):
        return BufferAccess(op, does, shared_access(*arguments, whole), registers=layout, view=memory)
    cost = best_access(*arguments, store=store, alloc_shape=whole)
    return BufferAccess(op, does, cost, registers=layout, view=memory)


def allocation_of(memory: ttg.MemDescType) -> Ints:
    """The shape of the allocation in as many dimensions as the view has."""
    return memory.alloc_shape[len(memory.alloc_shape) - len(memory.shape) :]


def _has_stmatrix(op: Operation) -> bool:
    module = op
    while (parent := module.parent_op()) is not None:
        module = parent
    target = module_target(module) if isinstance(module, ModuleOp) else None
    return target is None or target.capability >= STMATRIX_CAPABILITY


def _copy_width(op: ttg.AsyncCopyGlobalToLocalOp) -> int | None:
    """Bits that one cp.async can move at most, as far as the layouts say."""
    pointers, memory = tensor_type(op.src.type), ttg.memdesc_type(op.result.type)
    if not isinstance(pointers.encoding, LayoutAttr) or not isinstance(memory.encoding, LayoutAttr):
        return None
    layout, shared = pointers.encoding.data, memory.encoding.data
    if not isinstance(layout, DistributedLayout) or not isinstance(shared, SharedLayout):
        return None
    bits = element_bits(pointee_type(pointers.element_type))
    return shared_access(layout, shared, memory.shape, bits, allocation_of(memory)).width_bits


def conversions(module: ModuleOp) -> list[Conversion]:
    """The layout conversions of the module in program order."""
    found: list[Conversion] = []
    for op in module.walk():
        if not isinstance(op, ttg.ConvertLayoutOp):
            continue
        source, target = tensor_type(op.src.type), tensor_type(op.result.type)
        if not isinstance(source.encoding, LayoutAttr) or not isinstance(target.encoding, LayoutAttr):
            continue
        have, want = source.encoding.data, target.encoding.data
        if isinstance(have, DistributedLayout) and isinstance(want, DistributedLayout):
            cost = conversion_cost(have, want, shape_of_tensor(source), _bits(op.src))
            found.append(Conversion(op, cost, loops_around(op)))
    return found


def _bits(value: SSAValue) -> int:
    """Bits of an element; a pointer has 64."""
    return element_bits(scalar_type(value.type))


def loops_around(op: Operation) -> int:
    """The number of loops around `op`."""
    loops = 0
    current = op.parent_op()
    while current is not None:
        loops += isinstance(current, scf.ForOp | scf.WhileOp)
        current = current.parent_op()
    return loops
