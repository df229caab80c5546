"""State of bufferization while it walks through a function: the place of each tensor, and what each buffer holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, singledispatch
from typing import NamedTuple, TypeVar, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, MemRefType, TensorType, i32
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import linalg, memref
from tlx_xdsl.dialects.base.tensors import tensor_type
from tlx_xdsl.dialects.bufferization import MaterializeInDestinationOp
from tlx_xdsl.dialects.destinations import Destination, destinations, in_step
from tlx_xdsl.text.diagnostics import error_at

from .liveness import Liveness, TensorUse

OpT = TypeVar("OpT", bound=Operation)
_NO_OPERANDS = DenseArrayBase.from_list(i32, [0, 0])


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory for tensors, one after the other."""

    is_writable: bool = True
    holds: list[SSAValue] = field(default_factory=list[SSAValue])
    """The tensors whose elements are in it now, of which all but one are views."""


class Place(NamedTuple):
    """Place of a tensor's elements."""

    buffer: Buffer
    memref: SSAValue
    """The buffer, or a view of it."""


@lru_cache(maxsize=1024)
def _memory(element: Attribute, shape: tuple[int, ...]) -> MemRefType[Attribute]:
    return MemRefType(element, shape)


def memory_of(type_: Attribute) -> MemRefType[Attribute]:
    """The type of memory without gaps for a tensor."""
    tensor = tensor_type(type_)
    return _memory(tensor.element_type, tensor.get_shape())


def is_tensor(value: SSAValue) -> bool:
    """Return whether a value is a tensor."""
    return isinstance(value.type, TensorType)


def tensors(values: Iterable[SSAValue]) -> list[tuple[int, SSAValue]]:
    """The tensors among values, with their numbers."""
    return [(number, value) for number, value in enumerate(values) if isinstance(value.type, TensorType)]


def others(values: Iterable[SSAValue]) -> list[SSAValue]:
    """The values that are no tensors."""
    return [value for value in values if not isinstance(value.type, TensorType)]


class State:
    """The places of the tensors of one function."""

    def __init__(self, function: Operation):
        self.liveness = Liveness(function)
        self.ends: dict[TensorUse, Place] = {}
        """The places where tensors must be that regions, blocks or the function hand on."""
        self.emptied: list[Operation] = []
        """Operations whose regions or successors stay, without tensors among their operands."""
        self.finish: list[Callable[[], None]] = []
        """What remains to do when no operation takes a tensor any more, inner operations first."""
        self._places: dict[SSAValue, Place] = {}
        self._dead: list[Operation] = []
        self._log: list[tuple[Buffer, list[SSAValue]]] = []

    # --- rewriting -----------------------------------------------------------------------------------------------

    def add(self, anchor: Operation, op: OpT) -> OpT:
        """Insert an operation before another one, with its location."""
        op.location = anchor.location
        block = anchor.parent
        assert block is not None
        block.insert_op_before(op, anchor)
        return op

    def allocate(self, type_: Attribute, anchor: Operation, name: str | None = None) -> Place:
        """New memory for a tensor of that type, before an operation.

        Raises CompilationError where its size is not known.
        """
        shape = tensor_type(type_).get_shape()
        if DYNAMIC_INDEX in shape:
            raise error_at(anchor, f"'{anchor.name}' needs memory for {type_}, whose size is not known when compiling")
        return Place(Buffer(), self.new_memory(memory_of(type_), anchor, name))

    def new_memory(self, type_: Attribute, anchor: Operation, name: str | None = None) -> SSAValue:
        """New memory of a type whose sizes are numbers."""
        op = AllocOp.create(result_types=[type_], properties={"operandSegmentSizes": _NO_OPERANDS})
        memory = self.add(anchor, op).results[0]
        memory.name_hint = name
        return memory

    def copy(self, source: SSAValue, target: SSAValue, anchor: Operation) -> None:
        """Copy memory before an operation."""
        self.add(anchor, memref.CopyOp.create(operands=[source, target]))

    def copy_at_once(self, pairs: Sequence[tuple[Place, Place]], anchor: Operation) -> None:
        """Copy from places to others before an operation, as if all were read before any is written."""
        pending = [(source, target) for source, target in pairs if source.memref is not target.memref]
        while pending:
            read = {id(source.buffer) for source, _ in pending}
            free = next((each for each in pending if id(each[1].buffer) not in read), None)
            if free is None:
                # Each target is still to be read: places are exchanged.
                source, target = pending.pop(0)
                shape = cast("MemRefType[Attribute]", target.memref.type)
                apart = self.new_memory(_memory(shape.element_type, shape.get_shape()), anchor)
                self.copy(source.memref, apart, anchor)
                pending.append((Place(Buffer(), apart), target))
                continue
            pending.remove(free)
            self.copy(free[0].memref, free[1].memref, anchor)

    def remove(self, op: Operation) -> None:
        """Mark an operation that is not needed any more."""
        self._dead.append(op)

    def end(self) -> None:
        """Take the tensors out of the function."""
        for op in self._dead:
            op.operands = ()
        for op in self.emptied:
            op.operands = others(op.operands)
        for each in self.finish:
            each()
        for op in self._dead:
            block = op.parent
            assert block is not None
            block.erase_op(op)

    # --- places --------------------------------------------------------------------------------------------------

    def place(self, value: SSAValue, anchor: Operation) -> Place:
        """The place of a tensor; for one whose elements may be anything, new memory before `anchor`."""
        found = self._places.get(value)
        # The next use may be in another branch, where this memory is not known.
        return self.allocate(value.type, anchor, value.name_hint) if found is None else found

    def place_if_written(self, value: SSAValue) -> Place | None:
        """The place of a tensor; None for one whose elements may be anything."""
        return self._places.get(value)

    def put(self, value: SSAValue, place: Place) -> None:
        """A tensor is at a place from now on, and nothing else."""
        self._places[value] = place
        self.hold(place.buffer, [value])

    def forget(self, value: SSAValue) -> None:
        """A tensor has no place any more."""
        del self._places[value]

    def put_view(self, value: SSAValue, place: Place) -> None:
        """A tensor is a view of what is in a buffer."""
        self._places[value] = place
        self.hold(place.buffer, [*place.buffer.holds, value])

    def hold(self, buffer: Buffer, values: list[SSAValue]) -> None:
        """A buffer holds these tensors from now on."""
        self._log.append((buffer, buffer.holds))
        buffer.holds = values

    def mark(self) -> int:
        """A point to which the contents of buffers can be taken back."""
        return len(self._log)

    def back_to(self, mark: int) -> None:
        """Take the contents of buffers back, for another way through the function."""
        while len(self._log) > mark:
            buffer, values = self._log.pop()
            buffer.holds = values

    # --- choices -------------------------------------------------------------------------------------------------

    def may_overwrite(
        self, place: Place, op: Operation, destination: Destination | None = None, *, ignore_inside: bool = False
    ) -> bool:
        """Return whether `op` may write its result to a place: nothing that is there is needed any more."""
        if not place.buffer.is_writable:
            return False
        for value in place.buffer.holds:
            ignored = () if destination is None else self._read_in_step(value, place, op, destination)
            if self.liveness.is_live_after(value, op, ignored=ignored, ignore_inside=ignore_inside):
                return False
        return True

    def _read_in_step(self, value: SSAValue, place: Place, op: Operation, destination: Destination) -> list[int]:
        """The numbers of the operands that may be `value` although the result is written to its place."""
        found: list[int] = []
        same = self._places[value].memref is place.memref
        for number, operand in enumerate(op.operands):
            if operand is value:
                if number == destination.operand:
                    if same or not destination.is_read:
                        found.append(number)
                elif same and in_step(op, number, destination):
                    found.append(number)
        return found

    def choose(self, op: Operation, destination: Destination, taken: Collection[Buffer] = ()) -> Place:
        """The place of a result, with the elements of the operand in whose place it may be, where they are read."""
        before = self._places.get(op.operands[destination.operand])
        if before is not None and before.buffer not in taken and self.may_overwrite(before, op, destination):
            return before
        copied = before is not None and destination.is_read
        place = self._fresh(op, destination, taken, before_is_copied=copied)
        if before is not None and copied:
            self.copy(before.memref, place.memref, op)
        return place

    def _fresh(
        self, op: Operation, destination: Destination, taken: Collection[Buffer], *, before_is_copied: bool
    ) -> Place:
        """Return where the result is needed in the end, else the place of an operand that ends here, or new memory."""
        result = op.results[destination.result]
        final = None if destination.is_read else self._stored_to(result, op)
        final = final or self.final_place(result)
        # A copy is made before `op` reads anything.
        writes = None if before_is_copied else destination
        if final is not None and final.buffer not in taken and self.may_overwrite(final, op, writes):
            return final
        if before_is_copied:
            return self.allocate(result.type, op, result.name_hint)
        type_ = memory_of(result.type)
        for number, operand in enumerate(op.operands):
            place = self._places.get(operand)
            if place is None or place.memref.type != type_ or place.buffer in taken:
                continue
            if in_step(op, number, destination) and self.may_overwrite(place, op, destination):
                return place
        return self.allocate(result.type, op, result.name_hint)

    def final_place(self, value: SSAValue) -> Place | None:
        """Return where a tensor, or what is made of it in its place, is handed on; None if nowhere yet."""
        current: SSAValue | None = value
        while current is not None:
            following: SSAValue | None = None
            for use in self.liveness.uses_of(current):
                if (place := self.ends.get(use)) is not None:
                    return place if place.memref.type == memory_of(value.type) else None
                if following is None:
                    following = next(
                        (use.op.results[each.result] for each in destinations(use.op) if each.operand == use.number),
                        None,
                    )
            current = following
        return None

    def _stored_to(self, value: SSAValue, op: Operation) -> Place | None:
        """The memory to which a tensor that `op` makes is stored, if that is its only use and nothing happens between.

        Nothing that `op` does may read that memory, so it has no region but a body.
        """
        if op.regions and not isinstance(op, LinalgStructuredOperation | linalg.BroadcastOp | linalg.TransposeOp):
            return None
        uses = self.liveness.uses_of(value)
        store = uses[0].op if len(uses) == 1 else None
        if not isinstance(store, MaterializeInDestinationOp) or store.parent is not op.parent or store.result:
            return None
        between = op.next_op
        while between is not store:
            if between is None or not is_side_effect_free(between) or between is store.dest.owner:
                return None
            between = between.next_op
        return Place(Buffer(), store.dest)


# The handlers of operations, by their class.


@singledispatch
def bufferize(op: Operation, state: State) -> None:
    """Put an operation on memory before one on tensors.

    A handler finds the places of the operands by `State.place`, chooses those of the results and hands them to
    `State.put`, and gives the operation to `State.remove`.

    Raises CompilationError for an operation on tensors that has no handler.
    """
    if any(map(is_tensor, (*op.operands, *op.results))):
        raise error_at(op, f"'{op.name}' has no form on memory: bufferization does not know it")
    for region in op.regions:
        for block in region.blocks:
            bufferize_block(block, state)


def bufferize_block(block: Block, state: State) -> None:
    """Bufferize the operations of a block, in their order."""
    for op in list(block.ops):
        if state.liveness.is_known(op):
            bufferize(op, state)
