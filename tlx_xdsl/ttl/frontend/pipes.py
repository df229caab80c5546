"""Pipes and semaphores."""

from __future__ import annotations

import ast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, Region, SSAValue

from ..dialects import ttl
from ..language import buffers
from .affine import Affine
from .calls import Call, lowering, method
from .functions import call_inline
from .grid import static_core, static_range
from .operators import compare
from .values import NONE, Condition, Index, Items, Pipe, PipeNet, Semaphore, Static, Value
from .visitor import Function, Visitor


@lowering("ttl.Pipe")
def _pipe(call: Call) -> Value:
    visitor = call.visitor
    if call.given("dst") == call.given("dst_range"):
        raise call.error(None, "a pipe ends at 'dst', a core (x, y), or at 'dst_range', found both or neither")
    src = static_core(visitor, call.at("src"), call["src"], "'src' of a pipe")
    name = "dst" if call.given("dst") else "dst_range"
    first, last = static_range(visitor, call.at(name), call[name], f"'{name}' of a pipe")
    with visitor.builder.outermost():
        made = visitor.builder.insert(ttl.CreatePipeOp(src, first, last)).result
    return Pipe(made, src, first, last)


@lowering("ttl.PipeNet")
def _net(call: Call) -> Value:
    given = call["pipes"]
    items = given.items if isinstance(given, Items) else []
    found = [each for each in items if isinstance(each, Pipe)]
    if not found or len(found) != len(items):
        raise call.error("pipes", f"a net is of a list of pipes, found {given.describe()}")
    return PipeNet(tuple(found))


@method(PipeNet, buffers.PipeNet, "if_src", "if_dst")
def _if_net(net: PipeNet, call: Call) -> Value:
    for pipe in net.pipes:
        _if_pipe(pipe, call)
    return NONE


@method(Pipe, buffers.Pipe, "if_src", "if_dst")
def _if_pipe(pipe: Pipe, call: Call) -> Value:
    visitor = call.visitor
    visitor.in_thread(call.node, f"'{call.name}' of a pipe", "datamovement")
    fn = call["fn"]
    if not isinstance(fn, Function):
        raise call.error("fn", f"'fn' is a function of the kernel that takes a pipe, found {fn.describe()}")
    body = Block()
    op = (ttl.IfSrcOp if call.name == "if_src" else ttl.IfDstOp)(pipe.ssa, Region(body))
    visitor.locate(call.node)
    visitor.builder.insert(op)
    with visitor.builder.into(body):
        takes_pipe = bool([*fn.node.args.posonlyargs, *fn.node.args.args])
        call_inline(visitor, call.node, fn, [(call.at("fn"), pipe)] if takes_pipe else [], {})
    return NONE


@method(PipeNet, buffers.PipeNet, "is_src", "is_dst", "is_active")
def _is_in(net: PipeNet, call: Call) -> Value:
    cores: set[ttl.Place] = set()
    for pipe in net.pipes:
        cores |= {pipe.src} if call.name != "is_dst" else set()
        cores |= {*ttl.rectangle(pipe.first, pipe.last)} if call.name != "is_src" else set()
    columns, rows = call.visitor.unit.grid
    if cores.issuperset(ttl.rectangle((0, 0), (columns - 1, rows - 1))):
        return Static(True)
    core = [Index(Affine.of(each)) for each in call.visitor.builder.insert(ttl.CoreOp(2)).coordinates]
    found: Value = Static(False)
    for first, last in _rectangles(cores):
        inside: Value = Static(True)
        for own, low, high, size in zip(core, first, last, (columns, rows), strict=True):
            # A bound that every core of the grid meets needs no comparison.
            bounds = [(ast.GtE(), low)] * (low > 0) + [(ast.LtE(), high)] * (high < size - 1)
            for op, bound in bounds if low < high or size == 1 else [(ast.Eq(), low)]:
                inside = _both(call, arith.AndIOp, inside, compare(call.visitor, call.node, op, own, Static(bound)))
        found = _both(call, arith.OrIOp, found, inside)
    return found


def _both(call: Call, op: type[arith.AndIOp | arith.OrIOp], left: Value, right: Value) -> Value:
    """Two conditions as one; the first one may be known, to be what makes no difference."""
    if not (isinstance(left, Condition) and isinstance(right, Condition)):
        return right
    return Condition(call.visitor.builder.insert(op(left.ssa, right.ssa)).result)


def _rectangles(cores: set[ttl.Place]) -> list[tuple[ttl.Place, ttl.Place]]:
    """Rectangles that cover cores and no others, by their corners."""
    found: list[tuple[ttl.Place, ttl.Place]] = []
    left = set(cores)
    while left:
        y, x = min((y, x) for x, y in left)
        end = x
        while (end + 1, y) in left:
            end += 1
        last = y
        while left.issuperset(ttl.rectangle((x, last + 1), (end, last + 1))):
            last += 1
        left -= {*ttl.rectangle((x, y), (end, last))}
        found.append(((x, y), (end, last)))
    return found


# --- semaphores -----------------------------------------------------------------------------------------------------


@lowering("ttl.Semaphore")
def _semaphore(call: Call) -> Value:
    visitor = call.visitor
    if visitor.thread is not None:
        raise call.error(None, "semaphores are shared by the threads: make them in the kernel's own body")
    initial = visitor.static_int(call.at("initial"), call["initial"], "'initial'")
    return Semaphore(visitor.builder.insert(ttl.CreateSemaphoreOp(initial)).result)


@method(Semaphore, buffers.Semaphore, "get_remote")
def _remote(semaphore: Semaphore, call: Call) -> Value:
    _check_own(semaphore, call)
    core = call["core"]
    if not isinstance(core, Items) or len(core.items) != 2:
        raise call.error("core", f"'core' is (x, y), found {core.describe()}")
    visitor, at = call.visitor, call.at("core")
    if all(isinstance(each, Static) for each in core.items):
        static_core(visitor, at, core, "'core' of a semaphore")
    for each in core.items:
        visitor.as_index(at, each, "a coordinate of a core")
    return Semaphore(semaphore.ssa, tuple(core.items))


@method(Semaphore, buffers.Semaphore, "get_remote_multicast")
def _remote_multicast(semaphore: Semaphore, call: Call) -> Value:
    _check_own(semaphore, call)
    columns, rows = call.visitor.unit.grid
    whole = (0, 0), (columns - 1, rows - 1)
    corners = whole
    if call.given("core_range"):
        corners = static_range(call.visitor, call.at("core_range"), call["core_range"], "the range of a semaphore")
    loopback = corners == whole
    if call.given("loopback"):
        given = call["loopback"]
        if not isinstance(given, Static) or not isinstance(given.value, bool):
            raise call.error("loopback", f"'loopback' is True or False, found {given.describe()}")
        loopback = given.value
    return Semaphore(semaphore.ssa, tuple(Static(each) for corner in corners for each in corner), loopback)


def _check_own(semaphore: Semaphore, call: Call) -> None:
    if semaphore.coordinates:
        raise call.error(None, f"{semaphore.describe()} has no '{call.name}': call it on the semaphore itself")


def _operands(semaphore: Semaphore, call: Call, kind: str) -> tuple[SSAValue, tuple[SSAValue, ...]]:
    """The value, and the coordinates."""
    visitor = call.visitor
    visitor.in_thread(call.node, f"'{call.name}' of a semaphore", "datamovement")
    if kind == "wait":
        _check_own(semaphore, call)
    value = _count(visitor, call.at("value"), call["value"])
    coordinates = tuple(visitor.index(call.node, each, "a coordinate") for each in semaphore.coordinates)
    visitor.locate(call.node)
    return value, coordinates


def _count(visitor: Visitor, node: ast.AST, value: Value) -> SSAValue:
    """The value of a semaphore, 32 bits."""
    index = visitor.as_index(node, value, "the value of a semaphore")
    if index.affine.known is not None:
        if index.affine.known < 0:
            raise visitor.error(node, f"the value of a semaphore is not negative, found {index.affine.known}")
        return visitor.builder.constant_i32(index.affine.known)
    return visitor.builder.insert(arith.IndexCastOp(visitor.builder.index(index), i32)).result


@method(Semaphore, buffers.Semaphore, "wait_eq")
def _wait_eq(semaphore: Semaphore, call: Call) -> Value:
    value, _ = _operands(semaphore, call, "wait")
    call.visitor.builder.insert(ttl.SemaphoreWaitEqOp(semaphore.ssa, value))
    return NONE


@method(Semaphore, buffers.Semaphore, "wait_ge", "wait_min")
def _wait_min(semaphore: Semaphore, call: Call) -> Value:
    value, _ = _operands(semaphore, call, "wait")
    call.visitor.builder.insert(ttl.SemaphoreWaitMinOp(semaphore.ssa, value))
    return NONE


@method(Semaphore, buffers.Semaphore, "set")
def _set(semaphore: Semaphore, call: Call) -> Value:
    value, coordinates = _operands(semaphore, call, "set")
    op = ttl.SemaphoreSetOp(semaphore.ssa, value, coordinates, loopback=semaphore.loopback)
    call.visitor.builder.insert(op)
    return NONE


@method(Semaphore, buffers.Semaphore, "inc")
def _inc(semaphore: Semaphore, call: Call) -> Value:
    if len(semaphore.coordinates) > 2:
        raise call.error(None, "the semaphores of a range of cores can be set, not increased: increase each one's")
    value, coordinates = _operands(semaphore, call, "inc")
    call.visitor.builder.insert(ttl.SemaphoreIncOp(semaphore.ssa, value, coordinates))
    return NONE
