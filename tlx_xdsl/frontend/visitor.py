"""Walks a kernel's syntax tree: statements and expressions."""

from __future__ import annotations

import ast
import builtins
import difflib
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, cast

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend import control_flow, semantic, tasks
from tlx_xdsl.frontend.attributes import attribute_of, call_method, subscript_of
from tlx_xdsl.frontend.builder import Builder, hint
from tlx_xdsl.frontend.calls import HANDLERS, bind
from tlx_xdsl.frontend.semantic import SemanticError
from tlx_xdsl.frontend.source import KernelSource
from tlx_xdsl.frontend.values import NONE, Constexpr, Method, Tensor, TupleValue, Value
from tlx_xdsl.language.core import builtin_name, constexpr, dtype, int1, pointer_type

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_COMPILE_TIME_FUNCTIONS: tuple[Any, ...] = (abs, bool, float, int, len, max, min, round, str, sum, tuple)
"""Python's functions that a kernel may call on compile-time values."""


class Visitor:
    """Turns the body of one kernel into operations."""

    def __init__(self, source: KernelSource, builder: Builder):
        self.source = source
        self.builder = builder
        self.names: dict[str, Value] = {}
        """Local names and what they hold at this point of the walk."""
        self.replica_ids: list[int] = []
        """Replica of each task that we are in, outermost first."""
        self._filename = StringAttr(source.filename)

    # --- errors and places -------------------------------------------------------------------------------------

    def error(self, node: ast.AST, message: str, notes: tuple[str, ...] = ()) -> CompilationError:
        """The error `message` at `node`."""
        return self.source.error(node, message, notes)

    def locate(self, node: ast.AST) -> None:
        """Give the operations that follow the place of `node`."""
        place = self.source.location(node)
        self.builder.location = FileLineColLoc(self._filename, IntAttr(place.line), IntAttr(place.column))

    # --- statements --------------------------------------------------------------------------------------------

    def visit_body(self, statements: Sequence[ast.stmt]) -> None:
        """Compile statements in order."""
        for statement in statements:
            self.locate(statement)
            self._visit_statement(statement)

    def _visit_statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                self._assign(node)
            case ast.AnnAssign():
                self._annotated_assign(node)
            case ast.AugAssign():
                self._augmented_assign(node)
            case ast.Expr():
                # A string on its own is a docstring or a comment.
                if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
                    self.expression(node.value)
            case ast.For():
                control_flow.visit_for(self, node)
            case ast.If():
                control_flow.visit_if(self, node)
            case ast.With():
                tasks.visit_with(self, node)
            case ast.Assert():
                self._static_assert(node)
            case ast.Pass():
                pass
            case ast.Return():
                raise self.error(node, "a kernel may return only as its last statement, and returns nothing")
            case _:
                raise self.error(node, f"unsupported statement in a kernel: {_construct(node)}")

    def _assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        for target in node.targets:
            self.assign(target, value)

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind `target`, a name or a tuple of names, to `value`."""
        if isinstance(target, ast.Name):
            known = self.names.get(target.id)
            if isinstance(known, Constexpr) and isinstance(known.value, constexpr):
                raise self.error(target, f"'{target.id}' is a constexpr and can't be assigned again")
            if isinstance(value, Tensor) or not isinstance(value, Constexpr | TupleValue | Method):
                hint(value.ssa, target.id)
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            items = self.items_of(value)
            if items is None or len(items) != len(target.elts):
                raise self.error(target, f"cannot unpack {value.describe()} into {len(target.elts)} names")
            for element, item in zip(target.elts, items, strict=True):
                self.assign(element, item)
        else:
            raise self.error(target, f"cannot assign to {_construct(target)} in a kernel")

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

    def _annotated_assign(self, node: ast.AnnAssign) -> None:
        if node.value is None or not isinstance(node.target, ast.Name):
            raise self.error(node, "an annotation needs a name and a value")
        value = self.expression(node.value)
        annotation = self.expression(node.annotation)
        if isinstance(annotation, Constexpr) and annotation.value is constexpr:
            if not isinstance(value, Constexpr | TupleValue):
                raise self.error(node.value, f"'{node.target.id}' is declared constexpr, found {value.describe()}")
            if node.target.id in self.names:
                raise self.error(node, f"the constexpr '{node.target.id}' is already defined")
        self.assign(node.target, value)

    def _augmented_assign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, f"cannot assign to {_construct(node.target)} in a kernel")
        current = self._name(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        self.assign(node.target, self._binary(node, node.op, current, self.expression(node.value)))

    def _static_assert(self, node: ast.Assert) -> None:
        test = self.expression(node.test)
        if not isinstance(test, Constexpr):
            raise self.error(node.test, f"an assertion must be known at compile time, found {test.describe()}")
        if not test.value:
            message = self.expression(node.msg) if node.msg is not None else Constexpr("assertion failed")
            raise self.error(node, str(message.value) if isinstance(message, Constexpr) else "assertion failed")

    # --- expressions -------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Value:
        """Compile an expression."""
        match node:
            case ast.Constant():
                return Constexpr(node.value)
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return attribute_of(self, node, self.expression(node.value))
            case ast.Subscript():
                return subscript_of(self, node, self.expression(node.value))
            case ast.Call():
                return self._call(node)
            case ast.BinOp():
                return self._binary(node, node.op, self.expression(node.left), self.expression(node.right))
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp():
                return self._bool_op(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.IfExp():
                return self._if_expression(node)
            case ast.Tuple() | ast.List():
                return self._tuple(node)
            case _:
                raise self.error(node, f"unsupported expression in a kernel: {_construct(node)}")

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.names:
            return self.names[node.id]
        found, value = self.source.lookup(node.id)
        if found:
            return self._global(node, value)
        if hasattr(builtins, node.id):
            return Constexpr(getattr(builtins, node.id))
        known = set(self.names) | self.source.visible_names()
        close = difflib.get_close_matches(node.id, known, n=1)
        raise self.error(node, f"name '{node.id}' is not defined" + (f", did you mean '{close[0]}'?" if close else ""))

    def _global(self, node: ast.Name, value: Any) -> Value:
        if isinstance(value, constexpr):
            return Constexpr(value.value)
        if isinstance(value, ModuleType | dtype | pointer_type) or callable(value):
            return Constexpr(value)
        if self.source.is_constexpr_global(node.id):
            return Constexpr(value)
        raise self.error(
            node,
            f"the global '{node.id}' is not a constexpr: declare it as `{node.id}: tl.constexpr = ...` "
            "or pass it as an argument",
        )

    def _tuple(self, node: ast.Tuple | ast.List) -> Value:
        items = tuple(self.expression(item) for item in node.elts)
        if all(isinstance(item, Constexpr) for item in items):
            return Constexpr(tuple(item.value for item in items if isinstance(item, Constexpr)))
        return TupleValue(items)

    def _binary(self, node: ast.AST, op: ast.operator, lhs: Value, rhs: Value) -> Value:
        symbol = _BINARY.get(type(op))
        if symbol is None:
            raise self.error(node, f"unsupported operator in a kernel: {_construct(op)}")
        return self.semantic(node, semantic.binary, symbol, lhs, rhs)

    def semantic(self, node: ast.AST, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of `semantic` at the place of `node`; its errors are located there."""
        self.locate(node)
        try:
            return function(self.builder, *args)
        except SemanticError as error:
            raise self.error(node, str(error)) from error

    def _compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            raise self.error(node, "chained comparisons are ambiguous for blocks: join two comparisons with 'and'")
        lhs, rhs = self.expression(node.left), self.expression(node.comparators[0])
        op = node.ops[0]
        if isinstance(op, ast.Is | ast.IsNot):
            return Constexpr(self._is_same(node, lhs, rhs) == isinstance(op, ast.Is))
        symbol = _COMPARE.get(type(op))
        if symbol is None:
            raise self.error(node, f"unsupported comparison in a kernel: {_construct(op)}")
        return self.semantic(node, semantic.compare, symbol, lhs, rhs)

    def _is_same(self, node: ast.Compare, lhs: Value, rhs: Value) -> bool:
        if not (isinstance(rhs, Constexpr) and rhs.value is None) and not isinstance(lhs, Constexpr):
            raise self.error(node, "'is' compares compile-time values, or anything with None")
        return isinstance(lhs, Constexpr) and isinstance(rhs, Constexpr) and lhs.value is rhs.value

    def _bool_op(self, node: ast.BoolOp) -> Value:
        result = self.expression(node.values[0])
        for operand in node.values[1:]:
            if isinstance(result, Constexpr):
                # As in Python, the right side is not looked at when the left side decides.
                if bool(result.value) == isinstance(node.op, ast.Or):
                    return result
                result = self.expression(operand)
                continue
            right = self.expression(operand)
            symbol = "&" if isinstance(node.op, ast.And) else "|"
            left, right = self.as_condition(node, result), self.as_condition(operand, right)
            result = self.semantic(node, semantic.binary, symbol, left, right)
        return result

    def as_condition(self, node: ast.AST, value: Value) -> Tensor:
        """`value` as a runtime int1."""
        tensor: Tensor = self.semantic(node, semantic.to_tensor, value)
        return self.semantic(node, semantic.cast, tensor, int1)

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.expression(node.operand)
        match node.op:
            case ast.Not():
                if isinstance(value, Constexpr):
                    return Constexpr(not value.value)
                return self.semantic(node, semantic.binary, "^", self.as_condition(node, value), Constexpr(True))
            case ast.USub():
                return self.semantic(node, semantic.negate, value)
            case ast.UAdd():
                return value
            case _:
                if isinstance(value, Constexpr):
                    return Constexpr(~value.value)
                return self.semantic(node, semantic.binary, "^", value, Constexpr(-1))

    def _if_expression(self, node: ast.IfExp) -> Value:
        test = self.expression(node.test)
        if isinstance(test, Constexpr):
            return self.expression(node.body if test.value else node.orelse)
        lhs, rhs = self.expression(node.body), self.expression(node.orelse)
        return self.semantic(node, semantic.where, test, lhs, rhs)

    # --- calls -------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        callee = self.expression(node.func)
        positional = [pair for argument in node.args for pair in self._positional(argument)]
        keywords: dict[str, tuple[ast.expr, Value]] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error(keyword.value, "a kernel can't spread a dictionary into arguments")
            keywords[keyword.arg] = (keyword.value, self.expression(keyword.value))
        self.locate(node)
        if isinstance(callee, Method):
            return call_method(self, node, callee, positional, keywords)
        if not isinstance(callee, Constexpr):
            raise self.error(node.func, f"{callee.describe()} can't be called")
        return self._call_object(node, callee.value, positional, keywords)

    def _positional(self, argument: ast.expr) -> list[tuple[ast.expr, Value]]:
        if not isinstance(argument, ast.Starred):
            return [(argument, self.expression(argument))]
        items = self.items_of(self.expression(argument.value))
        if items is None:
            raise self.error(argument, "only a tuple can be spread into arguments")
        return [(argument, item) for item in items]

    def _call_object(
        self,
        node: ast.Call,
        function: Any,
        positional: list[tuple[ast.expr, Value]],
        keywords: dict[str, tuple[ast.expr, Value]],
    ) -> Value:
        values = [value for _, value in (*positional, *keywords.values())]
        name = builtin_name(function)
        if name is None and function in (min, max) and not all(isinstance(value, Constexpr) for value in values):
            return self._python_minmax(node, function, positional)
        if name is not None:
            call = bind(self, node, name, inspect.signature(function), positional, keywords)
            handler = HANDLERS.get(name)
            if handler is None:
                raise self.error(node, f"{name} can't stand here")
            try:
                return handler(call) or NONE
            except SemanticError as error:
                raise self.error(node, f"{name}: {error}") from error
        if function in _COMPILE_TIME_FUNCTIONS and all(isinstance(value, Constexpr) for value in values):
            return self._call_python(node, function, positional, keywords)
        shown = getattr(function, "__name__", repr(function))
        raise self.error(node, f"'{shown}' can't be called in a kernel")

    def _python_minmax(self, node: ast.Call, function: Any, positional: list[tuple[ast.expr, Value]]) -> Value:
        if len(positional) < 2:
            raise self.error(node, f"{function.__name__} of runtime values takes at least two arguments")
        result = positional[0][1]
        for _, value in positional[1:]:
            result = self.semantic(node, semantic.binary, function.__name__, result, value)
        return result

    def _call_python(
        self,
        node: ast.Call,
        function: Any,
        positional: list[tuple[ast.expr, Value]],
        keywords: dict[str, tuple[ast.expr, Value]],
    ) -> Value:
        try:
            return Constexpr(
                function(
                    *(value.value for _, value in positional if isinstance(value, Constexpr)),
                    **{name: value.value for name, (_, value) in keywords.items() if isinstance(value, Constexpr)},
                )
            )
        except (TypeError, ValueError, ArithmeticError) as error:
            raise self.error(node, f"{function.__name__}: {error}") from error


def _construct(node: ast.AST) -> str:
    """A construct of Python in words."""
    words = {
        "While": "a 'while' loop",
        "FunctionDef": "a nested function",
        "ClassDef": "a class",
        "Try": "'try'",
        "Raise": "'raise'",
        "Break": "'break'",
        "Continue": "'continue'",
        "Import": "'import'",
        "ImportFrom": "'import'",
        "Global": "'global'",
        "Nonlocal": "'nonlocal'",
        "Delete": "'del'",
        "Lambda": "a lambda",
        "ListComp": "a list comprehension",
        "Dict": "a dictionary",
        "JoinedStr": "an f-string",
        "MatMult": "'@' (use tlx.async_dot)",
        "Subscript": "an item",
        "Attribute": "an attribute",
        "In": "'in'",
        "NotIn": "'not in'",
    }
    name = type(node).__name__
    return words.get(name, f"'{name}'")
