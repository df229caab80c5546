"""`linalg-bufferize`: every tensor gets a place in memory, where possible that in which it is needed in the end.

Before:
```mlir
%x = bufferization.to_tensor %a restrict writable : memref<64xf32> to tensor<64xf32>
%e = tensor.empty(%n) : tensor<?xf32>
%part = tensor.extract_slice %x[0] [%n] [1] : tensor<64xf32> to tensor<?xf32>
%y = linalg.generic {...} ins(%part : tensor<?xf32>) outs(%e : tensor<?xf32>) { ... } -> tensor<?xf32>
bufferization.materialize_in_destination %y in writable %out : (tensor<?xf32>, memref<?xf32, strided<[1]>>) -> ()
```
After:
```mlir
%part = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
linalg.generic {...} ins(%part : memref<?xf32, strided<[1]>>) outs(%out : memref<?xf32, strided<[1]>>) { ... }
```
The walk goes through each function once, in program order. A result is written in the place of its destination
(`dialects/destinations.py`) if nothing that is there is used later; else where it is handed on to (a store, the end of
a branch or of a turn of a loop, a result of the function); else over an operand of which each element is read just
before its place is written; else to memory of its own. What then is not where it must be is copied.

All memory is of the program alone but what is stored to; so nothing that is read changes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects import cf, func
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.dialects.regions import Edge, edges
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, ops_of

from . import operations as operations
from .fuse_elementwise import FuseElementwisePass
from .fuse_pieces import FusePiecesPass
from .liveness import TensorUse
from .operations.control import branch, copier, hand_on
from .plan_arena import PlanArenaPass
from .state import Buffer, Place, State, bufferize, bufferize_block, is_tensor, memory_of, others, tensors


class BufferizePass(Pass):
    """Take all tensors out of a module."""

    name = "linalg-bufferize"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for an operation on tensors that is not known, and for one that needs memory whose size
        is not known when compiling.
        """
        for function in ops_of(op, func.FuncOp):
            bufferize_function(function)


# Functions: tensors that they take are memory that they do not write, those that they give are memory to write to.


def bufferize_function(function: func.FuncOp) -> None:
    """Take all tensors out of a function.

    Raises CompilationError for an operation on tensors that bufferization does not know.
    """
    signature = function.function_type
    outputs: dict[int, TensorType[Attribute]] = {
        number: tensor for number, type_ in enumerate(signature.outputs) if (tensor := as_tensor(type_)) is not None
    }
    if function.body.blocks:
        _bufferize_body(function, outputs)
    inputs = [type_ if as_tensor(type_) is None else memory_of(type_) for type_ in signature.inputs]
    kept = [type_ for number, type_ in enumerate(signature.outputs) if number not in outputs]
    function.properties["function_type"] = FunctionType.from_lists([*inputs, *map(memory_of, outputs.values())], kept)


def _bufferize_body(function: func.FuncOp, outputs: dict[int, TensorType[Attribute]]) -> None:
    entry = function.body.blocks[0]
    state = State(function)
    arguments = [(number, argument) for number, argument in enumerate(entry.args) if is_tensor(argument)]
    for number, argument in reversed(arguments):
        memory = entry.insert_arg(memory_of(argument.type), number)
        memory.location, memory.name_hint = argument.location, argument.name_hint
        state.put(argument, Place(Buffer(is_writable=False), memory))
        state.finish.append(_eraser(entry, [argument]))
    targets: dict[int, Place] = {}
    for number, type_ in outputs.items():
        memory = entry.insert_arg(memory_of(type_), len(entry.args))
        memory.location = function.location
        targets[number] = Place(Buffer(), memory)
    for block in function.body.blocks:
        if isinstance(end := block.last_op, func.ReturnOp):
            for number, target in targets.items():
                state.ends[TensorUse(end, number)] = target
    for block in list(function.body.blocks)[1:]:
        _give_places(block, entry, state)
    _walk(_dominated(function), entry, state, targets)
    state.end()


def _eraser(block: Block, arguments: Iterable[object]) -> Callable[[], None]:
    def erase() -> None:
        for argument in [each for each in block.args if any(each is other for other in arguments)]:
            block.erase_arg(argument)

    return erase


def _give_places(block: Block, entry: Block, state: State) -> None:
    """Memory for the tensors that a block takes."""
    arguments = [argument for _, argument in tensors(block.args)]
    assert entry.first_op is not None
    for argument in arguments:
        state.put(argument, state.allocate(argument.type, entry.first_op, argument.name_hint))
    if arguments:
        state.finish.append(_eraser(block, arguments))


def _walk(dominated: dict[Block, list[Block]], block: Block, state: State, targets: dict[int, Place]) -> None:
    """Bufferize a block, and then those that only control that came through it can reach."""
    bufferize_block(block, state)
    end = block.last_op
    if isinstance(end, func.ReturnOp):
        hand_on(state, end, targets)
    elif end is not None and end.successors:
        _leave(end, state)
    for inner in dominated.get(block, ()):
        mark = state.mark()
        _walk(dominated, inner, state, targets)
        state.back_to(mark)


@bufferize.register(func.ReturnOp)
@bufferize.register(cf.BranchOp)
@bufferize.register(cf.ConditionalBranchOp)
def leave_later(op: Operation, state: State) -> None:
    """The end of a block, which is done by the walk over the blocks."""


def _leave(end: Operation, state: State) -> None:
    """Copy what a branch hands on; of two ways, only what the one that is taken hands on."""
    ways = edges(end)
    if ways is None:
        raise error_at(end, f"'{end.name}' has no form on memory: bufferization does not know where it leads")
    pairs = [_pairs(way, state) for way in ways]
    if isinstance(end, cf.ConditionalBranchOp):
        if any(pairs):
            branch(state, end, end.cond, [copier(state, each) for each in pairs])
        sizes = [len(others(way.operands)) for way in ways]
        arguments = others(end.operands)[1:]
        made = cf.ConditionalBranchOp(
            end.cond, end.then_block, arguments[: sizes[0]], end.else_block, arguments[sizes[0] :]
        )
        made.attributes |= end.attributes
        _replace(end, made, state)
        return
    for each in pairs:
        state.copy_at_once(each, end)
    state.emptied.append(end)


def _replace(end: Operation, made: Operation, state: State) -> None:
    if not any(map(is_tensor, end.operands)):
        return
    block = end.parent
    assert block is not None

    def replace() -> None:
        made.location = end.location
        block.insert_op_before(made, end)
        end.successors = ()
        block.erase_op(end)

    state.emptied.append(end)
    state.finish.append(replace)


def _pairs(way: Edge, state: State) -> list[tuple[Place, Place]]:
    found = [
        (state.place_if_written(operand), state.place_if_written(argument))
        for operand, argument in way.pairs
        if is_tensor(operand)
    ]
    return [(source, target) for source, target in found if source is not None and target is not None]


def _dominated(function: func.FuncOp) -> dict[Block, list[Block]]:
    """Return the blocks that each block dominates immediately."""
    blocks = list(function.body.blocks)
    if len(blocks) == 1:
        return {}
    entry, everything = blocks[0], set(blocks)
    dominators = {block: {block} if block is entry else everything for block in blocks}
    before: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for target in () if block.last_op is None else block.last_op.successors:
            before[target].append(block)
    changed = True
    while changed:
        changed = False
        for block in blocks[1:]:
            ways = [dominators[each] for each in before[block]]
            found = {block}.union(set[Block].intersection(*ways) if ways else ())
            changed |= found != dominators[block]
            dominators[block] = found
    dominated: dict[Block, list[Block]] = {}
    for block in blocks[1:]:
        # The nearest one is dominated by all of the others.
        nearest = max(dominators[block] - {block}, key=lambda each: len(dominators[each]), default=entry)
        dominated.setdefault(nearest, []).append(block)
    return dominated


@bufferize.register
def call(op: func.CallOp, state: State) -> None:
    """Tensors become memory; results are written by the function that is called."""
    operands = [_argument(op, number, state) if is_tensor(value) else value for number, value in enumerate(op.operands)]
    given = tensors(op.results)
    if not given and all(one is other for one, other in zip(operands, op.operands, strict=True)):
        return
    places = [state.allocate(value.type, op, value.name_hint) for _, value in given]
    kept = others(op.results)
    made = func.CallOp.create(
        operands=[*operands, *(place.memref for place in places)],
        result_types=[value.type for value in kept],
        properties=op.properties,
        attributes=op.attributes,
    )
    state.add(op, made)
    for old, new in zip(kept, made.results, strict=True):
        old.replace_all_uses_with(new)
    for (_, value), place in zip(given, places, strict=True):
        state.put(value, place)
    state.remove(op)


def _argument(op: Operation, number: int, state: State) -> SSAValue:
    """Memory without gaps with the elements of an operand."""
    value = op.operands[number]
    place = state.place(value, op)
    if place.memref.type == memory_of(value.type):
        return place.memref
    apart = state.allocate(value.type, op)
    state.copy(place.memref, apart.memref, op)
    return apart.memref


# From linalg on tensors to linalg on memory with a place in an arena.


def bufferize_pipeline() -> tuple[ModulePass, ...]:
    """The passes that take the tensors out of a module in linalg, in order."""
    return FuseElementwisePass(), BufferizePass(), FusePiecesPass(), PlanArenaPass()
