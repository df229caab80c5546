"""The state of the walk over the syntax tree of a function, on which all constructs of kernels are built.

What a statement or an expression becomes is registered in `STATEMENTS` and `EXPRESSIONS` by the modules that know it;
they import this module, which knows none of them.
"""

from __future__ import annotations

import ast
import builtins
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, SSAValue

from tlx_xdsl.errors import CompilationError, internal_error
from tlx_xdsl.frontend.python.source import KernelSource, construct
from tlx_xdsl.frontend.python.suggestions import did_you_mean

from .. import language
from ..language.kernel import builtin_name
from .affine import Affine
from .builder import Builder
from .values import Acquired, Buffer, Builtin, Index, Items, Namespace, Range, Static, Value

PYTHON = {
    each: Builtin(each.__name__)
    for each in (
        abs,
        bool,
        divmod,
        enumerate,
        float,
        int,
        len,
        list,
        max,
        min,
        print,
        range,
        reversed,
        slice,
        sum,
        tuple,
        zip,
    )
}
"""Python's own functions that kernels know."""


@dataclass(frozen=True, eq=False)
class Function(Value):
    """A function that the kernel defines, or a lambda, with the names that it sees."""

    node: ast.FunctionDef | ast.Lambda
    visitor: Visitor

    @property
    def name(self) -> str:
        """The function's name."""
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "<lambda>"

    def describe(self) -> str:
        """Show the name."""
        return f"the function '{self.name}'"


@dataclass
class Unit:
    """State that the functions of one kernel share while it is compiled."""

    builder: Builder
    grid: tuple[int, int]
    """Columns and rows of cores."""
    threads: list[tuple[str, Function]] = field(default_factory=list[tuple[str, Function]])
    """`compute` or `datamovement`, and the function of each thread."""
    has_wide_registers: bool = False
    """Whether an operation needs registers of 32 bits, whatever is in circular buffers."""
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    """The circular buffers that the kernel makes."""
    signposts: dict[tuple[str, str, int, int], None] = field(default_factory=dict[tuple[str, str, int, int], None])
    """Name, file, first and last line of each part of a thread that has a name, in their order."""


@dataclass
class ThreadState:
    """Blocks that a thread holds at this point of the walk."""

    kind: str
    """`compute` or `datamovement`."""
    held: dict[tuple[SSAValue, bool], list[Acquired]] = field(
        default_factory=dict[tuple[SSAValue, bool], list[Acquired]]
    )
    """Blocks of each buffer that were reserved (True) or waited for, and not given back yet, oldest first."""
    acquired: list[Acquired] = field(default_factory=list[Acquired])
    """All blocks that were reserved or waited for so far."""


class Visitor:
    """Turns the body of one function into operations."""

    def __init__(self, source: KernelSource, unit: Unit, outer: Visitor | None = None) -> None:
        self.source = source
        self.unit = unit
        self.outer = outer
        """The function around this one, whose names it sees."""
        self.thread: ThreadState | None = None
        """The thread that runs the code; None in the kernel's own body."""
        self.names: dict[str, Value] = {}
        """Local names and what they hold at this point of the walk."""
        self.gone: dict[str, str] = {}
        """Why names that were assigned somewhere do not exist here."""
        self.local: frozenset[str] = frozenset()
        """Names that the function assigns somewhere."""
        self.call_site: LocationAttr | None = None
        self.depth = 0
        """Calls of functions around this one."""
        self.entry: Block | None = None
        """The block of the IR in which the function's body began: it may return there."""
        self.is_last = True
        """Whether nothing of the function comes after the statement: a branch may return there, too."""

    @property
    def builder(self) -> Builder:
        """Return where operations go."""
        return self.unit.builder

    # --- errors and locations ----------------------------------------------------------------------------------

    def error(self, node: ast.AST, message: str, notes: tuple[str, ...] = ()) -> CompilationError:
        """The error `message` at `node`."""
        return self.source.error(node, message, notes)

    def locate(self, node: ast.AST) -> None:
        """Give the operations that follow the location of `node`."""
        self.builder.locate(self.source.location(node), self.call_site)

    def place(self, node: ast.AST) -> str:
        """Return where `node` is, for notes."""
        return str(self.source.location(node))

    # --- names -------------------------------------------------------------------------------------------------

    def lookup(self, node: ast.Name) -> Value:
        """Return what a name stands for."""
        name = node.id
        if (found := self.find(name, node)) is not None:
            return found
        known, value = self.source.lookup(name)
        if known:
            return self.wrap(value)
        if name in vars(builtins):
            return self.wrap(vars(builtins)[name])
        raise self.error(node, f"name '{name}' is not defined" + did_you_mean(name, self._visible()))

    def find(self, name: str, node: ast.AST) -> Value | None:
        """A name of this function or of one around it; None if it is none of theirs."""
        if name in self.names:
            return self.names[name]
        if name in self.gone:
            raise self.error(node, f"'{name}' has no value here: {self.gone[name]}")
        if name in self.local:
            raise self.error(node, f"'{name}' is used before it is assigned, and '{self.source.name}' assigns it")
        return None if self.outer is None else self.outer.find(name, node)

    def _visible(self) -> Iterable[str]:
        own: set[str] = set(self.names) | self.source.visible_names()
        return own if self.outer is None else own.union(self.outer._visible())

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind `target`, a name or a tuple of names, to `value`."""
        match target:
            case ast.Name(id=name):
                _hint(value, name)
                self.names[name] = value
                self.gone.pop(name, None)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack(target, targets, value)
            case ast.Subscript():
                raise self.error(target, "cannot assign to an item: a tensor is written by ttl.copy(block, t[...])")
            case _:
                raise self.error(target, f"cannot assign to {construct(target)} in a kernel")

    def _unpack(self, target: ast.expr, targets: list[ast.expr], value: Value) -> None:
        items: list[Value] = value.items if isinstance(value, Items) else []
        starred = next((at for at, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
        if starred is not None and len(items) >= len(targets) - 1:
            end = len(items) - (len(targets) - starred - 1)
            items = [*items[:starred], Items(items[starred:end], is_list=True), *items[end:]]
        if not isinstance(value, Items) or len(items) != len(targets):
            raise self.error(target, f"cannot unpack {value.describe()} into {len(targets)} names")
        for each, item in zip(targets, items, strict=True):
            self.assign(each.value if isinstance(each, ast.Starred) else each, item)

    def forget(self, names: Iterable[str], why: str) -> None:
        """Let local names have no value from here on."""
        for name in names:
            if self.names.pop(name, None) is not None:
                self.gone[name] = why

    # --- values ------------------------------------------------------------------------------------------------

    def wrap(self, value: Any) -> Value:
        """An object of Python as a value."""
        if isinstance(value, ModuleType):
            parts = value.__name__.replace(language.__name__, "ttl", 1).split(".")
            for at in (0, len(parts) - 1):
                # `ttl`, ours or that of tt-lang, or another package's; and what is in them.
                if parts[at] == "ttl":
                    return Namespace(".".join(parts[at:]))
            return Static(value)
        if (name := builtin_name(value)) is not None:
            return Builtin(name)
        if isinstance(value, tuple | list):
            items = [self.wrap(item) for item in cast(Sequence[Any], value)]
            return Items(items, isinstance(value, list))
        if type(value) is slice:
            bounds: tuple[Any, ...] = value.start, value.stop, value.step
            return Range(*(None if each is None else self.wrap(each) for each in bounds))
        if callable(value):
            if (module := getattr(value, "__module__", None)) and module.split(".")[0] == "ttl":
                return Builtin(f"ttl.{value.__name__}")
            if isinstance(value, type | type(len)) and value in PYTHON:
                return PYTHON[value]
        return Static(cast(Any, value).item() if isinstance(value, np.generic) else value)

    def as_index(self, node: ast.AST, value: Value, what: str) -> Index:
        """An integer, known at compile time or not."""
        if isinstance(value, Index):
            return value
        if isinstance(value, Static) and isinstance(value.value, int):
            return Index(Affine.of(int(value.value)))
        raise self.error(node, f"{what} must be an integer, found {value.describe()}")

    def index(self, node: ast.AST, value: Value, what: str) -> SSAValue:
        """An integer as an index of the IR."""
        return self.builder.index(self.as_index(node, value, what))

    def static_int(self, node: ast.AST, value: Value, what: str) -> int:
        """An integer that is known at compile time."""
        match value:
            case Static(value=int() as number):
                return int(number)
            case Index():
                raise self.error(node, f"{what} must be known at compile time, found an integer of the run")
            case _:
                raise self.error(node, f"{what} must be an integer, found {value.describe()}")

    def static_number(self, node: ast.AST, value: Value, what: str) -> float:
        """A number that is known at compile time and that a float of 32 bits can hold."""
        match value:
            case Static(value=int() | float() as number):
                try:
                    struct.pack("<f", number)
                except OverflowError:
                    raise self.error(node, f"{what} must fit into a float of 32 bits, found {number}") from None
                return float(number)
            case Index():
                raise self.error(node, f"{what} must be known at compile time, found an integer of the run")
            case _:
                raise self.error(node, f"{what} must be a number, found {value.describe()}")

    def in_thread(self, node: ast.AST, what: str, kind: str | None = None) -> ThreadState:
        """The thread that runs the code; an error at `node` where there is none, or not one of this kind."""
        if self.thread is None:
            decorators = f"@ttl.{kind}()" if kind else "@ttl.compute() or @ttl.datamovement()"
            raise self.error(node, f"{what} happens in a thread: move it into a function with {decorators}")
        if kind is not None and self.thread.kind != kind:
            raise self.error(node, f"{what} is for {kind} threads, found it in a {self.thread.kind} thread")
        return self.thread

    # --- statements and expressions ----------------------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt]) -> Value | None:
        """Compile statements in order; return the value of a `return` that all paths through them lead to."""
        statements, is_last = returning_branches(statements), self.is_last
        for at, statement in enumerate(statements):
            self.is_last = is_last and at == len(statements) - 1
            self.locate(statement)
            handler = STATEMENTS.get(type(statement))
            if handler is None:
                hint = " (a loop of the run is a 'for' over a range)" if isinstance(statement, ast.While) else ""
                raise self.error(statement, f"unsupported statement in a TTL kernel: {construct(statement)}{hint}")
            try:
                returned = handler(self, statement)
            except CompilationError:
                raise
            except Exception as error:
                internal = internal_error(error)
                raise self.error(statement, internal.message, internal.notes) from error
            if returned is not None:
                return returned
        self.is_last = is_last
        return None

    def expression(self, node: ast.expr) -> Value:
        """Compile an expression; operations that follow have its location."""
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            raise self.error(node, f"unsupported expression in a TTL kernel: {construct(node)}")
        return handler(self, node)


def _hint(value: Value, name: str) -> None:
    """Let the value of the IR print as `name` unless it has a name already."""
    ssa: Any = getattr(value, "ssa", None)
    if isinstance(value, Index):
        operands = value.affine.operands()
        ssa = operands[0] if value.affine == (Affine.of(operands[0]) if operands else None) else None
    if isinstance(ssa, SSAValue):
        hint(cast(SSAValue, ssa), name)


def hint(value: SSAValue, name: str) -> None:
    """Let `value` print as `name` unless it has a name already, or the name says nothing, as `_` does."""
    if value.name_hint is None and name.strip("_") and SSAValue.is_valid_name(name):
        value.name_hint = name


EXPRESSIONS: dict[type[ast.expr], Callable[[Visitor, Any], Value]] = {}
"""The value of each expression."""

STATEMENTS: dict[type[ast.stmt], Callable[[Visitor, Any], Value | None]] = {}
"""The meaning of each statement: a handler gives the value of a `return`, None if it does not return."""


# Branches that return.


def returning_branches(statements: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Statements with what follows an `if` that may return in its branches: then the `if` is the last statement."""
    for at, statement in enumerate(statements[:-1]):
        if isinstance(statement, ast.If) and _may_return(statement):
            rest = statements[at + 1 :]
            branches = [each if _returns(each) else [*each, *rest] for each in (statement.body, statement.orelse)]
            last = ast.copy_location(ast.If(statement.test, *branches), statement)
            return [*statements[:at], last]
    return statements


def _may_return(statement: ast.stmt) -> bool:
    match statement:
        case ast.Return():
            return True
        case ast.If(body=body, orelse=orelse):
            return any(_may_return(each) for each in (*body, *orelse))
        case _:
            return False


def _returns(statements: Sequence[ast.stmt]) -> bool:
    """Return whether statements surely end in a `return`."""
    match statements:
        case [*_, ast.Return()]:
            return True
        case [*_, ast.If(body=body, orelse=orelse)]:
            return _returns(body) and _returns(orelse)
        case _:
            return False


# Names that code assigns.


def assigned_names(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that statements assign, not counting those of functions and comprehensions inside of them."""
    return frozenset(name for statement in statements for name in _names(statement))


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Lambda() | ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            pass
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _names(child)


def accumulated_names(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that `name += value` is the only assignment to."""
    targets = [
        inner.target for each in statements for inner in ast.walk(each)
        if isinstance(inner, ast.AugAssign) and isinstance(inner.op, ast.Add)
    ]  # fmt: skip
    updates = {id(target) for target in targets}
    others = {
        inner.id for each in statements for inner in ast.walk(each)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and id(inner) not in updates
    }  # fmt: skip
    return frozenset(target.id for target in targets if isinstance(target, ast.Name)) - others
