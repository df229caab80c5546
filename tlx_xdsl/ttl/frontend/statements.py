"""Statements of a kernel: the simple ones here, loops in a module of their own."""

from __future__ import annotations

import ast

from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Block, Region

from tlx_xdsl.frontend.python.source import construct

from .blocks import accumulate, is_reserved, promote_stores, release, store
from .calls import Call, lowering, static
from .carried import added
from .loops import visit_for
from .operators import binary, truth
from .values import NONE, Acquired, Builtin, Condition, Signpost, Static, Sum, Thread, Value
from .visitor import STATEMENTS, Function, Visitor

_THREADS = {"ttl.compute": "compute", "ttl.datamovement": "datamovement"}


def _expression(visitor: Visitor, node: ast.Expr) -> None:
    """An expression on its own; a string is a docstring or a comment."""
    if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
        visitor.expression(node.value)


def _assign(visitor: Visitor, node: ast.Assign) -> None:
    """`target = value`; `sum = sum + value` adds to the block of a sum that a loop carries."""
    match node.targets:
        case [ast.Name(id=name)] if isinstance(block := visitor.names.get(name), Sum):
            summand = added(node, name)
            assert summand is not None, "the loop has looked at all of its statements"
            store(visitor, node, block, visitor.expression(summand), summand, accumulate=True)
            return
        case _:
            pass
    value = visitor.expression(node.value)
    for target in node.targets:
        visitor.assign(target, value)


def _annotated_assign(visitor: Visitor, node: ast.AnnAssign) -> None:
    """`name: annotation = value`; the annotation says nothing."""
    if node.value is not None:
        visitor.assign(node.target, visitor.expression(node.value))


def _augmented_assign(visitor: Visitor, node: ast.AugAssign) -> None:
    """`name += value` and the like; a reserved block takes what is added."""
    if not isinstance(node.target, ast.Name):
        raise visitor.error(node.target, f"cannot assign to {construct(node.target)} in a kernel")
    current = visitor.lookup(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
    value = visitor.expression(node.value)
    visitor.locate(node)
    if isinstance(current, Acquired) and is_reserved(current):
        accumulate(visitor, node, current, value)
    else:
        visitor.assign(node.target, binary(visitor, node, node.op, current, value))


def _assert(visitor: Visitor, node: ast.Assert) -> None:
    """`assert condition, message` of what is known at compile time."""
    test = truth(visitor, node.test, visitor.expression(node.test))
    if not isinstance(test, Static):
        raise visitor.error(node, "an 'assert' is of what is known at compile time, found a condition of the run")
    if not test.value:
        message = visitor.expression(node.msg) if node.msg is not None else Static("assertion failed")
        raise visitor.error(node, str(message.value) if isinstance(message, Static) else message.describe())


def _function(visitor: Visitor, node: ast.FunctionDef) -> None:
    """A function: a thread if it is decorated as one."""
    function = Function(node, visitor)
    kinds = [_thread_kind(visitor, decorator) for decorator in node.decorator_list]
    if not kinds:
        visitor.names[node.name] = function
        return
    if len(kinds) > 1:
        raise visitor.error(
            node.decorator_list[1], f"'{node.name}' has one decorator that makes it a thread, found two"
        )
    if visitor.outer is not None or visitor.thread is not None:
        raise visitor.error(
            node, f"the thread '{node.name}' is defined in the kernel's own body, found it in a function"
        )
    _check_thread(visitor, node, kinds[0])
    visitor.unit.threads.append((kinds[0], function))
    visitor.names[node.name] = Thread(node.name)


def _thread_kind(visitor: Visitor, decorator: ast.expr) -> str:
    if isinstance(decorator, ast.Call) and (decorator.args or decorator.keywords):
        raise visitor.error(decorator, "the decorator of a thread takes no arguments")
    named = visitor.expression(decorator.func if isinstance(decorator, ast.Call) else decorator)
    if isinstance(named, Builtin) and named.name in _THREADS:
        return _THREADS[named.name]
    raise visitor.error(
        decorator,
        f"a function in a kernel is decorated with @ttl.compute() or @ttl.datamovement(), found {named.describe()}",
    )


def _check_thread(visitor: Visitor, node: ast.FunctionDef, kind: str) -> None:
    arguments = node.args
    first = next(iter([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]), None)
    first = first or arguments.vararg or arguments.kwarg
    if first is not None:
        raise visitor.error(
            first, f"the thread '{node.name}' takes no parameters, found '{first.arg}': it sees the kernel's names"
        )
    others = [each for each, _ in visitor.unit.threads if each == kind]
    most = 1 if kind == "compute" else 2
    if len(others) == most:
        number = "one compute thread" if most == 1 else "two datamovement threads"
        raise visitor.error(node, f"a core has {number}, '{node.name}' is one more: move its work into another thread")


def _return(visitor: Visitor, node: ast.Return) -> Value:
    """`return`, where nothing follows that is not in another branch; in a thread and a kernel it is the end."""
    is_branch = visitor.entry is not None and visitor.builder.block is not visitor.entry
    if is_branch and not visitor.is_last:
        raise visitor.error(node, "'return' can't stand in a loop of the run, or before the end of a 'with'")
    if is_branch and node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        raise visitor.error(node, "a branch of the run can't return a value: assign it before the 'if'")
    return NONE if node.value is None else visitor.expression(node.value)


@lowering("ttl.signpost")
def _signpost(call: Call) -> Value:
    call.visitor.in_thread(call.node, "a signpost")
    name = static(call, "name")
    if not isinstance(name, str) or not name.replace("_", "").replace("-", "").isalnum():
        raise call.error("name", f"'name' is a word of letters, digits, '_' and '-', found {name!r}")
    return Signpost(name)


def _with(visitor: Visitor, node: ast.With) -> Value | None:
    """`with cb.wait() as a, out.reserve() as o:` blocks are given back at the end, the last one first."""
    blocks: list[tuple[ast.expr, Acquired]] = []
    for item in node.items:
        value = visitor.expression(item.context_expr)
        if isinstance(value, Signpost):
            if item.optional_vars is not None:
                raise visitor.error(item.optional_vars, f"{value.describe()} is no value: leave out the 'as'")
            first, lines = visitor.source.location(node), (node.end_lineno or node.lineno) - node.lineno
            visitor.unit.signposts[value.name, first.filename, first.line, first.line + lines] = None
            continue
        if not isinstance(value, Acquired):
            raise visitor.error(
                item.context_expr,
                f"'with' takes blocks of circular buffers, 'cb.wait()' or 'cb.reserve()', found {value.describe()}",
            )
        if item.optional_vars is not None:
            visitor.assign(item.optional_vars, value)
        blocks.append((item.context_expr, value))
    returned = visitor.body(node.body)
    for place, block in reversed(blocks):
        if block.state.released is not None:
            verb = "pushed" if block.reserved else "popped"
            note = f"the 'with' gives it back at its end: {visitor.place(place)}"
            raise visitor.error(block.state.released, f"this block is {verb} twice: leave it to the 'with'", (note,))
        release(visitor, place, block)
    return returned


def _if(visitor: Visitor, node: ast.If) -> Value | None:
    """`if`: one branch where the condition is known at compile time, else both under `scf.if`."""
    condition = truth(visitor, node.test, visitor.expression(node.test))
    if isinstance(condition, Static):
        return visitor.body(node.body if condition.value else node.orelse)
    assert isinstance(condition, Condition)
    if visitor.thread is None:
        raise visitor.error(node.test, "what a kernel makes is the same on all cores: put this 'if' into a thread")
    visitor.locate(node)
    blocks = [Block(), Block()]
    regions = [Region(blocks[0]), Region([blocks[1]] if node.orelse else [])]
    visitor.builder.insert(IfOp(condition.ssa, [], regions[0], regions[1]))
    before = dict(visitor.names)
    gone = dict(visitor.gone)
    is_last = visitor.is_last
    after: list[dict[str, Value]] = []
    for block, statements in zip(blocks, (node.body, node.orelse), strict=True):
        visitor.names, visitor.gone, visitor.is_last = dict(before), dict(gone), is_last
        if statements:
            with visitor.builder.into(block):
                visitor.body(statements)
                visitor.locate(node)
                visitor.builder.insert(YieldOp())
        after.append(visitor.names)
    if node.orelse:
        promote_stores(visitor.thread, blocks, visitor.builder.block)
    _join(visitor, after[0], after[1])
    return None


def _join(visitor: Visitor, first: dict[str, Value], second: dict[str, Value]) -> None:
    """Keep the names that hold the same after both branches."""
    visitor.names = {}
    for name in {**first, **second}:
        a, b = first.get(name), second.get(name)
        if a is not None and b is not None and _are_same(a, b):
            visitor.names[name] = a
        else:
            visitor.gone[name] = "the branches of an 'if' of the run leave it with different values"


def _are_same(a: Value, b: Value) -> bool:
    """Return whether two values are known to be equal."""
    if isinstance(a, Static) and isinstance(b, Static) and not (a.is_plain and b.is_plain):
        return a.value is b.value
    return a is b or a == b


STATEMENTS.update(
    {
        ast.Assign: _assign,
        ast.AnnAssign: _annotated_assign,
        ast.AugAssign: _augmented_assign,
        ast.Expr: _expression,
        ast.For: visit_for,
        ast.With: _with,
        ast.Assert: _assert,
        ast.If: _if,
        ast.FunctionDef: _function,
        ast.Return: _return,
        ast.Pass: lambda visitor, node: None,
    }
)
