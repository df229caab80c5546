"""`tlx-ws-form-descriptors`: loads and stores of boxes by pointers and masks become TMA's, through descriptors.

An access whose addresses are a strided box (`boxes.py`), and whose mask is that of the tensor's bounds, is one of a
tensor descriptor, which is made at the function's start: TMA gives 0 outside of the tensor, and writes nothing there.
Accesses in loops are rewritten, and all others of blocks with two dimensions or more. What is left as it is gets a
`tlx.note` with the reason. What must hold at a launch, and is not known, is added to `tlx.launch_conditions`.

Before:
```mlir
%rows = arith.addi %splat_row, %range : tensor<64xi32>
// ... %offsets = rows * stride + columns, %mask = rows < M
%pointers = tt.addptr %splat_a, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
%x = tt.load %pointers, %mask, %zeros : tensor<64x64x!tt.ptr<f16>>
```
After:
```mlir
%a_desc = tt.make_tensor_descriptor %a, [%M, %c2147483647], [%stride, %c1] : <f16>, <64x64xf16>  // at the start
%x = tt.descriptor_load %a_desc[%row, %column] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
```
Rows that wrap around (`rows % M`) are those of a box, too, where they never reach memory
(`analysis/hidden_positions.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith as upstream, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.hidden_positions import reaches
from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.integers.transfer import shape_of
from tlx_xdsl.analysis.structure.places import Places
from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import (
    Kind,
    Space,
    accesses_of,
    as_tensor,
    element_bits,
    enclosing,
    is_set,
    pointee_type,
    scalar_type,
)
from tlx_xdsl.dialects.tt.block_pointer import boundaries_of, is_block_pointer, padding_of
from tlx_xdsl.dialects.tt.enums import PaddingOption
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.transforms.drop_unused import drop_unused
from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of

from .accesses.arguments import HOST_VALUE, add_argument, add_conditions, descriptor_name, new_name
from .accesses.boxes import UNBOUNDED, Box, NoBoxError, form_box, is_at_most, sides_of
from .accesses.division import Side
from .accesses.emission import Emission
from .accesses.facts import Facts
from .slices import Slice, writes_memory
from .tasks_of import NOTE

_Access = tt.LoadOp | tt.StoreOp

_OF_ZERO = (
    tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.FpToFpOp, arith.TruncFOp, arith.ExtFOp, upstream.SIToFPOp,
    arith.ExtSIOp, arith.TruncIOp,
)  # fmt: skip
"""Operations that give 0 for 0."""


@dataclass(frozen=True)
class FormDescriptorsPass(Pass):
    """Rewrite the accesses of all kernels of a module."""

    name = "tlx-ws-form-descriptors"

    ask_of_stores: bool = True
    """True if multiples of 16 bytes that a store needs, and that nothing proves, may be conditions of a launch; else
    the threads store. The loads of a kernel may not need them: a matrix of weights has rows of another length."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            if function.is_kernel and len(function.body.blocks) == 1:
                _Former(function, ask_of_stores=self.ask_of_stores).run()


@dataclass(frozen=True)
class _Plan:
    """An access with its box, and the values of its coordinates."""

    access: _Access
    box: Box
    note: str


class _Former:
    """Forms the descriptors of one function."""

    def __init__(self, function: tt.FuncOp, *, ask_of_stores: bool):
        self._function = function
        self._ask_of_stores = ask_of_stores
        self._places = Places(function)
        self._facts = Facts(function, self._places.sums)

    def run(self) -> None:
        """Rewrite the function."""
        loads = ops_of(self._function, tt.LoadOp)
        # What says where others lie is loaded by all who ask for it.
        places = Slice(each for each in loads if len(shape_of_block(each)) > 1).values
        accesses = [
            access
            for access in ops_of(self._function, tt.LoadOp, tt.StoreOp)
            if _is_wanted(access) and places.isdisjoint(access.results)
        ]
        written = self._written()
        plans: list[_Plan] = []
        for access in accesses:
            try:
                plans.append(self._plan(access, written))
            except NoBoxError as reason:
                what = "loaded" if isinstance(access, tt.LoadOp) else "stored"
                access.attributes[NOTE] = StringAttr(f"{what} by the threads, because {_in_python(str(reason))}")
        if plans:
            self._rewrite(plans)
            drop_unused(self._function)

    # What is a box ---------------------------------------------------------------------------------------------------

    def _written(self) -> set[SSAValue] | None:
        """The roots of what the kernel writes; None where one of them is unknown."""
        found: set[SSAValue] = set()
        for op in self._function.walk():
            # Functions and loops are what their operations are.
            if op.regions or not writes_memory(op):
                continue
            if (accesses := accesses_of(op)) is None:
                return None
            for access in accesses:
                if access.space is Space.GLOBAL and access.kind & Kind.WRITE:
                    if (root := self._root(access.value)) is None:
                        return None
                    found.add(root)
        return found

    def _root(self, pointer: SSAValue) -> SSAValue | None:
        if isinstance(pointer.type, tt.TensorDescType):
            # The host's descriptors are tensors of their own.
            made = pointer.owner
            return self._root(made.base) if isinstance(made, tt.MakeTensorDescOp) else pointer
        if is_block_pointer(pointer.type):
            block = self._places.block(pointer)
            return None if block is None else self._root(block.tensor.base)
        place = self._places.of(pointer)
        return None if place is None else place.root

    def _plan(self, access: _Access, written: set[SSAValue] | None) -> _Plan:
        is_store = isinstance(access, tt.StoreOp)
        self._check(access)
        sides, rest, root, may_wrap = self._sides(access)
        if not self._facts.value_is_of_launch(root):
            raise NoBoxError("its pointer is no argument of the kernel")
        if not is_store and (written is None or root in written):
            raise NoBoxError("the kernel stores to the same tensor, or to an unknown one")
        bits = element_bits(scalar_type(pointee_type(access.ptr.type)))
        may_ask = self._ask_of_stores or not is_store
        box = form_box(root, sides, rest, bits, self._facts, is_store=is_store, may_wrap=may_wrap, may_ask=may_ask)
        bends = [side for side in box.sides if side.bends_at is not None]
        for side in bends:
            self._check_bend(access, side)
        return _Plan(access, box, _note(box, is_store=is_store))

    def _check(self, access: _Access) -> None:
        if not isinstance(access, tt.LoadOp):
            return
        if is_set(access, "isVolatile"):
            raise NoBoxError("it is volatile")
        if access.mask is not None and access.other is not None and not gives_zero(access.other):
            raise NoBoxError("TMA gives 0 outside of a tensor, and this load another value")
        if boundaries_of(access) and padding_of(access) not in (None, PaddingOption.PAD_ZERO):
            raise NoBoxError("TMA gives 0 outside of a tensor, and this load NaN")

    def _sides(self, access: _Access) -> tuple[list[Side], Polynomial, SSAValue, bool]:
        """The sides of an access, its base, its root, and whether offsets may wrap around."""
        if is_block_pointer(access.ptr.type):
            return self._sides_of_block(access)
        if (place := self._places.of(access.ptr)) is None:
            raise NoBoxError("its pointers have no base that is known")
        mask = None if access.mask is None else self._places.mask(access.mask)
        return *sides_of(place, mask, shape_of(access.ptr), self._facts), place.root, place.may_wrap

    def _sides_of_block(self, access: _Access) -> tuple[list[Side], Polynomial, SSAValue, bool]:
        block, sums = self._places.block(access.ptr), self._places.sums
        if block is None or (place := self._places.of(block.tensor.base)) is None:
            raise NoBoxError("its block pointer is moved in a way that is not known")
        checked, rest, sides = boundaries_of(access) or (), place.offset.base, list[Side]()
        shape = shape_of_block(access)
        for dim, (offset, stride, extent) in enumerate(
            zip(block.offsets, block.tensor.strides, block.tensor.shape, strict=True)
        ):
            by = sums.of(stride)
            rest += offset * by
            bound = sums.of(extent) - offset if dim in checked else None
            if shape[dim] > 1:
                sides.append(Side(shape[dim], by, dim, offset, bound, is_fixed=dim in checked))
            elif bound is not None:
                raise NoBoxError("the bounds of one of its sides, of one element, are checked")
        return sides, rest, place.root, False

    def _check_bend(self, access: _Access, side: Side) -> None:
        """Rows that wrap around are not those of the box, and must make no difference."""
        if isinstance(access, tt.StoreOp):
            raise NoBoxError(f"its rows end at {side.bends_at}, and not with a tensor")
        assert side.dim is not None and side.bends_at is not None
        bend = side.bends_at

        def hides(mask: SSAValue, dim: int) -> bool:
            state = self._places.mask(mask)
            return state is not None and is_at_most(state.bounds[dim][1], bend)

        if (found := reaches(access.result, side.dim, hides)) is not None:
            what = f"its mask ends at {bend}" if side.is_open else "its addresses wrap around"
            raise NoBoxError(f"{what}, and '{found.name}' may bring what is there into memory")

    # Rewriting -------------------------------------------------------------------------------------------------------

    def _rewrite(self, plans: Sequence[_Plan]) -> None:
        emission = Emission(self._function, self._places.sums)
        start = next(op for op in self._function.body.block.ops if not isinstance(op, upstream.ConstantOp))
        made: dict[object, SSAValue] = {}
        conditions: dict[str, None] = {}
        for plan in plans:
            access, box = plan.access, plan.box
            try:
                corner = [emission.value(side.coordinate, 32, access) for side in box.sides]
            except ValueError as error:
                access.attributes[NOTE] = StringAttr(f"accessed by the threads, because of its place: {error}")
                continue
            element = scalar_type(pointee_type(access.ptr.type))
            key = (
                box.root,
                tuple((each.size, each.stride, each.extent, each.extent_text) for each in box.sides),
                element,
            )
            if key not in made:
                made[key] = self._descriptor(box, element, emission, start)
            new = _store(access, made[key], corner, box) if isinstance(access, tt.StoreOp) else None
            if new is None:
                assert isinstance(access, tt.LoadOp)
                new = _load(access, made[key], corner, box)
            new.attributes[NOTE] = StringAttr(plan.note)
            Rewriter.erase_op(access)
            conditions.update(dict.fromkeys(box.conditions))
        add_conditions(self._function, list(conditions))

    def _descriptor(self, box: Box, element: Attribute, emission: Emission, start: Operation) -> SSAValue:
        shape = [self._extent(side, box, emission, start) for side in box.sides]
        strides = [emission.value(side.stride, 64, start) for side in box.sides]
        made = insert_before(
            start,
            tt.MakeTensorDescOp.create(
                operands=[box.root, *shape, *strides],
                result_types=[tt.TensorDescType.get([side.size for side in box.sides], element)],
                properties={"padding": PaddingOption.PAD_ZERO.attr},
            ),
        )
        made.result.name_hint = descriptor_name(box.root.name_hint)
        return made.result

    def _extent(self, side: Side, box: Box, emission: Emission, start: Operation) -> SSAValue:
        if side.extent_text:
            name = new_name(self._function, f"{(box.root.name_hint or 'tensor').removesuffix('_ptr')}_rows")
            attributes = DictionaryAttr({HOST_VALUE: StringAttr(side.extent_text)})
            entry = self._function.body.block
            return add_argument(self._function, len(entry.args), name, i32, attributes, start.location)
        limit = Polynomial.constant(UNBOUNDED) if side.extent is None else side.extent
        return emission.value(limit, 32, start)


def shape_of_block(access: _Access) -> Ints:
    """The shape of what an access loads or stores."""
    tensor = as_tensor(pointee_type(access.ptr.type))
    return () if tensor is None else tuple(tensor.get_shape())


def _is_wanted(access: _Access) -> bool:
    """True for blocks of two dimensions, and for rows that a loop loads; a loop over tiles is not meant."""
    sides = [size for size in shape_of_block(access) if size > 1]
    if len(sides) != 1 or isinstance(access, tt.StoreOp):
        return len(sides) > 1
    loop = enclosing(access.parent_op(), scf.ForOp, scf.WhileOp)
    while isinstance(loop, scf.ForOp) and isinstance(loop.lb.owner, tt.GetProgramIdOp):
        loop = enclosing(loop.parent_op(), scf.ForOp, scf.WhileOp)
    return loop is not None


def gives_zero(value: SSAValue) -> bool:
    """Return whether a value is zeros."""
    op = value.owner
    if isinstance(op, _OF_ZERO):
        return gives_zero(op.operands[0])
    if not isinstance(op, upstream.ConstantOp):
        return False
    if isinstance(op.value, DenseIntOrFPElementsAttr):
        return not any(op.value.data.data)
    held = getattr(op.value, "value", None)
    return held is not None and held.data == 0


def _in_python(text: str) -> str:
    """Names and functions as the kernel's author knows them."""
    return re.sub(r"%(?=\w)", "", text).replace("tt.get_", "").replace("tt.", "")


def _note(box: Box, *, is_store: bool) -> str:
    bounded = any(side.bound is not None for side in box.sides)
    if any(side.is_open for side in box.sides):
        return "TMA: what lies beyond the rows of the mask reaches no memory"
    if any(side.bends_at is not None for side in box.sides):
        return "TMA: the rows that wrap around reach no memory, so they are left out of the tensor"
    if not bounded:
        return "TMA: the block is a strided box of the tensor"
    if is_store:
        return "TMA: the mask is that of the tensor's bounds, outside of which TMA writes nothing"
    return "TMA: the mask is that of the tensor's bounds, outside of which TMA gives 0"


def _order(box: Box) -> list[int]:
    """The dimensions of the block in the order of the descriptor."""
    return [side.dim for side in box.sides if side.dim is not None]


def _load(access: tt.LoadOp, descriptor: SSAValue, corner: Sequence[SSAValue], box: Box) -> Operation:
    tensor = as_tensor(access.result.type)
    assert tensor is not None
    order, shape = _order(box), tuple(tensor.get_shape())
    properties = {} if access.cache_policy is None else {"cachePolicy": access.cache_policy}
    type_ = TensorType(tensor.element_type, [shape[dim] for dim in order])
    load = tt.DescriptorLoadOp.create(operands=[descriptor, *corner], result_types=[type_], properties=properties)
    value = insert_before(access, load).result
    ranks = sorted(order)
    if order != ranks:
        value = _transposed(access, value, [order.index(dim) for dim in ranks])
    if len(order) < len(shape):
        value = insert_before(access, tt.ReshapeOp.create(operands=[value], result_types=[access.result.type])).result
    value.name_hint = access.result.name_hint
    access.result.replace_all_uses_with(value)
    return load


def _store(access: tt.StoreOp, descriptor: SSAValue, corner: Sequence[SSAValue], box: Box) -> Operation:
    tensor = as_tensor(access.value.type)
    assert tensor is not None
    order, shape, value = _order(box), tuple(tensor.get_shape()), access.value
    ranks = sorted(order)
    if len(order) < len(shape):
        type_ = TensorType(tensor.element_type, [shape[dim] for dim in ranks])
        value = insert_before(access, tt.ReshapeOp.create(operands=[value], result_types=[type_])).result
    if order != ranks:
        value = _transposed(access, value, [ranks.index(dim) for dim in order])
    return insert_before(access, tt.DescriptorStoreOp.create(operands=[descriptor, value, *corner]))


def _transposed(anchor: Operation, value: SSAValue, order: Sequence[int]) -> SSAValue:
    shape, tensor = shape_of(value), as_tensor(value.type)
    assert tensor is not None
    op = tt.TransOp.create(
        operands=[value],
        result_types=[TensorType(tensor.element_type, [shape[dim] for dim in order])],
        properties={"order": DenseArrayBase.from_list(i32, order)},
    )
    return insert_before(anchor, op).result
