"""MLIR's `llvm` with what Triton's text contains and xDSL 0.75 lacks: assumptions, annotations of loops, and all of
inline assembly.
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects import llvm as upstream
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_result_def,
    param_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from .base import ORDERED, DeclaredEffects, EnumNumber, Keyword, keyword_directive


class AsmDialect(Keyword):
    """The syntax of inline assembly."""

    ATT = 0
    INTEL = 1

    @property
    def attr(self) -> IntegerAttr:
        """The attribute that holds this case, of 64 bits."""
        return IntegerAttr(self.value, i64)


_NO_TAIL_CALL = upstream.TailCallKindAttr(upstream.TailCallKind.NONE)


@irdl_op_definition
class AssumeOp(IRDLOperation):
    """Promise that `cond` holds: `llvm.intr.assume %0 : i1`.

    LLVM's operand bundles, which Triton never attaches, are not supported.
    """

    name = "llvm.intr.assume"
    EFFECTS: ClassVar = ORDERED

    cond = operand_def(i1)
    op_bundle_sizes = prop_def(DenseArrayBase.constr(i32))

    # The promise holds here, not elsewhere.
    traits = traits_def(DeclaredEffects())

    def __init__(self, cond: SSAValue):
        super().__init__(operands=[cond], properties={"op_bundle_sizes": DenseArrayBase.from_list(i32, [])})

    def print(self, printer: Printer) -> None:
        """Print ` %0 : i1`."""
        printer.print_string(" ")
        printer.print_operand(self.cond)
        printer.print_string(" : ")
        printer.print_attribute(self.cond.type)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        op = cls(parser.resolve_operand(operand, parser.parse_type()))
        op.attributes |= parser.parse_optional_attr_dict()
        return op


@irdl_op_definition
class InlineAsmOp(IRDLOperation):
    """Instructions as text; `operand_attrs` has a dictionary for each operand, or none at all.

    Example: `%0 = llvm.inline_asm asm_dialect = att operand_attrs = [] "mov.u32 $0, %clock;", "=r" : () -> i32`
    """

    name = "llvm.inline_asm"

    inputs = var_operand_def()
    res = opt_result_def()
    asm_dialect = opt_prop_def(EnumNumber(AsmDialect))
    operand_attrs = opt_prop_def(ArrayAttr)
    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    has_side_effects = opt_prop_def(UnitAttr)
    is_align_stack = opt_prop_def(UnitAttr)
    tail_call_kind = prop_def(upstream.TailCallKindAttr, default_value=_NO_TAIL_CALL)

    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = (keyword_directive(AsmDialect),)
    assembly_format = (
        "(`has_side_effects` $has_side_effects^)? (`is_align_stack` $is_align_stack^)? "
        "(`asm_dialect` `=` custom<AsmDialect>($asm_dialect)^)? (`operand_attrs` `=` $operand_attrs^)? "
        "$asm_string `,` $constraints ($inputs^)? attr-dict `:` functional-type(operands, results)"
    )


class _LoopAttr(ParametrizedAttribute):
    """Base of the annotations of loops: `<key = value, ...>`, in the order of `KEYS`."""

    values: DictionaryAttr = param_def()

    KEYS: ClassVar[tuple[str, ...]]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<key = value, ...>`, in any order."""
        found: dict[str, Attribute] = {}

        def parse_entry() -> None:
            position = parser.pos
            key = parser.parse_identifier(context_msg=" (loop annotation)")
            if key not in cls.KEYS:
                parser.raise_error(f"'{cls.name}' has no parameter '{key}'", position)
            parser.parse_punctuation("=")
            found[key] = parser.parse_attribute()

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry)
        return [DictionaryAttr(found)]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        shown = [(key, self.values.data[key]) for key in self.KEYS if key in self.values.data]

        def print_entry(entry: tuple[str, Attribute]) -> None:
            printer.print_string(f"{entry[0]} = ")
            printer.print_attribute(entry[1])

        with printer.in_angle_brackets():
            printer.print_list(shown, print_entry)


@irdl_attr_definition
class LoopLICMAttr(_LoopAttr):
    """`#llvm.loop_licm<disable = true>`: whether loop-invariant code is moved."""

    name = "llvm.loop_licm"
    KEYS: ClassVar[tuple[str, ...]] = ("disable", "versioningDisable")


@irdl_attr_definition
class LoopAnnotationAttr(_LoopAttr):
    """`#llvm.loop_annotation<licm = #loop_licm>`: what LLVM may do with a loop."""

    name = "llvm.loop_annotation"
    KEYS: ClassVar[tuple[str, ...]] = (
        "disableNonforced", "vectorize", "interleave", "unroll", "unrollAndJam", "licm", "distribute", "pipeline",
        "peeled", "unswitch", "mustProgress", "isVectorized", "startLoc", "endLoc", "parallelAccesses",
    )  # fmt: skip


def loop_annotation_without_licm() -> LoopAnnotationAttr:
    """The annotation that keeps LLVM from moving loop-invariant code out of a loop."""
    yes = BoolAttr.from_bool(True)
    licm = LoopLICMAttr.new([DictionaryAttr({"disable": yes, "versioningDisable": yes})])
    return LoopAnnotationAttr.new([DictionaryAttr({"licm": licm})])


LLVM = Dialect(
    "llvm",
    [*(each for each in upstream.LLVM.operations if each.name != InlineAsmOp.name), AssumeOp, InlineAsmOp],
    [*upstream.LLVM.attributes, LoopLICMAttr, LoopAnnotationAttr],
)
