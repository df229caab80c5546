"""Loops, branches, tasks, calls, and the regions that combine elements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, SymbolRefAttr
from xdsl.dialects.cf import ConditionalBranchOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects.ttg.warp_specialize import WarpSpecializeOp
from tlx_xdsl.transforms.warp_specialize.tasks_of import copies_of

from .function import Function, assignment, given, handles, last_use, may_inline, parameters, prop, returned
from .names import ALWAYS, Scope
from .reductions import plain_reduction
from .types import NotExpressible, Text, call, tupled

# --- passing values on ------------------------------------------------------------------------------------------------


def assign(fn: Function, names: Sequence[str], values: Sequence[SSAValue]) -> None:
    """Let each name stand for its value; all at once where one of the values is under a name that changes."""
    pairs = [(name, fn.text(value)) for name, value in zip(names, values, strict=True)]
    pairs = [(name, text) for name, text in pairs if name != str(text)]
    together = any(
        re.search(rf"\b{name}\b", str(text)) for i, (name, _) in enumerate(pairs) for _, text in pairs[i + 1 :]
    )
    if together:
        fn.write(f"{', '.join(name for name, _ in pairs)} = {', '.join(str(text) for _, text in pairs)}")
        return
    for name, text in pairs:
        fn.write(assignment(name, text))


def _made_in(value: SSAValue, block: Block) -> bool:
    """Say whether `value` gets a name where an operation of `block` makes it."""
    op = value.owner
    return isinstance(op, Operation) and op.parent is block and not may_inline(op) and op.name != "arith.constant"


def body(fn: Function, block: Block) -> None:
    """Write the operations of a block without its terminator."""
    _name_initial_values(fn, block)
    ops = list(block.ops)
    fn.operations(ops[:-1])


def _name_initial_values(fn: Function, block: Block) -> None:
    """Let what a loop starts with have the name under which the loop carries it, when it is used for nothing else."""
    if fn.scope.block is not block:
        return
    chains: dict[SSAValue, list[SSAValue]] = {}
    for op in block.ops:
        if op.name not in ("scf.for", "scf.while"):
            continue
        values = op.operands[3:] if op.name == "scf.for" else op.operands
        for value, result in zip(values, op.results, strict=True):
            if value.has_one_use() and (value in chains or _made_in(value, block)):
                chain = chains.pop(value, [value])
                chains[result] = [*chain, result]
    for chain in chains.values():
        # A loop's result may start the next loop.
        start, end = fn.interval(chain[0])[0], fn.interval(chain[-1])[1]
        if any(value in fn.wanted for value in chain):
            _name_what_is_passed_on(fn, block, chain, start)
            continue
        hints = [argument.name_hint for argument in _arguments_of(chain[1:])]
        hint = next((each for each in (*hints, *(value.name_hint for value in chain)) if each), None)
        fn.wanted.update(dict.fromkeys(chain, fn.new_name(hint, (start, end))))


def _name_what_is_passed_on(fn: Function, block: Block, chain: list[SSAValue], start: float) -> None:
    """Let a chain whose end has a name already, under which the block passes it on, have that name from its start."""
    *before, last = chain
    name = fn.wanted.get(last)
    assert isinstance(last.owner, Operation)
    if name is None or any(value in fn.wanted for value in before):
        return
    interval = (start, fn.scope.number(last.owner))
    if _is_over(fn.scope.before.get(name), chain[0], block) and fn.scope.is_free(name, interval):
        fn.scope.take(name, interval)
        fn.wanted.update(dict.fromkeys(before, name))


def _pass_on(
    fn: Function, block: Block, names: Sequence[str], values: Sequence[SSAValue], before: Sequence[SSAValue | None]
) -> None:
    """Prepare a block that passes on these values under these names, which hold `before` when it begins."""
    for name, old, value in zip(names, before, values, strict=True):
        if old is not None:
            fn.scope.before[name] = old
            fn.scope.take(name, (-1, fn.end(old, -1)))
        fn.scope.carried.add(name)
        start: float = len(block.ops) - 1
        # The name may get its next value where that is made, unless the old one is still needed.
        is_free = value not in fn.wanted and list(_yielded(block)).count(value) == 1
        if is_free and _made_in(value, block) and _is_over(old, value, block):
            fn.wanted[value] = name
            start = fn.scope.number(cast(Operation, value.owner))
        fn.scope.take(name, (start, math.inf))


def _arguments_of(results: Iterable[SSAValue]) -> list[SSAValue]:
    """The values inside of loops that become these results of theirs."""
    found: list[SSAValue] = []
    for result in results:
        loop = result.owner
        assert isinstance(loop, Operation)
        found.append(loop.regions[0].block.args[loop.results.index(result) - len(loop.results)])
    return found


def _yielded(block: Block) -> Sequence[SSAValue]:
    terminator = block.last_op
    assert terminator is not None
    return terminator.operands


# --- branches ---------------------------------------------------------------------------------------------------------


@handles("scf.if")
def _if(fn: Function, op: Any) -> None:
    condition = fn.text(op.operands[0])
    used = [i for i, result in enumerate(op.results) if result.first_use is not None]
    names: dict[int, str] = {}
    before: dict[int, SSAValue] = {}
    for index in used:
        old = _replaced(fn, op, index, names.values())
        if old is not None:
            before[index] = old
            fn.wanted[op.results[index]] = str(fn.text(old))
        names[index] = fn.name(op.results[index])
    with fn.block(f"if {condition}:"):
        assigned = _branch(fn, op, 0, names, before)
    other = op.regions[1]
    if not other.blocks:
        return
    lines = len(fn.lines)
    with fn.block("else:"):
        _branch(fn, op, 1, names, before, assigned)
    if fn.lines[lines + 1 :] == [f"{fn.indent}    pass"]:
        del fn.lines[lines:]


def _replaced(fn: Function, op: Operation, index: int, chosen: Iterable[str]) -> SSAValue | None:
    """The value before an `if` whose name a result can have: one that a side passes on and nothing needs afterwards."""
    block, result = fn.scope.block, op.results[index]
    if block is None or result in fn.wanted:
        return None
    for region in op.regions:
        values = list(_yielded(region.block)) if region.blocks else []
        old = values[index] if values else None
        name = None if old is None else fn.held(old)
        if old is None or name is None or name in chosen or values.count(old) > 1 or last_use(old, block) is not op:
            continue
        later = (fn.scope.number(op) + 0.5, fn.end(result, fn.scope.number(op)))
        if fn.scope.is_free(name, later):
            fn.scope.take(name, later)
            return old
    return None


def _branch(
    fn: Function,
    op: Operation,
    side: int,
    names: dict[int, str],
    before: dict[int, SSAValue],
    taken: Iterable[str] = (),
) -> set[str]:
    """Write a side of an `if`; returns the names that it assigns."""
    block = op.regions[side].block
    with fn.within(fn.scope.inside(block, op, taken=taken)) as scope:
        passed, values = list(names.values()), [_yielded(block)[index] for index in names]
        _pass_on(fn, block, passed, values, [before.get(index) for index in names])
        body(fn, block)
        assign(fn, passed, values)
    return scope.names - set(names.values())


def _is_over(old: SSAValue | None, value: SSAValue, block: Block) -> bool:
    """Say whether nothing needs a value any more when an operation of `block` makes another one."""
    made = cast(Operation, value.owner)
    last = None if old is None else last_use(old, block)
    return last is None or last.is_before_in_block(made) or (last is made and not made.regions)


# --- loops ------------------------------------------------------------------------------------------------------------


@handles("scf.for")
def _for(fn: Function, op: Any) -> None:
    start, stop, step, *initial = op.operands
    block: Block = op.regions[0].block
    counter, *arguments = block.args
    names = _carried_names(fn, op, initial, arguments)
    assign(fn, names, initial)
    bounds = _range(fn, op, start, stop, step)
    with fn.within(fn.scope.inside(block, op)):
        head = f"for {fn.name(counter, 'i')} in {bounds}:"
        with fn.block(head):
            _loop_body(fn, block, arguments, names)
    for result, name in zip(op.results, names, strict=True):
        fn.bind(result, name)


def _carried_names(
    fn: Function, op: Operation, initial: Sequence[SSAValue], arguments: Sequence[SSAValue]
) -> list[str]:
    """The names under which a loop carries its values: where it can be, those of the values that it starts with."""
    names: list[str] = []
    number = fn.scope.number(op)
    for value, argument, result in zip(initial, arguments, op.results, strict=True):
        interval = (number, fn.end(result, number)) if fn.scope.block is not None else ALWAYS
        name = fn.wanted.get(result)
        held = fn.held(value)
        later = (number + 0.5, interval[1])
        if name is None and held is not None and value.has_one_use() and fn.scope.is_free(held, later):
            name = held
            fn.scope.take(name, later)
        names.append(name or fn.new_name(argument.name_hint or result.name_hint, interval))
    return names


def _range(fn: Function, op: Operation, start: SSAValue, stop: SSAValue, step: SSAValue) -> Text:
    bounds = [fn.text(value) if value.type == IntegerType(32) else fn.typed(value) for value in (start, stop, step)]
    if bounds[2].text == "1":
        del bounds[2]
        if bounds[0].text == "0":
            del bounds[0]
    options: dict[str, str] = {}
    for name, value in op.attributes.items():
        option = name.removeprefix("tt.")
        if name in ("tt.num_stages", "tt.loop_unroll_factor") and isinstance(value, IntegerAttr):
            options[option] = str(value.value.data)
        elif name in ("tt.disallow_acc_multi_buffer", "tt.flatten", "tt.warp_specialize"):
            options[option] = "True"
        elif name == "llvm.loop_annotation":
            options["disable_licm"] = "True"
    return call("tl.range" if options else "range", *bounds, **options)


def _loop_body(fn: Function, block: Block, arguments: Sequence[SSAValue], names: Sequence[str]) -> None:
    for argument, name in zip(arguments, names, strict=True):
        fn.bind(argument, name)
    values = _yielded(block)
    _pass_on(fn, block, names, values, arguments)
    body(fn, block)
    assign(fn, names, values)


@handles("scf.while")
def _while(fn: Function, op: Any) -> None:
    before, after = (region.block for region in op.regions)
    names = _carried_names(fn, op, op.operands, before.args)
    assign(fn, names, op.operands)
    for argument, name in zip(before.args, names, strict=True):
        fn.bind(argument, name)
    test, *forwarded = _yielded(before)
    effects = [each for each in before.ops if not is_side_effect_free(each)][:-1]
    lines = len(fn.lines)
    fn.inlines_effects = len(effects) <= 1
    fn.operations(list(before.ops)[:-1])
    fn.inlines_effects = False
    simple = len(fn.lines) == lines and list(forwarded) == list(before.args)
    condition = fn.text(test)
    if "llvm.loop_annotation" in op.attributes:
        condition = call("tl.condition", condition, disable_licm="True")
    if not simple:
        # The test has statements: they come before the loop, and again at the end of its body.
        again = [line.lstrip() for line in fn.lines[lines:]]
        if any(line.endswith(":") for line in again) or list(forwarded) != list(before.args):
            raise NotExpressible("'scf.while' whose test is more than an expression")
        fn.write(f"{(flag := fn.new_name('goes_on'))} = {condition}")
    else:
        again, flag = [], ""
    with fn.block(f"while {condition if simple else flag}:"), fn.within(fn.scope.inside(after, op)):
        _loop_body(fn, after, after.args, names)
        for line in again:
            fn.write(line)
        if not simple:
            fn.write(f"{flag} = {condition}")
    for result, name in zip(op.results, names, strict=True):
        fn.bind(result, name)


# --- functions with several blocks ------------------------------------------------------------------------------------


def blocks(fn: Function, block: Block, stop: Block | None = None, *, outermost: bool = True) -> None:
    """Write a block of a function and what follows it, up to `stop`, where several paths meet again.

    Raises NotExpressible for a cycle.
    """
    alone = outermost and block.parent is not None and len(block.parent.blocks) == 1
    with fn.within(Scope(block, fn.scope) if alone else fn.scope):
        body(fn, block)
        _end(fn, block, stop, outermost=outermost)


def _end(fn: Function, block: Block, stop: Block | None, *, outermost: bool) -> None:
    end = block.last_op
    assert end is not None
    if end.name in ("cf.br", "cf.cond_br"):
        _jump(fn, end, stop, outermost=outermost)
    elif end.operands or not outermost:
        fn.write(returned(fn, end.operands))


def _jump(fn: Function, end: Operation, stop: Block | None, *, outermost: bool) -> None:
    if not isinstance(end, ConditionalBranchOp):
        _way(fn, end.successors[0], end.operands, stop, outermost=outermost)
        return
    first, second = end.successors
    meeting = _meeting(first, second)
    with fn.block(f"if {fn.text(end.cond)}:"):
        _way(fn, first, end.then_arguments, meeting or stop)
    if meeting is None and stop is None:
        _way(fn, second, end.else_arguments, stop, outermost=outermost)
        return
    with fn.block("else:"):
        _way(fn, second, end.else_arguments, meeting or stop)
    if meeting is not None and meeting is not stop:
        blocks(fn, meeting, stop, outermost=outermost)


def _way(
    fn: Function, target: Block, values: Sequence[SSAValue], stop: Block | None, *, outermost: bool = False
) -> None:
    """Go on at `target` with these values for its arguments, unless that is where several paths meet."""
    assign(fn, _arguments(fn, target), values)
    if target is not stop:
        blocks(fn, target, stop, outermost=outermost)


def _arguments(fn: Function, block: Block) -> list[str]:
    """The names of a block's arguments, which are chosen at the first jump to it."""
    return [str(fn.text(argument)) for argument in block.args]


def _reached(block: Block) -> dict[Block, None]:
    found: dict[Block, None] = {}
    work = [block]
    while work:
        current = work.pop()
        if current in found:
            continue
        found[current] = None
        work += current.last_op.successors if current.last_op is not None else ()
    return found


def _meeting(first: Block, second: Block) -> Block | None:
    """The first block in the order of the text that both ways reach; None when both return."""
    one, other = _reached(first), _reached(second)
    common = [block for block in one if block in other]
    region = first.parent
    if not common or region is None:
        return None
    order = {block: number for number, block in enumerate(region.blocks)}
    return min(common, key=lambda block: order[block])


def has_cycle(region: Region) -> bool:
    """Say whether a block of a function can be reached from itself."""
    return any(block in _reached(after) for block in region.blocks for after in _successors(block))


def _successors(block: Block) -> Sequence[Block]:
    return () if block.last_op is None else block.last_op.successors


# --- tasks ------------------------------------------------------------------------------------------------------------


@handles("ttg.warp_specialize")
def _tasks(fn: Function, op: WarpSpecializeOp) -> None:
    partitions = op.partitions
    registers = _numbers(op.requested_registers)
    starts = _numbers(op.warp_group_start_ids)
    fn.blank_line()
    with fn.block(f"with {call('tlx.async_tasks', **_task_options(op))}:"):
        own = op.attributes.get("tlx.default_registers")
        default = str(own.value.data) if isinstance(own, IntegerAttr) else None
        with fn.block(f"with {call('tlx.async_task', Text(chr(34) + 'default' + chr(34)), registers=default)}:"):
            block = op.default_region.block
            with fn.within(fn.scope.inside(block, op)):
                body(fn, block)
        for index, region in enumerate(partitions.partition_regions):
            for argument, captured in zip(region.block.args, partitions.explicit_captures, strict=True):
                fn.bind(argument, fn.text(captured))
            number = copies_of(op, index)
            options = {
                "num_warps": str(op.num_warps[index]),
                "replicate": str(number) if number > 1 else None,
                "registers": str(registers[index]) if registers else None,
                "warp_group_start_id": str(starts[index]) if starts else None,
            }
            fn.blank_line()
            head = f"with {call('tlx.async_task', **options)}:"
            with fn.block(head), fn.within(fn.scope.inside(region.block, op)):
                _name_replica(fn, region)
                body(fn, region.block)


def _name_replica(fn: Function, region: Region) -> None:
    """Give the number of a task's copy a name at the task's start."""
    numbers = [op for op in region.walk() if op.name == "tlx.replica_id"]
    if not numbers:
        return
    name = fn.new_name(next((op.results[0].name_hint for op in numbers if op.results[0].name_hint), "replica"))
    for op in numbers:
        fn.bind(op.results[0], name)
    fn.module.skipped.update(numbers)
    fn.write(f"{name} = tlx.async_task_replica_id()")


def _task_options(op: WarpSpecializeOp) -> dict[str, str]:
    options = {name: "True" for name in ("exclusive", "no_ending_cluster_sync") if f"tlx.{name}" in op.attributes}
    wait = op.attributes.get("tlx.mbarrier_try_wait_suspend_ns")
    if isinstance(wait, IntegerAttr):
        options["mbarrier_try_wait_suspend_ns"] = str(wait.value.data)
    return options


def _numbers(attr: DenseArrayBase[Any] | None) -> tuple[int, ...]:
    return () if attr is None else tuple(int(number) for number in attr.get_values())


# --- functions that functions use -------------------------------------------------------------------------------------


@handles("tt.call")
def _call(fn: Function, op: Any) -> Text:
    callee = op.properties["callee"]
    assert isinstance(callee, SymbolRefAttr)
    return call(fn.module.name_of(callee.root_reference.data), *(fn.typed(value) for value in op.operands))


@handles("tt.reduce", "tt.scan")
def _combine(fn: Function, op: Any) -> Text:
    if (name := plain_reduction(op)) is not None:
        return call(f"tl.{name}", fn.typed(op.operands[0]), prop(op, "axis"))
    combine = helper(fn, op.regions[0], "combine")
    blocks_text = [fn.typed(value) for value in op.operands]
    values: Text | str = blocks_text[0] if len(blocks_text) == 1 else tupled(blocks_text)
    axis = prop(op, "axis")
    if op.name == "tt.reduce":
        return call("tl.reduce", values, axis, combine)
    backwards = given(op, "reverse")
    return call("tl.associative_scan", values, axis, combine, reverse=backwards)


@handles("tt.map_elementwise")
def _map(fn: Function, op: Any) -> Text:
    pack = prop(op, "pack")
    function = helper(fn, op.regions[0], "scalar")
    return call("tl.map_elementwise", function, *(fn.typed(v) for v in op.operands), pack=None if pack == 1 else pack)


def helper(fn: Function, region: Region, stem: str) -> str:
    """The name of a function of its own that does what a region does with its arguments."""
    inner = Function(fn.module, fn.module.function_names())
    names = [name for _, name in parameters(inner, region.blocks[0])]
    if has_cycle(region):
        raise NotExpressible("a region with a cycle")
    blocks(inner, region.blocks[0])
    return fn.module.helper(stem, names, inner.lines)
