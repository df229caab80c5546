"""Operations are made at one place, with one location: those on scalars, and the ones of `linalg` and `tensor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias, TypeVar

from xdsl.dialects import arith as scalar, scf, tensor as upstream
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, DenseArrayBase, IndexType, LocationAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import linalg, tensor
from tlx_xdsl.dialects.base.tensors import as_tensor, scalar_type, shape_of_tensor
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.transforms.rewriting import constant

from ..emitter import refuse

OpT = TypeVar("OpT", bound=Operation)
Body: TypeAlias = "Callable[[Emitter, Sequence[SSAValue]], Sequence[SSAValue]]"
"""Makes the body of an operation from its arguments, and gives what it yields."""

INDEX = IndexType()


def like(type_: Attribute, shape: Sequence[int]) -> TensorType[Attribute]:
    """A tensor of `shape` with the elements of `type_`."""
    return _tensor_of(scalar_type(type_), tuple(shape))


@lru_cache(maxsize=4096)
def _tensor_of(element: Attribute, shape: tuple[int, ...]) -> TensorType[Attribute]:
    return TensorType(element, shape)


class Emitter:
    """Inserts operations at one place, in their order."""

    def __init__(self, at: InsertPoint, location: LocationAttr):
        self.at = at
        self.location = location

    @classmethod
    def before(cls, op: Operation) -> Emitter:
        """An emitter before `op`, with its location."""
        return cls(InsertPoint.before(op), op.location)

    def inside(self, block: Block) -> Emitter:
        """An emitter at the end of `block`, with the same location."""
        return Emitter(InsertPoint.at_end(block), self.location)

    def add(self, op: OpT) -> OpT:
        """Insert an operation."""
        op.location = self.location
        Rewriter.insert_op(op, self.at)
        return op

    def result(self, op: Operation) -> SSAValue:
        """Insert an operation, and return its only result."""
        return self.add(op).results[0]

    # --- scalars -----------------------------------------------------------------------------------------------

    def constant(self, number: float, type_: Attribute) -> SSAValue:
        """A number as a scalar."""
        return self.result(constant(number, type_))

    def index(self, number: int) -> SSAValue:
        """A number as an `index`."""
        return self.constant(number, INDEX)

    def to_index(self, value: SSAValue) -> SSAValue:
        """A signed integer as an `index`."""
        return self.result(scalar.IndexCastOp(value, INDEX))

    # --- tensors -----------------------------------------------------------------------------------------------

    def empty(self, type_: Attribute) -> SSAValue:
        """A tensor that all of it is written to."""
        return self.result(upstream.EmptyOp([], like(type_, shape_of_tensor(type_))))

    def filled(self, number: SSAValue, type_: Attribute) -> SSAValue:
        """A tensor with a scalar in all elements."""
        return self.result(linalg.FillOp([number], [self.empty(type_)]))

    def block_of(
        self, types: Sequence[Attribute], body: Body, terminator: type[Operation], names: Sequence[str] = ()
    ) -> Block:
        """A block that ends in `terminator`, with the values that `body` gives; `names` are of its arguments."""
        block = Block(arg_types=types)
        for argument in block.args:
            argument.location = self.location
        for argument, name in zip(block.args, names, strict=False):
            argument.name_hint = name
        inner = self.inside(block)
        inner.add(terminator.create(operands=body(inner, block.args)))
        return block

    def generic(
        self,
        inputs: Sequence[SSAValue],
        results: Sequence[Attribute],
        body: Body,
        maps: Sequence[Sequence[int]] | None = None,
    ) -> Sequence[SSAValue]:
        """A parallel loop nest over the elements of the results, which have one shape.

        `body` gets an element of each input. `maps` gives for each input the dimensions of the result that its own are;
        by default a tensor has all of them, and a scalar none.
        """
        rank = len(shape_of_tensor(results[0]))
        everywhere = tuple(range(rank))
        if maps is None:
            maps = [() if as_tensor(value.type) is None else everywhere for value in inputs]
        outputs = [self.empty(type_) for type_ in results]
        types = [scalar_type(value.type) for value in (*inputs, *outputs)]
        names = ["in"] * len(inputs) + ["out"] * len(outputs)
        block = self.block_of(types, lambda inner, values: body(inner, values[: len(inputs)]), linalg.YieldOp, names)
        op = linalg.GenericOp(
            inputs,
            outputs,
            Region(block),
            [_map(rank, tuple(dims)) for dims in (*maps, *(everywhere for _ in outputs))],
            [linalg.PARALLEL] * rank,
            [value.type for value in outputs],
        )
        return self.add(op).results

    def mapped(
        self, inputs: Sequence[SSAValue], element: Attribute, body: Callable[[Emitter, Sequence[SSAValue]], SSAValue]
    ) -> SSAValue:
        """One element of type `element` from each of the inputs, whose first is a tensor."""
        type_ = like(element, shape_of_tensor(inputs[0].type))
        return self.generic(inputs, [type_], lambda inner, values: [body(inner, values)])[0]

    # --- shapes ------------------------------------------------------------------------------------------------

    def reshaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in row-major order in another shape."""
        shape = tuple(shape)
        owner = value.owner
        if isinstance(owner, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
            # All of them keep the order, so the first source will do.
            return self.reshaped(owner.src, shape)
        source = shape_of_tensor(value.type)
        if source == shape:
            return value
        if (groups := _groups(source, shape)) is not None:
            return self.result(tensor.CollapseShapeOp.of(value, groups, like(value.type, shape)))
        if (groups := _groups(shape, source)) is not None:
            return self.result(tensor.ExpandShapeOp.of(value, groups, like(value.type, shape)))
        flat = self.result(tensor.CollapseShapeOp.of(value, [range(len(source))], like(value.type, [prod(source)])))
        return self.result(tensor.ExpandShapeOp.of(flat, [range(len(shape))], like(value.type, shape)))

    def slice(
        self,
        value: SSAValue,
        offsets: Sequence[SSAValue | int],
        sizes: Sequence[int],
        shape: Sequence[int] | None = None,
    ) -> SSAValue:
        """A part of a tensor, in `shape`, which may lack dimensions of size 1."""
        type_ = like(value.type, sizes if shape is None else shape)
        return self.result(upstream.ExtractSliceOp(value, offsets, sizes, [1] * len(sizes), type_))

    def inserted(
        self, value: SSAValue, into: SSAValue, offsets: Sequence[SSAValue | int], sizes: Sequence[int]
    ) -> SSAValue:
        """A tensor with a part replaced."""
        static = [offset if isinstance(offset, int) else DYNAMIC_INDEX for offset in offsets]
        op = upstream.InsertSliceOp.build(
            operands=[value, into, [offset for offset in offsets if isinstance(offset, SSAValue)], [], []],
            properties={
                "static_offsets": DenseArrayBase.from_list(i64, static),
                "static_sizes": DenseArrayBase.from_list(i64, sizes),
                "static_strides": DenseArrayBase.from_list(i64, [1] * len(sizes)),
            },
            result_types=[into.type],
        )
        return self.result(op)

    def element(self, value: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """One element of a tensor."""
        return self.result(upstream.ExtractOp(value, indices, scalar_type(value.type)))

    def loop(self, first: int, end: int, carried: Sequence[SSAValue], body: Body) -> Sequence[SSAValue]:
        """A loop whose body takes its number, from `first` on, and what it carries."""
        lower, upper, step = (self.index(number) for number in (first, end, 1))
        types = [INDEX, *(value.type for value in carried)]
        block = self.block_of(types, body, scf.YieldOp)
        return self.add(scf.ForOp(lower, upper, step, carried, Region(block))).results


@lru_cache(maxsize=4096)
def _map(rank: int, dims: tuple[int, ...]) -> AffineMapAttr:
    return AffineMapAttr(AffineMap(rank, 0, tuple(AffineDimExpr(dim) for dim in dims)))


def _groups(large: Sequence[int], small: Sequence[int]) -> list[list[int]] | None:
    """Return which dimensions of `large` make up each of `small`, in their order; None where that is impossible."""
    if not small:
        return [] if all(size == 1 for size in large) else None
    if len(large) <= len(small):
        return None
    groups: list[list[int]] = []
    at = 0
    for size in small:
        group: list[int] = []
        held = 1
        while at < len(large) and (not group or held < size):
            held *= large[at]
            group.append(at)
            at += 1
        if held != size or not group:
            return None
        groups.append(group)
    # What is left are dimensions of size 1.
    groups[-1].extend(range(at, len(large)))
    return groups if all(large[dim] == 1 for dim in range(at, len(large))) else None


# The handlers of operations, by their classes; the files beside this one fill it.


@dataclass(frozen=True)
class Options:
    """Options of the lowering of operations."""

    truncates_tf32: bool = True
    """Whether f32 operands of a dot with `inputPrecision = tf32` lose the bits that tensor cores do not look at."""


Handler: TypeAlias = "Callable[[Emitter, Any, Options], Sequence[SSAValue]]"
"""Makes the values that replace the results of an operation."""
Expansion: TypeAlias = "Callable[[Emitter, Any, Sequence[SSAValue]], SSAValue]"
"""Computes the result of an elementwise operation for scalar operands, with `arith` and `math`."""

HANDLERS: dict[type[Operation], Handler] = {}
"""Of operations that take or give tensors."""
EXPANSIONS: dict[type[Operation], Expansion] = {}
"""Of elementwise operations that are no operations of `arith` or `math`."""
GUARDS: dict[type[Operation], Expansion] = {}
"""Of operations of `arith` on tensors that trap on a CPU for an element that a mask hides; on scalars they stay."""

_H = TypeVar("_H", bound=Callable[..., Any])


def _registering(table: dict[type[Operation], Any]) -> Callable[..., Callable[[_H], _H]]:
    def of(*classes: type[Operation]) -> Callable[[_H], _H]:
        def register(handler: _H) -> _H:
            table.update(dict.fromkeys(classes, handler))
            return handler

        return register

    return of


lowers = _registering(HANDLERS)
"""Registers a handler for some classes of operations."""
expands = _registering(EXPANSIONS)
"""Registers what computes one element for some classes of operations."""
guards = _registering(GUARDS)
"""Registers what computes one element of a tensor for some classes of operations."""


def refused(op: Operation, reason: str) -> CompilationError:
    """The error that `op` cannot be lowered, with a list of what can be."""
    error = refuse(op, reason)
    names = {class_.name for class_ in (*HANDLERS, *EXPANSIONS)} - {op.name}
    known = ", ".join(sorted(name for name in names if name.startswith("tt.")))
    error.notes = (f"supported on tensors of numbers: arith, math, and {known}", *error.notes)
    return error
