"""The base of passes, small rewriting steps that keep locations, and functions of a module."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects.base import as_tensor, scalar_type
from tlx_xdsl.dialects.tt import CallOp, FuncOp, ReturnOp

OpT = TypeVar("OpT", bound=Operation)


class Pass(ModulePass):
    """A pass that takes nothing from the context."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass on a module."""
        self.run(op)

    @abstractmethod
    def run(self, op: ModuleOp) -> None:
        """Rewrite or check a module in place."""


def ops_of(root: Operation, *classes: type[OpT]) -> list[OpT]:
    """The operations of these classes in `root`, itself included, in program order; they may be rewritten meanwhile."""
    found: list[OpT] = []
    # `isinstance` of operations is slow, since their classes are abstract ones: each class is asked once.
    fits: dict[type[Operation], bool] = {}
    pending = [root]
    while pending:
        op = pending.pop()
        kind = type(op)
        if kind not in fits:
            fits[kind] = issubclass(kind, classes)
        if fits[kind]:
            found.append(cast(OpT, op))
        for region in reversed(op.regions):
            for block in reversed(region.blocks):
                pending += reversed(block.ops)
    return found


def retype(value: SSAValue, type_: Attribute) -> None:
    """Give `value` another type, in the IR as it is.

    xDSL's way makes a new value, which loses the location of a block argument and every table that is keyed by
    the value; the type is no part of a value's identity.
    """
    value._type = type_  # pyright: ignore[reportPrivateUsage]


def constant_integer(value: SSAValue) -> int | None:
    """The number that `value` is when it is the result of an integer constant."""
    op = value.owner
    if isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def constant(number: float, type_: Attribute) -> ConstantOp:
    """A number, or a tensor of it, of an integer, index or float type."""
    element: Any = scalar_type(type_)
    value: Any
    if as_tensor(type_) is not None:
        value = DenseIntOrFPElementsAttr.from_list(cast(Any, type_), [number])
    elif isinstance(element, IntegerType | IndexType):
        value = IntegerAttr(int(number), cast(Any, element))
    else:
        value = FloatAttr(number, element)
    return ConstantOp.create(properties={"value": value}, result_types=[type_])


def with_layout(type_: TensorType[Attribute], encoding: Attribute) -> TensorType[Attribute]:
    """`type_` with another layout."""
    return TensorType(type_.element_type, type_.get_shape(), encoding)


def retyped(value: DenseIntOrFPElementsAttr, type_: Attribute) -> DenseIntOrFPElementsAttr:
    """The same elements as a constant of another tensor type, such as one with a layout."""
    # xDSL asks for a tensor type whose elements it knows to be numbers.
    return DenseIntOrFPElementsAttr(cast(Any, type_), value.data)


def insert_before(anchor: Operation, op: OpT, *, located_at: Operation | None = None) -> OpT:
    """Insert `op` before `anchor`, with the location of `located_at` (of `anchor` by default)."""
    op.location = (anchor if located_at is None else located_at).location
    Rewriter.insert_op(op, InsertPoint.before(anchor))
    return op


def insert_after_definition(value: SSAValue, op: OpT) -> OpT:
    """Insert `op` after the definition of `value`, with the location of that."""
    if isinstance(value, BlockArgument):
        first = value.block.first_op
        assert first is not None, "a block ends in an operation"
        insert_before(first, op)
        op.location = value.location
        return op
    owner = value.owner
    assert isinstance(owner, Operation)
    op.location = owner.location
    Rewriter.insert_op(op, InsertPoint.after(owner))
    return op


def insert_adaptor(value: SSAValue, op: OpT) -> OpT:
    """Insert `op`, which takes `value`, after its definition, and let all other users of `value` take its result."""
    insert_after_definition(value, op)
    value.replace_uses_with_if(op.results[0], lambda use: use.operation is not op)
    return op


def replace(op: Operation, new_op: OpT) -> OpT:
    """Replace `op` by `new_op`: same location, its results take over all uses and names."""
    insert_before(op, new_op)
    for old, new in zip(op.results, new_op.results, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)
    return new_op


def forward(op: Operation, value: SSAValue) -> None:
    """Let the users of the only result of `op` take `value`, and erase `op`."""
    op.results[0].replace_all_uses_with(value)
    Rewriter.erase_op(op)


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of `module` by name."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def callee_of(call: CallOp) -> str:
    """The name of the function that `call` calls."""
    return call.callee.string_value()


def returned(func: FuncOp) -> Sequence[SSAValue]:
    """The values of one `tt.return`: those of all of them are one SSA equivalence class."""
    ends = [block.last_op for block in func.body.blocks if isinstance(block.last_op, ReturnOp)]
    return ends[0].srcs if ends else ()


def update_signature(func: FuncOp) -> None:
    """Give a function the type that follows from its arguments and from what it returns."""
    if func.body.blocks:
        outputs = [value.type for value in returned(func)] or list(func.function_type.outputs.data)
        inputs = [argument.type for argument in func.body.blocks[0].args]
        func.function_type = FunctionType.from_lists(inputs, outputs)
