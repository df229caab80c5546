"""Loop nests and what is a special case of them: fills, transpositions, broadcasts, reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import abstract_ops, attrs, ops
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    Pure,
    get_effects,
)
from xdsl.utils.exceptions import VerifyException

from ..base import as_tensor, scalar_type

PARALLEL = attrs.IteratorTypeAttr.parallel()
REDUCTION = attrs.IteratorTypeAttr.reduction()


class StructuredEffects(MemoryEffect):
    """The effects of the body; an operation on memory reads and writes that, too."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance] | None:
        """The effects of `op`; None where those of an operation in its body are unknown."""
        effects: set[EffectInstance] = set()
        for inner in op.regions[0].block.ops:
            # xDSL's linalg.yield says nothing of its effects.
            if not inner.has_trait(IsTerminator):
                found = get_effects(inner)
                if found is None:
                    return None
                effects |= found
        if any(isinstance(value.type, MemRefType) for value in op.operands):
            effects |= {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}
        return effects


EFFECTS = traits_def(StructuredEffects())
"""The traits of all structured operations."""
YieldOp = ops.YieldOp


def _verify_yield(op: abstract_ops.LinalgStructuredOperation) -> None:
    """Check that the body gives an element of each output."""
    last = op.body.block.last_op
    if not isinstance(last, ops.YieldOp):
        raise VerifyException("the body must end in 'linalg.yield'")
    expected = [argument.type for argument in op.body.block.args[len(op.inputs) :]]
    if [value.type for value in last.operands] != expected:
        raise VerifyException(f"the body must yield {_listed(expected)}, found {_listed(last.operand_types)}")


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def _parse_values(parser: Parser, keyword: str) -> Sequence[SSAValue]:
    """Parse `ins(%a, %b : type, type)`, or nothing."""
    if parser.parse_optional_characters(keyword) is None:
        return ()
    with parser.in_parens():
        position = parser.pos
        values = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return parser.resolve_operands(values, types, position)


def _print_values(printer: Printer, keyword: str, values: Sequence[SSAValue]) -> None:
    printer.print_string(f" {keyword}")
    with printer.in_parens():
        printer.print_list(values, printer.print_operand)
        printer.print_string(" : ")
        printer.print_list([value.type for value in values], printer.print_attribute)


class GenericOp(ops.GenericOp):
    """A loop nest, whose body computes elements of the outputs from elements of all operands.

    It is the operation of xDSL but for the text of several results, ` -> (tensor<4xf32>, tensor<4xi32>)`, and its
    effects.
    """

    traits = EFFECTS

    def verify_(self) -> None:
        """The body gives an element of each output, besides what all structured operations fulfil."""
        super().verify_()
        _verify_yield(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        position = parser.pos
        settings = parser.parse_optional_attr_dict()
        maps, kinds = settings.get("indexing_maps"), settings.get("iterator_types")
        if not isinstance(maps, ArrayAttr) or not isinstance(kinds, ArrayAttr):
            parser.raise_error("expected indexing_maps and iterator_types, each an array", position)
        iterators = [_iterator(parser, kind, position) for kind in cast(ArrayAttr[Attribute], kinds)]
        inputs, outputs = _parse_values(parser, "ins"), _parse_values(parser, "outs")
        extra: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("attrs") is not None:
            parser.parse_punctuation("=")
            extra = parser.parse_optional_attr_dict()
        body = parser.parse_region()
        results: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation("->") is not None:
            listed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
            results = [parser.parse_type()] if listed is None else listed
        names = [settings.get(name) for name in ("doc", "library_call")]
        doc, call = (name if isinstance(name, StringAttr) else None for name in names)
        op = cls(inputs, outputs, body, cast(ArrayAttr[AffineMapAttr], maps), iterators, results, doc, call)
        op.attributes |= extra
        return op


def _iterator(parser: Parser, kind: Attribute, position: int) -> attrs.IteratorTypeAttr:
    if isinstance(kind, attrs.IteratorTypeAttr):
        return kind
    names = [str(each) for each in attrs.IteratorType]
    if not isinstance(kind, StringAttr) or kind.data not in names:
        parser.raise_error(f"expected iterator types among {', '.join(names)}, found {kind}", position)
    return attrs.IteratorTypeAttr(attrs.IteratorType(kind.data))


class IndexOp(ops.IndexOp):
    """The number of the iteration along a dimension of the loop nest around: `%0 = linalg.index 0 : index`."""

    traits = traits_def(*ops.IndexOp.traits.traits, Pure())


class FillOp(ops.FillOp):
    """The outputs with one scalar in all elements."""

    traits = EFFECTS


class CopyOp(ops.CopyOp):
    """The outputs with the elements of the inputs."""

    traits = EFFECTS


def _print_dimensions(printer: Printer, name: str, dimensions: DenseArrayBase[IntegerType]) -> None:
    printer.print_string(f" {name} = ")
    with printer.in_square_brackets():
        printer.print_list(dimensions.get_values(), printer.print_int)


class TransposeOp(ops.TransposeOp):
    """The dimensions in another order: dimension i of the result is dimension `permutation[i]` of the input."""

    traits = EFFECTS

    def print(self, printer: Printer) -> None:
        """Print ` ins(%a : type) outs(%b : type) permutation = [1, 0]`."""
        _print_values(printer, "ins", self.inputs)
        _print_values(printer, "outs", self.outputs)
        _print_dimensions(printer, "permutation", self.permutation)


class BroadcastOp(ops.BroadcastOp):
    """The input repeated along `dimensions` of the result, which it lacks."""

    traits = EFFECTS

    def print(self, printer: Printer) -> None:
        """Print ` ins(%a : type) outs(%b : type) dimensions = [0]`."""
        _print_values(printer, "ins", [self.input])
        _print_values(printer, "outs", [self.init])
        _print_dimensions(printer, "dimensions", self.dimensions)


@irdl_op_definition
class ReduceOp(abstract_ops.LinalgStructuredOperation):
    """Combine the inputs along `dimensions`, which vanish, with the outputs.

    The body takes an element of each input, and of each output what was combined so far.

    Example:
    `%1 = linalg.reduce ins(%0 : tensor<4x8xf32>) outs(%i : tensor<4xf32>) dimensions = [1] (%a: f32, %b: f32) { ... }`
    """

    name = "linalg.reduce"

    inputs = var_operand_def()
    outputs = var_operand_def()
    res = var_result_def(TensorType)
    body = region_def("single_block")
    dimensions = prop_def(DenseArrayBase.constr(i64))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = EFFECTS

    def __init__(
        self, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], dimensions: Sequence[int], body: Region
    ):
        super().__init__(
            operands=[inputs, outputs],
            properties={"dimensions": DenseArrayBase.from_list(i64, dimensions)},
            regions=[body],
            result_types=[[value.type for value in outputs if as_tensor(value.type) is not None]],
        )

    def verify_(self) -> None:
        """The body gives an element of each output, besides what all structured operations fulfil."""
        super().verify_()
        _verify_yield(self)

    def _rank(self) -> int:
        return len(_shape(self.inputs[0].type))

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """The identity for inputs, and for outputs without `dimensions`."""
        rank, reduced = self._rank(), self.dimensions.get_values()
        kept = tuple(AffineDimExpr(dim) for dim in range(rank) if dim not in reduced)
        whole = AffineMapAttr(AffineMap.identity(rank))
        return ArrayAttr(
            [*(whole for _ in self.inputs), *(AffineMapAttr(AffineMap(rank, 0, kept)) for _ in self.outputs)]
        )

    def get_iterator_types(self) -> ArrayAttr[attrs.IteratorTypeAttr]:
        """A reduction for each of `dimensions`."""
        reduced = self.dimensions.get_values()
        return ArrayAttr(REDUCTION if dim in reduced else PARALLEL for dim in range(self._rank()))

    def print(self, printer: Printer) -> None:
        """Print ` ins(%a : type) outs(%b : type) dimensions = [0] (%x: f32, %y: f32) {...}`."""
        _print_values(printer, "ins", self.inputs)
        _print_values(printer, "outs", self.outputs)
        _print_dimensions(printer, "dimensions", self.dimensions)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes, and the short form of a body with one operation: ` { arith.addf } ins(...)`."""
        short: str | None = None
        position = parser.pos
        if parser.parse_optional_punctuation("{") is not None:
            short = parser.parse_identifier()
            parser.parse_punctuation("}")
        inputs, outputs = _parse_values(parser, "ins"), _parse_values(parser, "outs")
        parser.parse_keyword("dimensions")
        parser.parse_punctuation("=")
        dimensions = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        attributes = parser.parse_optional_attr_dict()
        if short is None:
            arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _argument(parser))
            body = parser.parse_region(arguments)
        else:
            combine = parser.ctx.get_optional_op(short)
            if combine is None:
                parser.raise_error(f"expected an operation that combines two elements, found '{short}'", position)
            body = Region(_one_operation(combine, [*inputs, *outputs]))
        op = cls(inputs, outputs, dimensions, body)
        op.attributes |= attributes
        return op


def _argument(parser: Parser) -> Parser.Argument:
    """An argument with its type, and its location where that is given."""
    argument = parser.parse_argument()
    argument.location = parser.parse_optional_location()
    return argument


def _one_operation(class_: type[Operation], operands: Sequence[SSAValue]) -> Block:
    """The body that combines what was combined so far with an element, by one operation."""
    block = Block(arg_types=[scalar_type(value.type) for value in operands])
    combined = class_.create(operands=[*reversed(block.args)], result_types=[block.args[-1].type])
    block.add_ops([combined, YieldOp(combined.results[0])])
    return block


def _shape(type_: Attribute) -> tuple[int, ...]:
    return cast(Any, type_).get_shape() if isinstance(type_, TensorType | MemRefType) else ()
