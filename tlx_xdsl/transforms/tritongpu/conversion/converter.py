"""The walk that gives layouts, and what the handlers of single operations are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from xdsl.dialects.builtin import NoneAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tlx_xdsl.dialects import ttg
from tlx_xdsl.dialects.base import is_elementwise, layout_attr
from tlx_xdsl.layouts.distributed import default_blocked_layout
from tlx_xdsl.layouts.encodings import DistributedLayout, Ints, NvidiaMmaLayout
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import insert_before, retype, with_layout

Handler: TypeAlias = "Callable[[Converter, Any], None]"

HANDLERS: dict[type[Operation], Handler] = {}
"""By class of operations, the function that gives them layouts; the files beside this one fill it. Elementwise
operations need none."""

_H = TypeVar("_H", bound=Callable[..., None])


def handles(*classes: type[Operation]) -> Callable[[_H], _H]:
    """Register a handler for these classes of operations."""

    def register(handler: _H) -> _H:
        for class_ in classes:
            HANDLERS[class_] = handler
        return handler

    return register


class Converter:
    """Walks a function in program order: operands have their layouts when an operation is reached."""

    def __init__(
        self,
        accumulators: Mapping[SSAValue, NvidiaMmaLayout],
        accesses: Mapping[Operation, DistributedLayout],
        ctas: int = 1,
    ):
        self.accumulators = accumulators
        self.accesses = accesses
        self.ctas = ctas
        """CTAs that share each tensor, which has one dimension then."""
        self.warps = 0
        """Warps of the region that we are in."""
        self.conversions: dict[tuple[SSAValue, Attribute, Block | None], SSAValue] = {}

    def region(self, region: Region, warps: int) -> None:
        """Convert the operations of `region`, which `warps` warps run.

        Of several blocks, each comes after those that dominate it.
        """
        outer, self.warps = self.warps, warps
        for block in region.blocks:
            for argument in block.args:
                self.settle(argument)
        for block in region.blocks:
            for op in list(block.ops):
                self.convert(op)
        self.warps = outer

    def convert(self, op: Operation) -> None:
        """Give the results of `op` layouts, and its operands those that it needs."""
        if (handler := HANDLERS.get(type(op))) is not None:
            handler(self, op)
        elif op.regions:
            raise error_at(op, f"'{op.name}' can't be given layouts yet")
        elif _has_tensors(op):
            if not is_elementwise(op):
                raise error_at(op, f"'{op.name}' can't be given layouts yet")
            self.elementwise(op)

    # --- layouts of values -------------------------------------------------------------------------------------

    def default_layout(self, shape: Ints) -> DistributedLayout:
        """The default layout of a tensor of `shape` in this region."""
        if self.ctas == 1:
            return default_blocked_layout(shape, self.warps)
        parts = tuple((1 << bit,) for bit in range(self.ctas.bit_length() - 1))
        own = tuple(max(1, size // self.ctas) for size in shape)
        return replace(default_blocked_layout(own, self.warps), cga_layout=parts)

    def default(self, type_: TensorType[Attribute]) -> TensorType[Attribute]:
        """`type_` with the default layout of the region."""
        return with_layout(type_, layout_attr(self.default_layout(type_.get_shape())))

    def settle(self, value: SSAValue, otherwise: Attribute | None = None) -> None:
        """Give `value` its layout: the one it has, the accumulator's, `otherwise`, or the default."""
        type_ = ttg.as_tensor(value.type)
        if type_ is None or not isinstance(type_.encoding, NoneAttr):
            return
        if (accumulator := self.accumulators.get(value)) is not None:
            retype(value, with_layout(type_, layout_attr(accumulator)))
        elif otherwise is not None:
            retype(value, with_layout(type_, otherwise))
        else:
            retype(value, self.default(type_))

    def require(self, op: Operation, index: int, encoding: Attribute) -> None:
        """Bring operand `index` of `op` to a layout, by a conversion when it has another."""
        value = op.operands[index]
        type_ = ttg.as_tensor(value.type)
        if type_ is None or type_.encoding == encoding:
            return
        # A block needs one conversion of a value to a layout, however many operations want it.
        key = (value, encoding, op.parent_block())
        converted = self.conversions.get(key)
        if converted is None:
            convert = ttg.ConvertLayoutOp(operands=[value], result_types=[with_layout(type_, encoding)])
            converted = self.conversions[key] = insert_before(op, convert).result
        op.operands[index] = converted

    def elementwise(self, op: Operation, layout: Attribute | None = None) -> None:
        """Results and operands of one shape share one layout: `layout`, or the default one."""
        for result in op.results:
            self.settle(result, layout)
        tensors = [type_ for result in op.results if (type_ := ttg.as_tensor(result.type)) is not None]
        for index, operand in enumerate(op.operands):
            if (type_ := ttg.as_tensor(operand.type)) is not None:
                wanted = tensors[0].encoding if tensors else layout or self.default(type_).encoding
                self.require(op, index, wanted)


def _has_tensors(op: Operation) -> bool:
    return any(isinstance(value.type, TensorType) for value in (*op.operands, *op.results))
