"""`emitc` as the text of C++ files.

Expressions are written where they are used, if that is once; other values are constants with the names of the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import singledispatch, singledispatchmethod
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    SignednessAttr,
    StringAttr,
)
from xdsl.dialects.emitc import (
    EmitC_CallOpaqueOp,
    EmitC_LValueType,
    EmitC_OpaqueAttr,
    EmitC_OpaqueType,
    EmitC_PointerType,
    EmitC_PtrDiffT,
    EmitC_SizeT,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tlx_xdsl.text.diagnostics import error_at, source_location

from ..dialects.emitc import structure
from ..dialects.emitc.expressions import (
    BinaryOp,
    CastOp,
    CmpOp,
    ConditionalOp,
    ConstantOp,
    ExpressionOp,
    LiteralOp,
    SubscriptOp,
)

SIGNPOSTS = "ttl.signposts"
"""The attribute of a module with names of parts of its threads: each with its file, its first and its last line."""

# Values of `emitc` as C++: types, numbers, and expressions with as few parentheses as C++ needs.


class Expression(NamedTuple):
    """Text, and how tightly its outermost operator binds: the higher, the tighter."""

    text: str
    binds: int


ATOM = 100
_UNARY = 90
_PRECEDENCE = {"*": 80, "/": 80, "%": 80, "+": 70, "-": 70, "&": 40, "^": 39, "|": 38}
COMPARISON = 50
_CONDITIONAL = 10


class Operands(Protocol):
    """Gives the operands of an expression."""

    def expression(self, value: SSAValue) -> Expression:
        """A value as C++."""
        ...

    def has_name(self, value: SSAValue) -> bool:
        """Return whether a value is written by its name."""
        ...


def type_text(type_: Attribute, at: Operation | SSAValue) -> str:
    """A type as C++."""
    match type_:
        case EmitC_SizeT() | IndexType():
            return "size_t"
        case EmitC_PtrDiffT():
            return "ptrdiff_t"
        case IntegerType(width=IntAttr(data=1)):
            return "bool"
        case IntegerType(width=IntAttr(data=width), signedness=SignednessAttr(data=sign)) if width in (8, 16, 32, 64):
            return f"{'u' if sign is Signedness.UNSIGNED else ''}int{width}_t"
        case Float32Type():
            return "float"
        case Float64Type():
            return "double"
        case EmitC_OpaqueType():
            return type_.value.data
        case EmitC_PointerType():
            return f"{type_text(type_.pointee_type, at)}*"
        case EmitC_LValueType():
            return type_text(type_.value_type, at)
        case _:
            raise error_at(at, f"expected a type of emitc, found {type_}: run convert-ttkernel-to-emitc first")


def number_text(value: Attribute) -> str:
    """A number as C++."""
    match value:
        case IntegerAttr(type=IntegerType(width=IntAttr(data=1))):
            return "true" if value.value.data else "false"
        case IntegerAttr():
            return str(value.value.data)
        case FloatAttr():
            number = value.value.data
            if not np.isfinite(number):
                return '__builtin_nanf("")' if np.isnan(number) else f"{'-' * (number < 0)}__builtin_inff()"
            shown = repr(float(number)) if isinstance(value.type, Float64Type) else str(np.float32(number))
            return shown if isinstance(value.type, Float64Type) else f"{shown}f"
        case EmitC_OpaqueAttr():
            return value.value.data
        case _:
            return str(value)


def inner(expression: Expression, binds: int) -> str:
    """The text of an operand of an operator: in parentheses where that binds more tightly."""
    return f"({expression.text})" if expression.binds < binds else expression.text


@singledispatch
def expression_of(op: Operation, operands: Operands) -> Expression:
    """The value of an operation as C++."""
    raise error_at(op, f"expected an operation of emitc, found {op.name}: run convert-ttkernel-to-emitc first")


@expression_of.register
def _constant(op: ConstantOp, operands: Operands) -> Expression:
    text = number_text(op.value)
    return Expression(text, _UNARY if text.startswith("-") else ATOM)


@expression_of.register
def _literal(op: LiteralOp, operands: Operands) -> Expression:
    return Expression(op.value.data, ATOM)


@expression_of.register
def _cast(op: CastOp, operands: Operands) -> Expression:
    return Expression(f"({type_text(op.result.type, op)}){inner(operands.expression(op.source), _UNARY)}", _UNARY)


@expression_of.register
def _subscript(op: SubscriptOp, operands: Operands) -> Expression:
    array = inner(operands.expression(op.array), ATOM)
    return Expression(f"{array}[{operands.expression(op.index).text}]", ATOM)


@expression_of.register
def _binary(op: BinaryOp, operands: Operands) -> Expression:
    binds = _PRECEDENCE[op.OPERATOR]
    # Operators of bits have their operands in parentheses, for the reader.
    around = binds if binds > COMPARISON else ATOM
    right = operands.expression(op.rhs)
    # Others of one rank are read from the left; after `+` that makes no difference.
    after = around if op.OPERATOR == "+" or around == ATOM else around + 1
    return Expression(f"{inner(operands.expression(op.lhs), around)} {op.OPERATOR} {inner(right, after)}", binds)


@expression_of.register
def _comparison(op: CmpOp, operands: Operands) -> Expression:
    left, right = (inner(operands.expression(value), COMPARISON + 1) for value in (op.lhs, op.rhs))
    return Expression(f"{left} {op.predicate.data} {right}", COMPARISON)


@expression_of.register
def _conditional(op: ConditionalOp, operands: Operands) -> Expression:
    condition, yes, no = (inner(operands.expression(value), _CONDITIONAL + 1) for value in op.operands)
    return Expression(f"{condition} ? {yes} : {no}", _CONDITIONAL)


@expression_of.register
def _call(op: EmitC_CallOpaqueOp, operands: Operands) -> Expression:
    template = "" if op.template_args is None else f"<{', '.join(map(number_text, op.template_args))}>"
    if op.args is None:
        arguments = [_argument(value, operands) for value in op.call_args]
    else:
        arguments = [_argument_text(each, op, operands) for each in op.args]
    # A method of the first operand.
    on = arguments.pop(0) if op.callee.data.startswith(".") else ""
    return Expression(f"{on}{op.callee.data}{template}({', '.join(arguments)})", ATOM)


def _argument_text(argument: Attribute, op: EmitC_CallOpaqueOp, operands: Operands) -> str:
    """An argument that is the number of an operand, or itself."""
    match argument:
        case IntegerAttr(type=IndexType()):
            return _argument(op.call_args[argument.value.data], operands)
        case _:
            return number_text(argument)


def is_integer(type_: Attribute) -> bool:
    """Return whether C++ converts to and from the type without being asked."""
    return isinstance(type_, IntegerType | EmitC_SizeT | EmitC_PtrDiffT)


def _argument(value: SSAValue, operands: Operands) -> str:
    """An argument; parameters convert integers without a cast."""
    owner = value.owner
    if isinstance(owner, CastOp) and not operands.has_name(value) and is_integer(value.type):
        value = owner.source
    return operands.expression(value).text


# Names of C++ variables: those of the values where they can be, each once in a function.

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_KEYWORDS = frozenset(_WORDS.split())

_OF_THE_API = "MAIN NAMESPACE REDUCE_OP REDUCE_DIM INFINITY NULL ALWI main my_x my_y noc_index kernel_main"
"""Macros and variables."""


class Names:
    """The names of one function, whose callees keep theirs."""

    def __init__(self, callees: Iterable[str]) -> None:
        self._used = {*_KEYWORDS, *_OF_THE_API.split(), *callees}

    def new(self, hint: str | None, fallback: str) -> str:
        """A name like `hint` if that is a valid one, else like `fallback`."""
        # Two underscores are the implementation's.
        valid = hint is not None and _IDENTIFIER.fullmatch(hint) and not hint.startswith("_") and "__" not in hint
        base = hint if hint is not None and valid and hint not in _KEYWORDS else fallback
        name = base
        number = 0
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        return name


WAITS = {
    "cb_reserve_back", "cb_wait_front", "noc_async_read_barrier", "noc_async_write_barrier", "noc_semaphore_wait",
    "noc_semaphore_wait_min", ".reserve_back", ".wait_front", ".async_read_barrier", ".async_write_barrier", ".wait",
    ".wait_min",
}  # fmt: skip
"""Functions and methods in which a thread may spend time on waiting for another one or for memory."""
_BEGINS_WORK = (*WAITS, "noc_async", ".async", "tile_regs_", "tilize_block")
"""Beginnings of the names of functions that take time, or begin a part that does."""


class Signpost(NamedTuple):
    """A part of a thread that has a name, by its lines in the user's file."""

    name: str
    file: str
    first: int
    last: int

    def has(self, op: Operation) -> bool:
        """Return whether an operation comes from there."""
        place = source_location(op.location)
        return place is not None and place.filename == self.file and self.first <= place.line <= self.last


def signposts_of(module: ModuleOp) -> list[Signpost]:
    """The parts of threads that have names, as the frontend has found them, outer ones first."""
    found: list[Signpost] = []
    parts = cast("ArrayAttr[ArrayAttr[Attribute]]", module.attributes.get(SIGNPOSTS, ArrayAttr[Attribute](())))
    for each in parts.data:
        match each.data:
            case StringAttr(data=name), StringAttr(data=file), IntegerAttr() as first, IntegerAttr() as last:
                found.append(Signpost(name, file, first.value.data, last.value.data))
            case _:
                raise error_at(module, f"expected a name, a file and two lines in '{SIGNPOSTS}', found {each}")
    return found


def print_cpp(module: ModuleOp, *, lines: bool = True, profiler: str | None = None) -> dict[str, str]:
    """The C++ of the files in a module, by their names.

    With `lines`, `#line` says which line of the user's file a statement comes from. `profiler` is the header of the
    device's profiler: with it each run of a loop and each wait is a zone, whose name is its line of Python, and so is
    what a signpost names.
    """
    files = [op for op in module.body.block.ops if isinstance(op, structure.FileOp)]
    signposts = signposts_of(module) if profiler is not None else []
    return {op.id.data: cpp_text(op, lines=lines, profiler=profiler, signposts=signposts) for op in files}


def cpp_text(
    op: Operation, *, lines: bool = True, profiler: str | None = None, signposts: Sequence[Signpost] = ()
) -> str:
    """The C++ of one file, or of what there may be in one."""
    printer = _Printer(lines, profiler, signposts)
    printer.statement(op)
    return "\n".join(printer.lines) + "\n"


class _Printer:
    """Writes statements line by line."""

    def __init__(self, line_directives: bool, profiler: str | None, signposts: Sequence[Signpost]) -> None:
        self._profiler = profiler
        self._signposts = list(signposts)
        self.lines: list[str] = []
        self._line_directives = line_directives
        self._indent = ""
        self._names = Names(())
        self._written: dict[SSAValue, str] = {}
        self._place: tuple[str, int] | None = None

    def expression(self, value: SSAValue) -> Expression:
        """A value: its name, or the expression that it is."""
        if (name := self._written.get(value)) is not None:
            return Expression(name, ATOM)
        assert isinstance(value.owner, Operation), "an argument has a name"
        return expression_of(value.owner, self)

    def has_name(self, value: SSAValue) -> bool:
        """Return whether a value is written by its name."""
        return value in self._written

    @singledispatchmethod
    def statement(self, op: Operation) -> None:
        """Write a statement."""
        raise error_at(op, f"expected an operation of emitc, found {op.name}: run convert-ttkernel-to-emitc first")

    @statement.register
    def _module(self, op: ModuleOp) -> None:
        self._block(op.body.block)

    @statement.register
    def _file(self, op: structure.FileOp) -> None:
        self._place = None
        for inner in op.body.block.ops:
            self.statement(inner)
            # The first header is that of integers.
            if self._profiler and isinstance(inner, structure.IncludeOp) and inner.is_standard_include:
                self._line(f'#include "{self._profiler}"')

    @statement.register
    def _include(self, op: structure.IncludeOp) -> None:
        path = op.include.data
        self._line(f"#include <{path}>" if op.is_standard_include else f'#include "{path}"')

    @statement.register
    def _verbatim(self, op: structure.VerbatimOp) -> None:
        if op.fmt_args:
            given = iter(op.fmt_args)
            parts = re.split(r"(\{\{|\{\})", op.value.data)
            text = {"{{": lambda: "{", "{}": lambda: _argument(next(given), self)}
            self._located(op, "".join(text[part]() if part in text else part for part in parts))
            return
        for line in op.value.data.split("\n"):
            self._line(line)

    @statement.register
    def _function(self, op: structure.FuncOp) -> None:
        self._names = Names(call.callee.data for call in op.walk() if isinstance(call, EmitC_CallOpaqueOp))
        self._line(f"void {op.sym_name.data}() {{")
        self._braces(op.body.block)

    @statement.register
    def _return(self, op: structure.ReturnOp) -> None:
        pass

    @statement.register
    def _for(self, op: structure.ForOp) -> None:
        lower, step = self.expression(op.lower_bound).text, self.expression(op.step).text
        upper = inner(self.expression(op.upper_bound), COMPARISON + 1)
        variable = op.body.block.args[0]
        name = self._named(variable, "i")
        type_ = type_text(variable.type, op)
        self._located(op, f"for ({type_} {name} = {lower}; {name} < {upper}; {name} += {step}) {{")
        if zone := self._zone(op):
            self._line(f"  {zone}")
        self._braces(op.body.block)

    @statement.register
    def _if(self, op: structure.IfOp) -> None:
        self._located(op, f"if ({self.expression(op.condition).text}) {{")
        self._braces(op.then_region.block, "} else {" if op.else_region.blocks else "}")
        if op.else_region.blocks:
            self._braces(op.else_region.block)

    @statement.register
    def _variable(self, op: structure.VariableOp) -> None:
        assert isinstance(op.result.type, EmitC_LValueType)
        name = self._named(op.result, "v")
        self._located(op, f"{type_text(op.result.type, op)} {name};")

    @statement.register
    def _assign(self, op: structure.AssignOp) -> None:
        self._located(op, f"{self.expression(op.variable).text} = {self.expression(op.value).text};")

    @statement.register
    def _load(self, op: structure.LoadOp) -> None:
        source = self.expression(op.variable).text
        self._define(op, op.result, source)

    @statement.register
    def _expression(self, op: ExpressionOp) -> None:
        if isinstance(op, ConstantOp | LiteralOp) or op.result.first_use is None or _is_used_here_once(op):
            return
        self._define(op, op.result, expression_of(op, self).text)

    @statement.register
    def _call(self, op: EmitC_CallOpaqueOp) -> None:
        text = expression_of(op, self).text
        if len(op.results) == 1 and op.results[0].first_use is not None:
            self._define(op, op.results[0], text)
        elif op.callee.data in WAITS and (zone := self._zone(op)):
            self._located(op, f"{{ {zone} {text}; }}")
        else:
            self._located(op, f"{text};")

    def _zone(self, op: Operation) -> str:
        """The zone of an operation; empty without a profiler, or for one that comes from no file."""
        place = source_location(op.location)
        if self._profiler is None or place is None:
            return ""
        return f'DeviceZoneScopedN("{Path(place.filename).name}:{place.line}");'

    def _define(self, op: Operation, value: SSAValue, text: str) -> None:
        type_ = type_text(value.type, op)
        # An opaque type says itself how constant it is; before a pointer, the word is about what it points at.
        constant = "" if isinstance(value.type, EmitC_OpaqueType | EmitC_PointerType) else "const "
        self._located(op, f"{constant}{type_} {self._named(value, 'v')} = {text};")

    def _named(self, value: SSAValue, fallback: str) -> str:
        name = self._names.new(value.name_hint, fallback)
        self._written[value] = name
        return name

    def _block(self, block: Block) -> None:
        self._statements(list(block.ops))

    def _statements(self, ops: list[Operation]) -> None:
        """Write operations of a block; those of a signpost are a zone, if nothing that they define is used after it."""
        while ops:
            signpost = next((each for each in self._signposts if each.has(ops[0])), None)
            count = next((at for at, op in enumerate(ops) if signpost is None or not signpost.has(op)), len(ops))
            inside, ops = ops[: count or 1], ops[count or 1 :]
            if signpost is None or not _is_zone(inside):
                self.statement(inside[0])
                ops = [*inside[1:], *ops]
                continue
            self._line("{")
            before, known = self._indent, self._signposts
            self._indent += "  "
            self._signposts = [each for each in known if each is not signpost]
            self._line(f'DeviceZoneScopedN("{signpost.name}");')
            self._statements(inside)
            self._indent, self._signposts = before, known
            self._line("}")

    def _braces(self, block: Block, end: str = "}") -> None:
        before = self._indent
        self._indent += "  "
        self._block(block)
        self._indent = before
        self._line(end)

    def _located(self, op: Operation, text: str) -> None:
        place = source_location(op.location)
        if self._line_directives and place is not None and (place.filename, place.line) != self._place:
            escaped = place.filename.replace("\\", "\\\\").replace('"', '\\"')
            self.lines.append(f'#line {place.line} "{escaped}"')
            self._place = place.filename, place.line
        self._line(text)

    def _line(self, text: str) -> None:
        self.lines.append(self._indent + text if text else text)
        if self._place is not None:
            self._place = self._place[0], self._place[1] + 1


def _is_zone(ops: Sequence[Operation]) -> bool:
    """Return whether operations of a block do something that takes time, and define nothing that others use."""
    takes_time = any(
        (isinstance(inner, EmitC_CallOpaqueOp) and inner.callee.data.startswith(_BEGINS_WORK)) or inner.regions
        for op in ops
        for inner in op.walk()
    )
    return takes_time and all(
        isinstance(op, ConstantOp | LiteralOp) or any(each.is_ancestor(use.operation) for each in ops)
        for op in ops
        for result in op.results
        for use in result.uses
    )


def _is_used_here_once(op: ExpressionOp) -> bool:
    """Return whether there is one use, in the same block."""
    use = op.result.get_user_of_unique_use()
    return use is not None and use.parent is op.parent
