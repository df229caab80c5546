"""Walks the syntax tree of a kernel, or of a function that it calls: names and statements."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, LocationAttr, StringAttr

from tlx_xdsl.errors import CompilationError, internal_error
from tlx_xdsl.frontend import assertions, branches, expressions, functions, loops, tasks
from tlx_xdsl.frontend.builder import Builder, hint
from tlx_xdsl.frontend.carry import runtime
from tlx_xdsl.frontend.constructs import construct
from tlx_xdsl.frontend.functions import Argument, Caller, EarlyReturn, Returns, Unit
from tlx_xdsl.frontend.semantic import SemanticError
from tlx_xdsl.frontend.source import KernelSource
from tlx_xdsl.frontend.values import Aggregate, Constexpr, NewAggregate, Tensor, TupleValue, Value, parts
from tlx_xdsl.language.core import constexpr

if TYPE_CHECKING:
    from collections.abc import Iterator

_FUNCTION_NAME = re.compile(r"\Atl\.\w+: ")
"""What the message about a function of the language begins with."""


@lru_cache(maxsize=8192)
def _located(file: str, line: int, column: int, call_site: LocationAttr | None) -> LocationAttr:
    """The location of a place. Kept, since unrolled loops and copies of tasks visit the same places again."""
    location = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
    return location if call_site is None else CallSiteLoc(location, call_site)


class Visitor:
    """Turns the body of one function into operations."""

    def __init__(self, source: KernelSource, builder: Builder, unit: Unit, caller: Caller | None = None):
        self.source = source
        self.builder = builder
        self.unit = unit
        self.caller = caller
        """Who calls this function; None for the kernel."""
        self.names: dict[str, Value] = {}
        """Local names and what they hold at this point of the walk."""
        self.gone: dict[str, str] = {}
        """Why names that were assigned somewhere do not exist here."""
        self.branches = 0
        """How many `if`s with blocks of their own we are in."""
        self.returns = Returns("kernel", 0)
        self.returned = False
        """Whether every way through the statements so far has returned."""
        self._call_site: LocationAttr | None = None

    @property
    def capability(self) -> int:
        """Compute capability of the target, such as 90 for sm_90a."""
        return self.unit.capability

    @property
    def replica_ids(self) -> list[int]:
        """Replica of each task that we are in, outermost first."""
        return self.unit.replica_ids

    def inside(self, source: KernelSource, caller: Caller, *, inlined: bool = True) -> Visitor:
        """A visitor for the function `source` that is called here; an inlined one knows its place in our locations."""
        inner = Visitor(source, self.builder, self.unit, caller)
        if inlined:
            self.locate(caller.node)
            inner._call_site = self.builder.location
        return inner

    def body(self, style: str) -> AbstractContextManager[None]:
        """Compile the function's body inside the `with`; see `functions.Returns` for the style."""
        return functions.body(self, style)

    def finish(self) -> Value:
        """End the function's body, and get what it returns."""
        return functions.finish(self)

    # --- errors and places -------------------------------------------------------------------------------------

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
        """Give the operations that follow the place of `node`."""
        place = self.source.location(node)
        self.builder.location = _located(place.filename, place.line, place.column, self._call_site)

    def refuse_early_return(self, node: ast.AST) -> None:
        """A branch that returns stands in a region of an operation: an inlined function becomes a call instead."""
        if self.returns.style == "inline" and self.returns.depth == self.builder.depth:
            raise EarlyReturn
        place = next(inner for inner in ast.walk(node) if isinstance(inner, ast.Return))
        raise functions.misplaced_return(self, place)

    # --- statements --------------------------------------------------------------------------------------------

    def visit_body(self, statements: Sequence[ast.stmt]) -> bool:
        """Compile statements in order; return whether every way through them returns from the function."""
        for statement in statements:
            self.locate(statement)
            try:
                returned = self._visit_statement(statement)
            except (CompilationError, EarlyReturn):
                raise
            except Exception as error:
                told = internal_error(error)
                raise self.error(statement, told.message, told.notes) from error
            if returned:
                # What follows can't be reached.
                self.returned = True
                return True
        self.returned = False
        return False

    def visit_loop_body(self, statements: Sequence[ast.stmt]) -> None:
        """Compile the statements of a loop or a task, which never return."""
        self.visit_body(statements)

    def _visit_statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.If():
                return branches.visit_if(self, node)
            case ast.Return():
                functions.visit_return(self, node)
                return True
            case _:
                handler = _STATEMENTS.get(type(node))
                if handler is None:
                    raise self.error(node, f"unsupported statement in a kernel: {construct(node)}")
                handler(self, node)
                return False

    def visit_expression_statement(self, node: ast.Expr) -> None:
        """An expression on its own; a string is a docstring or a comment."""
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.expression(node.value)

    def visit_assign(self, node: ast.Assign) -> None:
        """`target = value`."""
        value = self.expression(node.value)
        if any(not isinstance(target, ast.Attribute) for target in node.targets):
            # A field of an aggregate takes the value as it is: it may be a constexpr.
            value = runtime(self, node.value, value)
        for target in node.targets:
            self.assign(target, value)

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
            raise self._not_assignable(target)

    def _not_assignable(self, target: ast.expr) -> CompilationError:
        what = f"cannot assign to {construct(target)} in a kernel"
        if isinstance(target, ast.Subscript):
            what += ": write to memory with tl.store, to a buffer with tlx.local_store"
        return self.error(target, what)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        items = self.items_of(value)
        starred = next((i for i, element in enumerate(target.elts) if isinstance(element, ast.Starred)), None)
        if items is not None and starred is not None and len(items) >= len(target.elts) - 1:
            behind = len(target.elts) - starred - 1
            middle = TupleValue(items[starred : len(items) - behind])
            items = (*items[:starred], middle, *items[len(items) - behind :])
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

    def visit_annotated_assign(self, node: ast.AnnAssign) -> None:
        """`name: annotation = value`."""
        if node.value is None or not isinstance(node.target, ast.Name):
            raise self.error(node, "an annotation needs a name and a value")
        value = self.expression(node.value)
        annotation = self.expression(node.annotation)
        if not (isinstance(annotation, Constexpr) and annotation.value is constexpr):
            self.assign(node.target, runtime(self, node.value, value))
            return
        if not functions.is_compile_time(value):
            raise self.error(node.value, f"'{node.target.id}' is declared constexpr, found {value.describe()}")
        if node.target.id in self.names:
            raise self.error(node, f"the constexpr '{node.target.id}' is already defined")
        self.names[node.target.id] = value

    def visit_augmented_assign(self, node: ast.AugAssign) -> None:
        """`name += value` and the like."""
        if not isinstance(node.target, ast.Name):
            raise self._not_assignable(node.target)
        current = self.name(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        value = expressions.binary(self, node, node.op, current, self.expression(node.value))
        self.assign(node.target, runtime(self, node, value))

    # --- expressions -------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Value:
        """Compile an expression."""
        return expressions.visit(self, node)

    def name(self, node: ast.Name) -> Value:
        """What a name stands for."""
        return expressions.visit_name(self, node)

    def arguments(self, node: ast.Call) -> tuple[list[Argument], dict[str, Argument]]:
        """The positional and the keyword arguments of a call."""
        return expressions.arguments(self, node)

    def semantic(self, node: ast.AST, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of `semantic` at the place of `node`; its errors are located there."""
        self.locate(node)
        try:
            return function(self.builder, *args)
        except SemanticError as error:
            raise self.error(node, str(error)) from error

    def as_condition(self, node: ast.AST, value: Value) -> Tensor:
        """`value` as a runtime int1."""
        return expressions.as_condition(self, node, value)

    def branch_condition(self, node: ast.AST, value: Value, what: str) -> Tensor:
        """`value` as the condition of a branch or a loop: a scalar int1."""
        if not isinstance(value, Constexpr | Tensor):
            raise self.error(node, f"{what} needs a scalar condition, found {value.describe()}")
        condition = self.as_condition(node, value)
        if condition.shape:
            raise self.error(node, f"{what} needs a scalar condition, found {condition.describe()}")
        return condition

    def call_jitted(
        self, node: ast.AST, source: KernelSource, positional: Sequence[Argument], keywords: dict[str, Argument]
    ) -> Value:
        """Call a jitted function at this place."""
        return functions.call_jitted(self, node, source, positional, keywords)


_STATEMENTS: dict[type[ast.stmt], Callable[[Visitor, Any], None]] = {
    ast.Assign: Visitor.visit_assign,
    ast.AnnAssign: Visitor.visit_annotated_assign,
    ast.AugAssign: Visitor.visit_augmented_assign,
    ast.Expr: Visitor.visit_expression_statement,
    ast.For: loops.visit_for,
    ast.While: loops.visit_while,
    ast.With: tasks.visit_with,
    ast.Assert: assertions.visit_assert,
    ast.Pass: lambda visitor, node: None,
}
"""What each statement that never returns becomes."""
