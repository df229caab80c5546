"""The state of the walk over the syntax tree of one function, on which all constructs of kernels are built.

What a statement or an expression becomes is registered in `STATEMENTS` and `EXPRESSIONS` by the modules that know it;
they import this module, which knows none of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import Block, Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import CompilationError, internal_error
from tlx_xdsl.text.diagnostics import report_warning

from . import semantic
from .builder import Builder, hint
from .python.source import KernelSource, construct
from .values import Aggregate, Constexpr, NewAggregate, Tensor, TupleValue, Value, parts

Argument: TypeAlias = tuple[ast.AST, Value]
"""An argument of a call, and its node."""


class EarlyReturn(Exception):
    """A function returns from a branch where the caller's code can't branch: the call must stay a call."""


@dataclass
class Compiled:
    """A function that has become a `tt.func` of its own."""

    symbol: str
    result: Value
    """The value that it returns; its IR values are those of the function's `tt.return`."""


@dataclass
class Unit:
    """State that the functions of one module share while it is compiled."""

    capability: int = 90
    """Compute capability of the target, such as 90 for sm_90a."""
    debug: bool = False
    """True if `tl.device_assert` has an effect."""
    num_warps: int = 4
    """Warps that run what is compiled now: those of the program, or of the task that we are in."""
    num_ctas: int = 1
    """CTAs of a cluster that work on one tensor."""
    clustered: bool = False
    """True if a cluster has several CTAs."""
    sums_bfloat16: bool = True
    """True if bf16 is summed in bf16, as from Triton 3.9 on."""
    functions: list[tt.FuncOp] = field(default_factory=list[tt.FuncOp])
    compiled: dict[Hashable, Compiled] = field(default_factory=dict[Hashable, Compiled])
    symmetric: TupleValue | None = None
    """The first symmetric tensor among the arguments of the function that is compiled now."""
    replica_ids: list[int] = field(default_factory=list[int])
    has_tasks: bool = False
    """Whether tasks have begun so far."""
    """Replica of each task that we are in, outermost first."""
    kernel_warps: int = field(init=False)
    """Warps of the program, those of tasks beside it not counted."""

    def __post_init__(self) -> None:
        self.kernel_warps = self.num_warps


@dataclass(frozen=True)
class CallSite:
    """A call with its arguments, and the function that it is in."""

    visitor: Visitor
    node: ast.AST
    positional: Sequence[Argument] = ()
    keywords: Mapping[str, Argument] = field(default_factory=dict[str, Argument])

    @property
    def callee(self) -> ast.AST:
        """The node of what is called."""
        return self.node.func if isinstance(self.node, ast.Call) else self.node

    def error(self, message: str) -> CompilationError:
        """The error `message` at the call."""
        return self.visitor.error(self.node, message)

    def on(self, receiver: Value) -> CallSite:
        """The call of a method, with `receiver` as its first argument."""
        return replace(self, positional=[(self.callee, receiver), *self.positional])


@dataclass(frozen=True)
class Return:
    """A `return` of a body, or the end of it (`node` is the last statement then)."""

    node: ast.AST
    value: Value
    block: Block
    """The block that it ends."""
    location: LocationAttr


@dataclass
class Returns:
    """The returns of the body that is being compiled."""

    style: str
    """`kernel`: nothing, by `tt.return`. `function`: values, by `tt.return`. `inline`: into the caller's code."""
    depth: int
    """The builder's depth where the body starts: a return deeper than that is in a region."""
    made: list[Return] = field(default_factory=list[Return])
    """The returns so far, whose blocks have no terminators yet: what all of them return is known at the end."""
    exit: Block | None = None
    """The block in which the returns of an inlined function meet when there are several."""


_FUNCTION_NAME = re.compile(r"\Atl\.\w+: ")
"""Beginning of a message about a function of the language."""


@lru_cache(maxsize=8192)
def _located(file: str, line: int, column: int, call_site: LocationAttr | None) -> LocationAttr:
    """The location attribute of a source location. Kept, since unrolled loops and copies of tasks come again."""
    location = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
    return location if call_site is None else CallSiteLoc(location, call_site)


class Visitor:
    """Turns the body of one function into operations."""

    def __init__(self, source: KernelSource, builder: Builder, unit: Unit, caller: CallSite | None = None):
        self.source = source
        self.builder = builder
        self.unit = unit
        self.caller = caller
        """The call of this function; None for the kernel."""
        self.names: dict[str, Value] = {}
        """Local names and what they hold at this point of the walk."""
        self.given: dict[str, Hashable] | None = None
        """The type of each argument, or its value where that is known at compile time; None for the kernel."""
        self.gone: dict[str, str] = {}
        """Why names that were assigned somewhere do not exist here."""
        self.declared: frozenset[str] = frozenset()
        """Names that `name: tl.constexpr` has declared, and that were not assigned since."""
        self.unused: ast.AST | None = None
        """The expression that is a statement of its own: nothing uses its value."""
        self.branches = 0
        """Number of `if`s with blocks of their own around the insertion point."""
        self.returns = Returns("kernel", 0)
        self.returned = False
        """True when every path through the statements so far has returned."""
        self._call_site: LocationAttr | None = None

    @property
    def capability(self) -> int:
        """Compute capability of the target, such as 90 for sm_90a."""
        return self.unit.capability

    @property
    def replica_ids(self) -> list[int]:
        """Replica of each task that we are in, outermost first."""
        return self.unit.replica_ids

    def inside(self, source: KernelSource, caller: CallSite, *, inlined: bool = True) -> Visitor:
        """A visitor for the function `source` that is called here; locations of an inlined one have the call site."""
        inner = Visitor(source, self.builder, self.unit, caller)
        if inlined:
            self.locate(caller.node)
            inner._call_site = self.builder.location
        return inner

    # --- errors and locations ----------------------------------------------------------------------------------

    def error(self, node: ast.AST, message: str, notes: tuple[str, ...] = ()) -> CompilationError:
        """The error `message` at `node`, with the calls that led there; of the language's insides only the call."""
        if self.source.is_library and self.caller is not None:
            # The user knows the function that they called, not those that it calls.
            message = f"tl.{self.source.name}: {_FUNCTION_NAME.sub('', message)}"
            return self.caller.visitor.error(self.caller.node, message, notes)
        return self.source.error(node, message, (*notes, *self._call_stack()))

    def _call_stack(self) -> Iterator[str]:
        at: Visitor = self
        while at.caller is not None:
            place = at.caller.visitor.source.location(at.caller.node)
            yield f"'{at.source.name}' is called here: {place}"
            at = at.caller.visitor

    def locate(self, node: ast.AST) -> None:
        """Give the operations that follow the location of `node`."""
        place = self.source.location(node)
        self.builder.location = _located(place.filename, place.line, place.column, self._call_site)

    def warn(self, value: Tensor, message: str) -> None:
        """Warn about the operation that computes `value`, where its code is the user's."""
        op = value.ssa.owner
        if isinstance(op, Operation) and not self.source.is_library:
            report_warning(op, message)

    # --- statements --------------------------------------------------------------------------------------------

    def visit_body(self, statements: Sequence[ast.stmt]) -> bool:
        """Compile statements in order; return whether every path through them returns from the function."""
        for statement in statements:
            self.locate(statement)
            handler = STATEMENTS.get(type(statement))
            if handler is None:
                raise self.error(statement, f"unsupported statement in a kernel: {construct(statement)}")
            try:
                returned = handler(self, statement)
            except (CompilationError, EarlyReturn):
                raise
            except Exception as error:
                internal = internal_error(error)
                raise self.error(statement, internal.message, internal.notes) from error
            if returned:
                # What follows can't be reached.
                self.returned = True
                return True
        self.returned = False
        return False

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind `target`, a name or a tuple of names, to `value`."""
        if isinstance(target, ast.Name):
            held = parts(value)
            if len(held) == 1:
                hint(held[0], target.id)
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value)
        elif isinstance(target, ast.Attribute):
            self._assign_attribute(target, value)
        else:
            raise self.not_assignable(target)

    def not_assignable(self, target: ast.expr) -> CompilationError:
        """The error that nothing can be assigned to `target`."""
        what = f"cannot assign to {construct(target)} in a kernel"
        if isinstance(target, ast.Subscript):
            what += ": write to memory with tl.store, to a buffer with tlx.local_store"
        return self.error(target, what)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        items = self.items_of(value)
        starred = next((i for i, element in enumerate(target.elts) if isinstance(element, ast.Starred)), None)
        if items is not None and starred is not None and len(items) >= len(target.elts) - 1:
            after = len(target.elts) - starred - 1
            middle = TupleValue(items[starred : len(items) - after])
            items = (*items[:starred], middle, *items[len(items) - after :])
        if items is None or len(items) != len(target.elts):
            raise self.error(target, f"cannot unpack {value.describe()} into {len(target.elts)} names")
        for element, item in zip(target.elts, items, strict=True):
            self.assign(element.value if isinstance(element, ast.Starred) else element, item)

    def _assign_attribute(self, target: ast.Attribute, value: Value) -> None:
        owner = self.expression(target.value)
        if not isinstance(owner, NewAggregate):
            way = ": make a new one" if isinstance(owner, Aggregate | TupleValue) else ""
            raise self.error(target, f"the attributes of {owner.describe()} can't be assigned{way}")
        if target.attr not in owner.names:
            raise self.error(target, f"'{owner.cls.__name__}' declares no field '{target.attr}'")
        owner.items[target.attr] = value

    @staticmethod
    def items_of(value: Value) -> tuple[Value, ...] | None:
        """The items of a tuple, or None for anything else."""
        if isinstance(value, TupleValue):
            return value.items
        if isinstance(value, Constexpr):
            items: Any = value.value
            if isinstance(items, tuple | list):
                return tuple(Constexpr(item) for item in cast(Sequence[Any], items))
        return None

    # --- expressions -------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Value:
        """Compile an expression."""
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            raise self.error(node, f"unsupported expression in a kernel: {construct(node)}")
        return handler(self, node)

    def semantic(self, node: ast.AST, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of `semantic` at the location of `node`; its errors are located there."""
        self.locate(node)
        try:
            return function(self.builder, *args)
        except semantic.SemanticError as error:
            raise self.error(node, str(error)) from error

    def as_condition(self, node: ast.AST, value: Value) -> Tensor:
        """`value` as a runtime int1."""
        return self.semantic(node, semantic.as_condition, value)

    def branch_condition(self, node: ast.AST, value: Value, what: str) -> Tensor:
        """`value` as the condition of a branch or a loop: a scalar int1."""
        if not isinstance(value, Constexpr | Tensor):
            raise self.error(node, f"{what} needs a scalar condition, found {value.describe()}")
        condition = self.as_condition(node, value)
        if condition.shape:
            raise self.error(node, f"{what} needs a scalar condition, found {condition.describe()}")
        return condition


EXPRESSIONS: dict[type[ast.expr], Callable[[Visitor, Any], Value]] = {}
"""The value of each expression."""

STATEMENTS: dict[type[ast.stmt], Callable[[Visitor, Any], bool | None]] = {}
"""The meaning of each statement: a handler says whether every path through the statement returns from the function."""
