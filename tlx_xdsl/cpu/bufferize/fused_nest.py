"""Roots with what is inlined into them: one `linalg.generic` each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith as scalar, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IndexType, IntegerType, TensorType, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tlx_xdsl.dialects import linalg
from tlx_xdsl.dialects.base.tensors import as_tensor, scalar_type, shape_of_tensor
from tlx_xdsl.dialects.bufferization import MaterializeInDestinationOp
from tlx_xdsl.transforms.rewriting import constant

from .fusion_plan import ORIGIN, Elementwise, FusionPlan, Map, Nest, composed, map_attr, maps_of, stored_part

Key = tuple[SSAValue, Map]
"""A tensor, and the map to the dimensions of the root by which its elements are found."""
Index = SSAValue | int


@dataclass(frozen=True, slots=True)
class _Part:
    """The box of a tensor that a root computes."""

    offsets: Sequence[Index]
    sizes: Sequence[Index]


@dataclass(eq=False, slots=True)
class _Body:
    """The body of a root that is being made."""

    root: Operation
    plan: FusionPlan
    block: Block = field(default_factory=Block)
    values: dict[Key, SSAValue] = field(default_factory=dict[Key, SSAValue])
    """The elements that are known."""
    part: _Part | None = None

    def element(self, value: SSAValue, map_: Map) -> SSAValue:
        """The element of a tensor, or a scalar as it is."""
        return value if as_tensor(value.type) is None else self.values[value, map_]

    def add(self, op: Operation) -> Operation:
        """Add an operation at the end."""
        self.block.add_op(op)
        return op

    def compute(self, node: Elementwise, map_: Map) -> None:
        """Compute the elements of what is inlined."""
        elements = [
            self.element(value, composed(inner, map_)) for value, inner in zip(node.inputs, node.maps, strict=True)
        ]
        if node.body is None:
            results = elements
        elif len(self.plan.spots[node.op]) == 1:
            results = self.move(node.body, elements, map_)
        else:
            results = self.copy(node.body, elements, map_)
        for result, element in zip(node.op.results, results, strict=True):
            self.values[result, map_] = element

    def move(self, body: Block, elements: Sequence[SSAValue], map_: Map) -> Sequence[SSAValue]:
        """Move the operations of a body, and return what they yield."""
        for argument, element in zip(body.args, elements, strict=False):
            argument.name_hint = None
            argument.replace_all_uses_with(element)
        last = body.last_op
        for op in list(body.ops):
            if op is last:
                break
            op.detach()
            if isinstance(op, linalg.IndexOp):
                op.result.replace_all_uses_with(self.index(op, map_))
            else:
                self.block.add_op(op)
        return [] if last is None else list(last.operands)

    def copy(self, body: Block, elements: Sequence[SSAValue], map_: Map) -> Sequence[SSAValue]:
        """Copy the operations of a body, and return what they yield."""
        known: dict[SSAValue, SSAValue] = dict(zip(body.args, elements, strict=False))
        last = body.last_op
        for op in body.ops:
            if op is last:
                return [known.get(value, value) for value in op.operands]
            if isinstance(op, linalg.IndexOp):
                known[op.result] = self.index(op, map_)
                continue
            made = type(op).create(
                operands=[known.get(value, value) for value in op.operands],
                result_types=[result.type for result in op.results],
                properties=op.properties,
                attributes=op.attributes,
                location=op.location,
            )
            self.block.add_op(made)
            known.update(zip(op.results, made.results, strict=True))
        return []

    def index(self, op: linalg.IndexOp, map_: Map) -> SSAValue:
        """The index along a dimension of what is inlined."""
        dim = map_[op.dim.value.data]
        if dim == ORIGIN:
            return self._located(constant(0, IndexType()), op)
        index = self._located(linalg.IndexOp(dim), op)
        offset = 0 if self.part is None else self.part.offsets[dim]
        if offset == 0:
            return index
        if isinstance(offset, int):
            offset = self._located(constant(offset, IndexType()), op)
        return self._located(scalar.AddiOp(index, offset), op)

    def _located(self, op: Operation, at: Operation) -> SSAValue:
        op.location = at.location
        return self.add(op).results[0]


def build(root: Operation, plan: FusionPlan) -> None:
    """Put a root with what is inlined into it in its place."""
    nest, items = plan.nests[root], plan.inlined[root]
    body = _Body(root, plan)
    if isinstance(root, MaterializeInDestinationOp):
        if not plan.is_inlined(nest.inputs[0]):
            return
        _store(root, nest, items, body)
        return
    inputs = _inputs(nest, items, plan)
    outputs, results = list(root.operands[len(nest.inputs) :]), [result.type for result in root.results]
    maps, kinds = _loops(root, nest)
    missing = _unbound(nest, inputs, maps)
    if missing:
        # What only bounds the loops is never read.
        empty = tensor.EmptyOp([], TensorType(i32, [nest.sizes[dim] for dim in missing]))
        inputs.append((_before(root, empty), missing))
    _arguments(body, inputs, outputs)
    for node, map_ in items:
        body.compute(node, map_)
    elements = [body.element(value, map_) for value, map_ in zip(nest.inputs, nest.maps, strict=True)]
    everywhere = tuple(range(len(nest.sizes)))
    node = plan.nodes.get(root)
    if node is not None and node.body is None:
        yielded: Sequence[SSAValue] = elements
    else:
        block = root.regions[0].block
        yielded = body.move(block, [*elements, *body.block.args[len(inputs) :]], everywhere)
    made = _generic(root, body, inputs, outputs, maps, kinds, yielded, results)
    for old, new in zip(root.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    assert root.parent is not None
    root.parent.erase_op(root)


def _before(root: Operation, op: Operation) -> SSAValue:
    assert root.parent is not None
    op.location = root.location
    root.parent.insert_op_before(op, root)
    return op.results[0]


def _inputs(nest: Nest, items: Sequence[tuple[Elementwise, Map]], plan: FusionPlan) -> list[Key]:
    """The tensors whose elements are read, each with its map, in program order."""
    found: dict[Key, None] = {}
    for node, map_ in items:
        for value, inner in zip(node.inputs, node.maps, strict=True):
            if as_tensor(value.type) is not None and not plan.is_inlined(value):
                found[value, composed(inner, map_)] = None
    for value, map_ in zip(nest.inputs, nest.maps, strict=True):
        if as_tensor(value.type) is not None and not plan.is_inlined(value):
            found[value, map_] = None
    return list(found)


def _arguments(body: _Body, inputs: Sequence[Key], outputs: Sequence[SSAValue]) -> None:
    """Give the body an argument for each tensor, and know them."""
    for number, value in enumerate([*(value for value, _ in inputs), *outputs]):
        argument = body.block.insert_arg(scalar_type(value.type), number)
        argument.location = body.root.location
        argument.name_hint = "in" if number < len(inputs) else "out"
    body.values.update(zip(inputs, body.block.args, strict=False))


def _loops(root: Operation, nest: Nest) -> tuple[list[Map], list[Attribute]]:
    """The maps of the outputs, and the kinds of the dimensions."""
    rank = len(nest.sizes)
    everywhere = tuple(range(rank))
    if isinstance(root, linalg.ReduceOp):
        reduced = root.dimensions.get_values()
        kept = tuple(dim for dim in everywhere if dim not in reduced)
        kinds = [linalg.REDUCTION if dim in reduced else linalg.PARALLEL for dim in everywhere]
        return [kept] * len(root.results), list(kinds)
    if isinstance(root, linalg.GenericOp):
        maps = maps_of(root)
        assert maps is not None
        return maps[len(nest.inputs) :], list(root.iterator_types)
    return [everywhere], [linalg.PARALLEL] * rank


def _unbound(nest: Nest, inputs: Sequence[Key], maps: Sequence[Map]) -> Map:
    """The dimensions whose size no operand has any more."""
    bound = {dim for map_ in (*(map_ for _, map_ in inputs), *maps) for dim in map_}
    return tuple(dim for dim in range(len(nest.sizes)) if dim not in bound)


def _generic(
    root: Operation,
    body: _Body,
    inputs: Sequence[Key],
    outputs: Sequence[SSAValue],
    maps: Sequence[Map],
    kinds: Sequence[Attribute],
    yielded: Sequence[SSAValue],
    results: Sequence[Attribute],
) -> Operation:
    end = linalg.YieldOp.create(operands=yielded, location=root.location)
    body.add(end)
    rank = len(kinds)
    attrs = [map_attr(rank, map_) for map_ in (*(map_ for _, map_ in inputs), *maps)]
    made = linalg.GenericOp.create(
        operands=[*(value for value, _ in inputs), *outputs],
        result_types=results,
        properties={
            "indexing_maps": ArrayAttr(attrs),
            "iterator_types": ArrayAttr(kinds),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(inputs), len(outputs)]),
        },
        regions=[Region(body.block)],
    )
    _before(root, made)
    for old, new in zip(root.results, made.results, strict=False):
        new.name_hint = old.name_hint
    return made


# Stores --------------------------------------------------------------------------------------------------------------


def _store(root: MaterializeInDestinationOp, nest: Nest, items: Sequence[tuple[Elementwise, Map]], body: _Body) -> None:
    """Let a store take a tensor of which no more is computed than it stores."""
    (source,), (everywhere,) = nest.inputs, nest.maps
    part = stored_part(root)
    sizes: Sequence[Index] = nest.sizes
    if part is not None:
        sizes = _given(part.static_sizes, part.sizes)
        body.part = _Part(_given(part.static_offsets, part.offsets), sizes)
    type_ = root.source.type
    dynamic = [size for size in sizes if isinstance(size, SSAValue)]
    empty = _before(root, tensor.EmptyOp(dynamic, type_))
    node = items[-1][0]
    if node.op is source.owner and isinstance(node.op, linalg.FillOp):
        filled = _before(root, linalg.FillOp([node.op.operands[0]], [empty]))
        root.operands[0] = filled
        return
    keys = _inputs(nest, items, body.plan)
    inputs = [(_cut(root, value, map_, body.part, nest), map_) for value, map_ in keys]
    _arguments(body, inputs, [empty])
    body.values.update(zip(keys, body.block.args, strict=False))
    for node, map_ in items:
        body.compute(node, map_)
    kinds = [linalg.PARALLEL] * len(nest.sizes)
    made = _generic(root, body, inputs, [empty], [everywhere], kinds, [body.element(source, everywhere)], [type_])
    root.operands[0] = made.results[0]


def _given(static: DenseArrayBase[IntegerType], operands: Sequence[SSAValue]) -> list[Index]:
    """Numbers of which some are operands."""
    rest = iter(operands)
    return [next(rest) if number == DYNAMIC_INDEX else number for number in static.get_values()]


def _cut(root: Operation, value: SSAValue, map_: Map, part: _Part | None, nest: Nest) -> SSAValue:
    """The part of an input that a part of the result needs."""
    if part is None:
        return value
    shape = shape_of_tensor(value.type)
    offsets = [0 if dim == ORIGIN else part.offsets[dim] for dim in map_]
    sizes = [1 if dim == ORIGIN else part.sizes[dim] for dim in map_]
    if tuple(sizes) == shape and not any(offsets):
        return value
    type_ = TensorType(scalar_type(value.type), [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes])
    return _before(root, tensor.ExtractSliceOp(value, offsets, sizes, [1] * len(shape), type_))
