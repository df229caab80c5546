"""Loops: `for` over ranges and `while`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import builtin, scf
from xdsl.ir import Attribute, Block, Region, SSAValue

from tlx_xdsl.dialects.llvm import loop_annotation_without_licm
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.language.core import builtin_name, dtype, pointer_type

from . import cluster_loops, semantic
from .builder import hint
from .calls import Call, bind
from .carry import (
    TypeMismatch,
    advice,
    all_parts,
    assigned_names,
    assignments,
    bind_names,
    carried,
    forget,
    runtime,
)
from .expressions import call_site
from .types import ir_type
from .values import Constexpr, Tensor, Value
from .visitor import Visitor


def _located_block(visitor: Visitor, types: Sequence[Attribute]) -> Block:
    """A block with arguments of these types at the current location."""
    block = Block(arg_types=types)
    for argument in block.args:
        argument.location = visitor.builder.location
    return block


def _types(values: Sequence[SSAValue]) -> list[Attribute]:
    return [value.type for value in values]


def _carried_names(visitor: Visitor, node: ast.For | ast.While, counter: str | None = None) -> list[str]:
    """Names that the loop's body assigns and that exist before the loop, in the order of their definition."""
    assigned = set(assigned_names(node.body)) - {counter}
    return [name for name in visitor.names if name in assigned]


def _next(visitor: Visitor, node: ast.For | ast.While, names: Sequence[str], initial: Sequence[Value]) -> list[Value]:
    """Values of the loop-carried names after the body, in the types that they came with."""
    if (gone := next((name for name in names if name not in visitor.names), None)) is not None:
        why = visitor.gone[gone]
        raise visitor.error(_last_store(node, gone), f"'{gone}' has no value for the next turn of the loop: {why}")
    pairs = zip(names, initial, strict=True)
    return [carried(visitor, visitor.names[name], value, _mismatch(visitor, node, name)) for name, value in pairs]


def _mismatch(visitor: Visitor, node: ast.For | ast.While, name: str) -> TypeMismatch:
    """The error that the loop's body changes the type of `name`, at the last assignment there."""

    def error(before: Value, after: Value) -> CompilationError:
        return visitor.error(
            _last_store(node, name),
            f"'{name}' is {before.describe()} before the loop in line {visitor.source.location(node).line} and "
            f"{after.describe()} after its body: it must keep its type{advice(before, after)}",
        )

    return error


def _last_store(node: ast.For | ast.While, name: str) -> ast.Name:
    """The last place in the loop's body that assigns `name`."""
    stores = [at for at in assignments(node.body) if at.id == name]
    return max(stores, key=lambda at: (at.lineno, at.col_offset))


def _leave(visitor: Visitor, node: ast.For | ast.While, outer: dict[str, Value]) -> None:
    """Forget names after a loop: it may not have run, so what its body introduced does not exist."""
    new = [name for name in visitor.names if name not in outer]
    visitor.names = outer
    forget(visitor, new, f"it is assigned inside the loop in line {node.lineno} only")


# --- for ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Range:
    """The range that a `for` runs over."""

    start: Value
    stop: Value
    step: Value
    unrolled: bool
    attributes: dict[str, Attribute]
    of_cluster: bool = False
    """True for the work of all CTAs of the cluster together."""


def visit_for(visitor: Visitor, node: ast.For) -> None:
    """A `for` over `range`, `tl.range` or `tl.static_range`."""
    if node.orelse:
        raise visitor.error(node.orelse[0], "a loop in a kernel can't have an 'else'")
    if not isinstance(node.target, ast.Name):
        raise visitor.error(node.target, "a loop in a kernel counts with one name")
    run = _range(visitor, node)
    if run is None:
        found = visitor.expression(node.iter)
        way = ": index it in a tl.static_range(len(...))" if visitor.items_of(found) is not None else ""
        raise visitor.error(
            node.iter,
            "a loop in a kernel runs over range(...), tl.range(...) or tl.static_range(...), "
            f"found {found.describe()}{way}",
        )
    if run.unrolled:
        _unroll(visitor, node, node.target.id, run)
    else:
        _emit_for(visitor, node, node.target.id, run)


def _range(visitor: Visitor, node: ast.For) -> _Range | None:
    """The range of a loop; None when the iterable is none."""
    if not isinstance(node.iter, ast.Call):
        return None
    callee = visitor.expression(node.iter.func)
    function: Any = callee.value if isinstance(callee, Constexpr) else None
    name = "range" if function is range else builtin_name(function)
    if name not in ("range", "tl.range", "tl.static_range"):
        return None
    site = call_site(visitor, node.iter)
    if function is range:
        if site.keywords or not 1 <= len(site.positional) <= 3:
            raise site.error(f"range takes 1 to 3 positional arguments, found {len(site.positional)}")
        values = [value for _, value in site.positional]
        call = None
    else:
        call = bind(site, name, inspect.signature(function))
        values = [call.args[parameter] for parameter in ("arg1", "arg2", "step") if call.given(parameter)]
        if not call.given("arg1"):
            call.expected("arg1", "an integer")
        if call.given("step") and not call.given("arg2"):
            values.insert(0, Constexpr(0))
    start, stop, step = {
        1: lambda: (Constexpr(0), values[0], Constexpr(1)),
        2: lambda: (values[0], values[1], Constexpr(1)),
        3: lambda: (values[0], values[1], values[2]),
    }[len(values)]()
    if name != "tl.range" or call is None:
        return _Range(start, stop, step, name == "tl.static_range", {})
    return _Range(start, stop, step, False, _options(call), bool(call.python("multi_cta", "a constexpr bool")))


def _options(call: Call) -> dict[str, Attribute]:
    """The options of `tl.range` as the attributes that Triton's passes look for."""
    attributes: dict[str, Attribute] = {}
    for option in ("num_stages", "loop_unroll_factor"):
        if call.given(option):
            attributes[f"tt.{option}"] = builtin.IntegerAttr(call.integer(option, minimum=0), builtin.i32)
    for option in ("disallow_acc_multi_buffer", "flatten", "warp_specialize"):
        if call.python(option, "a constexpr bool"):
            attributes[f"tt.{option}"] = builtin.UnitAttr()
    return attributes | _licm_option(call)


def _licm_option(call: Call) -> dict[str, Attribute]:
    if call.python("disable_licm", "a constexpr bool"):
        return {"llvm.loop_annotation": loop_annotation_without_licm()}
    return {}


_MOST_TURNS = 2**14
"""Most repetitions of a body: more of them is a mistake, and would take minutes to compile."""


def _unroll(visitor: Visitor, node: ast.For, target: str, run: _Range) -> None:
    numbers: list[int] = []
    for value in (run.start, run.stop, run.step):
        if not isinstance(value, Constexpr) or not isinstance(value.value, int):
            raise visitor.error(node.iter, f"tl.static_range takes constexpr integers, found {value.describe()}")
        numbers.append(value.value)
    if not numbers[2]:
        raise visitor.error(node.iter, "the step of a range can't be 0")
    turns = range(*numbers)
    if turns[_MOST_TURNS:]:
        raise visitor.error(
            node.iter, f"tl.static_range repeats the body at most {_MOST_TURNS} times, found {turns}: use tl.range"
        )
    declared = [
        statement.target.id
        for statement in ast.walk(node)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]
    for index in turns:
        # Each turn declares its constexprs anew.
        for name in declared:
            visitor.names.pop(name, None)
        visitor.names[target] = Constexpr(index)
        visitor.visit_body(node.body)


def _emit_for(visitor: Visitor, node: ast.For, target: str, run: _Range) -> None:
    builder = visitor.builder
    location = builder.location
    start, stop, step, backwards = _bounds(visitor, node, run)
    outer = dict(visitor.names)
    names = _carried_names(visitor, node, target)
    initial = [runtime(visitor, node, outer[name]) for name in names]
    values = all_parts(initial)
    counter = start.dtype
    builder.location = location
    block = _located_block(visitor, [ir_type(counter), *_types(values)])
    hint(block.args[0], target)
    bind_names(visitor, names, initial, block.args[1:])
    with builder.at_end_of(block):
        position: Value = Tensor(block.args[0], counter)
        if backwards:
            # scf.for counts upwards only: from `stop` + 1 to `start`, read from the other end.
            position = semantic.binary(builder, "+", semantic.binary(builder, "-", stop, position), start)
        visitor.names[target] = position
        visitor.visit_body(node.body)
        builder.location = location
        builder.insert(scf.YieldOp(*all_parts(_next(visitor, node, names, initial))))
    # The counter has no value when the loop never ran.
    outer.pop(target, None)
    _leave(visitor, node, outer)
    visitor.gone[target] = f"it counts the loop in line {node.lineno}, which may never run"
    builder.location = location
    region = Region(block)
    divided = run.of_cluster and cluster_loops.stores(visitor, node, region.walk())
    if divided and names:
        raise visitor.error(
            node.iter, f"a loop of all CTAs of the cluster (multi_cta) that stores can't carry '{names[0]}'"
        )
    if divided:
        cluster_loops.barrier(builder)
        start, stop = cluster_loops.share(builder, start, stop, step)
    loop = scf.ForOp(start.ssa, stop.ssa, step.ssa, values, region)
    loop.attributes.update(run.attributes)
    builder.insert(loop)
    if divided:
        cluster_loops.barrier(builder)
    bind_names(visitor, names, initial, loop.res)


def _bounds(visitor: Visitor, node: ast.For, run: _Range) -> tuple[Tensor, Tensor, Tensor, bool]:
    """First value, limit and step of a loop in their common type, and whether it counts downwards."""
    start, stop, step = run.start, run.stop, run.step
    backwards = isinstance(step, Constexpr) and isinstance(step.value, int) and step.value < 0
    if isinstance(step, Constexpr):
        if isinstance(step.value, bool) or not isinstance(step.value, int) or not step.value:
            raise visitor.error(node.iter, f"the step of a loop must be an integer other than 0, found {step.value!r}")
        if backwards:
            start, stop, step = stop, start, Constexpr(-step.value)
    bounds = [_bound(visitor, node, value) for value in (start, stop, step)]
    common = bounds[0].dtype
    for bound in bounds[1:]:
        assert isinstance(common, dtype) and isinstance(bound.dtype, dtype)
        common = semantic.promoted(common, bound.dtype)
    first, limit, stride = (visitor.semantic(node.iter, semantic.cast, bound, common) for bound in bounds)
    return first, limit, stride, backwards


def _bound(visitor: Visitor, node: ast.For, value: Value) -> Tensor:
    tensor: Tensor = visitor.semantic(node.iter, semantic.to_tensor, value)
    if tensor.shape or isinstance(tensor.dtype, pointer_type) or not tensor.dtype.is_int():
        raise visitor.error(node.iter, f"a range takes scalar integers, found {tensor.describe()}")
    return tensor


# --- while ----------------------------------------------------------------------------------------------------------


def visit_while(visitor: Visitor, node: ast.While) -> None:
    """A `while` loop becomes `scf.while`."""
    if node.orelse:
        raise visitor.error(node.orelse[0], "a loop in a kernel can't have an 'else'")
    builder = visitor.builder
    location = builder.location
    outer = dict(visitor.names)
    names = _carried_names(visitor, node)
    initial = [runtime(visitor, node, outer[name]) for name in names]
    values = all_parts(initial)
    before, after = _located_block(visitor, _types(values)), _located_block(visitor, _types(values))
    with builder.at_end_of(before):
        bind_names(visitor, names, initial, before.args)
        test, attributes = _loop_test(visitor, node.test)
        if isinstance(test, Constexpr) and not test.value:
            # `while False`: nothing happens, and nothing of the loop may stay.
            visitor.names = outer
            return
        condition = visitor.branch_condition(node.test, test, "a loop")
        builder.location = location
        builder.insert(scf.ConditionOp(condition.ssa, *before.args))
    with builder.at_end_of(after):
        bind_names(visitor, names, initial, after.args)
        visitor.visit_body(node.body)
        builder.location = location
        builder.insert(scf.YieldOp(*all_parts(_next(visitor, node, names, initial))))
    _leave(visitor, node, outer)
    builder.location = location
    loop = WhileOp(values, _types(values), Region(before), Region(after))
    loop.attributes.update(attributes)
    builder.insert(loop)
    bind_names(visitor, names, initial, loop.results)


def _loop_test(visitor: Visitor, node: ast.expr) -> tuple[Value, dict[str, Attribute]]:
    """The condition of a `while`, and the attributes that `tl.condition` gives its loop."""
    if isinstance(node, ast.Call):
        callee = visitor.expression(node.func)
        function: Any = callee.value if isinstance(callee, Constexpr) else None
        if builtin_name(function) == "tl.condition":
            call = bind(call_site(visitor, node), "tl.condition", inspect.signature(function))
            return call.args["arg1"], _licm_option(call)
    return visitor.expression(node), {}
