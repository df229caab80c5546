"""The code of a task: what matters of it, flat, so that a position in it is a number.

Loops and branches in which nothing synchronises, and that give nothing that does matter, are left out. A branch or a
loop that only computes what matters is one step, a function of the values that it uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import Kind, Space, Sync, accesses_of, effects_of

from .demand import Demands, is_followed, is_view


class UnprovedError(Exception):
    """An operation whose effect, or its time, is not known: nothing is proved because of it."""

    def __init__(self, op: Operation, reason: str):
        super().__init__(reason)
        self.op = op
        self.reason = reason


@dataclass(eq=False)
class Step:
    """One step of a task."""

    op: Operation


class Compute(Step):
    """Compute a value, or a view of a buffer."""


class Act(Step):
    """Access a buffer or a barrier, start something asynchronous or wait."""


class Function(Step):
    """An operation with regions that only computes."""


@dataclass(eq=False)
class Assign(Step):
    """Pass values on, all at once."""

    pairs: tuple[tuple[SSAValue, SSAValue], ...] = ()
    """Each target with its source."""


@dataclass(eq=False)
class Jump(Step):
    """Go on elsewhere."""

    to: int = 0


@dataclass(eq=False)
class Branch(Step):
    """Go on elsewhere unless the condition holds."""

    condition: SSAValue | None = None
    to: int = 0


class Enter(Step):
    """Enter a loop: note its bounds."""


@dataclass(eq=False)
class Test(Step):
    """Begin a turn of a loop, or leave it and go on elsewhere."""

    to: int = 0


class Advance(Step):
    """End a turn of a loop."""


class Start(Step):
    """Start the other tasks."""


class Join(Step):
    """Wait until the other tasks have ended."""


@dataclass
class Code:
    """The steps of a task."""

    name: str
    """Such as `partition 0`."""
    warps: int
    steps: list[Step] = field(default_factory=list[Step])

    @cached_property
    def live(self) -> list[frozenset[SSAValue]]:
        """The values that may be used from each step on."""
        live = [frozenset[SSAValue]()] * (len(self.steps) + 1)
        changed = True
        while changed:
            changed = False
            for at in reversed(range(len(self.steps))):
                step = self.steps[at]
                after = frozenset[SSAValue]().union(*(live[to] for to in _successors(step, at)))
                before = after - frozenset(defined(step)) | frozenset(used(step))
                if before != live[at]:
                    live[at], changed = before, True
        return live

    def loops_after(self, at: int) -> bool:
        """Return whether the task may enter a loop from a step on."""
        return self._enters[at]

    @cached_property
    def _enters(self) -> list[bool]:
        enters = [False] * (len(self.steps) + 1)
        for _ in range(2):
            for at in reversed(range(len(self.steps))):
                step = self.steps[at]
                enters[at] = isinstance(step, Enter) or any(enters[to] for to in _successors(step, at))
        return enters


def _successors(step: Step, at: int) -> tuple[int, ...]:
    match step:
        case Jump():
            return (step.to,)
        case Branch() | Test():
            return (at + 1, step.to)
        case _:
            return (at + 1,)


def defined(step: Step) -> Sequence[SSAValue]:
    """The values that a step defines."""
    match step:
        case Compute() | Function():
            return step.op.results
        case Assign():
            return [target for target, _ in step.pairs]
        case Test():
            assert isinstance(step.op, scf.ForOp)
            return [step.op.body.block.args[0]]
        case _:
            return ()


def used(step: Step) -> Iterator[SSAValue]:
    """The values that a step uses."""
    match step:
        case Compute() | Act():
            yield from (value for value in step.op.operands if is_followed(value))
        case Function():
            yield from free_values(step.op)
        case Assign():
            yield from (source for _, source in step.pairs)
        case Branch():
            assert step.condition is not None
            yield step.condition
        case Enter():
            assert isinstance(step.op, scf.ForOp)
            yield from (step.op.lb, step.op.ub, step.op.step)
        case Start():
            assert isinstance(step.op, ttg.WarpSpecializeOp)
            yield from (value for value in step.op.partitions.explicit_captures if is_followed(value))
        case _:
            pass


def free_values(op: Operation) -> Iterator[SSAValue]:
    """The values from outside that an operation with regions uses."""
    inside = set(op.walk())
    blocks = {block for each in inside for region in each.regions for block in region.blocks}
    for each in op.walk():
        for value in each.operands:
            owner = value.owner
            if (owner not in blocks) if isinstance(owner, Block) else (owner not in inside or owner is op):
                yield value


def acts(op: Operation) -> bool:
    """Return whether other tasks of the thread block may see what an operation does, or its end must be known."""
    effects = effects_of(op)
    if effects.accesses is None:
        return not op.regions and not _only_computes(op)
    if effects.sync & (Sync.NAMED | Sync.CLUSTER | Sync.ORDERED) or effects.completes_on is not None:
        return True
    return any(
        access.space is not Space.GLOBAL and access.kind & ~(Kind.ALLOC | Kind.FREE | Kind.PREFETCH)
        for access in accesses_of(op) or ()
    )


_ARITHMETIC = frozenset((
    "abs", "add", "and", "bfe", "bfi", "brev", "clz", "copysign", "cos", "cvt", "div", "ex2", "fma", "lg2", "lop3",
    "mad", "max", "min", "mov", "mul", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "selp", "set", "setp",
    "shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "tanh", "xor",
))  # fmt: skip
"""Instructions of PTX that only compute with registers (PTX ISA, "Instructions")."""


def _only_computes(op: Operation) -> bool:
    """Return whether an operation is inline PTX that only computes, even if it is declared to have side effects."""
    if not isinstance(op, tt.ElementwiseInlineAsmOp):
        return False
    text = re.sub(r"//[^\n]*|/\*.*?\*/|[{}]", " ", op.asm_string.data, flags=re.DOTALL)
    statements = [re.sub(r"^@!?\S+", "", each.strip()).split() for each in text.split(";")]
    words = [each[0] for each in statements if each]
    return all(word == ".reg" or word.partition(".")[0] in _ARITHMETIC for word in words)


def roots_of(function: Operation) -> Iterator[SSAValue]:
    """The values that the steps of all tasks ask for as they are: operands of what acts, bounds, conditions."""
    for op in function.walk():
        if acts(op):
            yield from (value for value in op.operands if _decides(op, value))
        elif op.regions and any(acts(each) for region in op.regions for each in region.walk()):
            match op:
                case scf.ForOp():
                    yield from (op.lb, op.ub, op.step)
                case scf.IfOp():
                    yield op.cond
                case _:
                    pass


def _decides(op: Operation, value: SSAValue) -> bool:
    """Return whether an operand of what acts decides what it does: buffers, parities, predicates; not coordinates."""
    if isinstance(value.type, ttg.MemDescType):
        return True
    if any(value is each for each in getattr(op, "barrier_preds", ())):
        return True
    return any(value is getattr(op, name, None) for name in ("phase", "pred", "id", "use_d", "size"))


def codes_of(function: tt.FuncOp, demands: Demands, warps: int) -> dict[Block, Code]:
    """The codes of a kernel's tasks, by their first blocks; the default task's comes first."""
    builder = _Builder(demands)
    main = Code("the default task", warps)
    block = only_block(function, function.body)
    builder.codes[block] = main
    builder.block(main, block)
    return builder.codes


def only_block(op: Operation, region: Region) -> Block:
    if len(region.blocks) != 1:
        raise UnprovedError(op, "control flow within a region is not followed")
    return region.block


class _Builder:
    def __init__(self, demands: Demands):
        self.demands = demands
        self.codes: dict[Block, Code] = {}

    def block(self, code: Code, block: Block) -> None:
        """The steps of a block, without its terminator."""
        for op in block.ops:
            if op is not block.last_op:
                self.operation(code, op)

    def operation(self, code: Code, op: Operation) -> None:
        matters = any(is_followed(result) and result in self.demands for result in op.results)
        inside = bool(op.regions) and any(acts(each) for region in op.regions for each in region.walk())
        if isinstance(op, ttg.WarpSpecializeOp):
            self.tasks(code, op)
        elif inside:
            match op:
                case scf.ForOp():
                    self.loop(code, op)
                case scf.IfOp():
                    self.branch(code, op)
                case _:
                    raise UnprovedError(op, f"how often '{op.name}' runs what is in it is not known before")
        elif isinstance(op, scf.IfOp) and matters:
            self.branch(code, op)
        elif op.regions:
            if matters:
                code.steps.append(Function(op))
        else:
            self.simple(code, op, matters)

    def simple(self, code: Code, op: Operation, matters: bool) -> None:
        """An operation without regions: what it does, and what it gives; an allocation first gives a buffer."""
        allocates = any(Kind.ALLOC in access.kind for access in accesses_of(op) or ())
        if matters and (allocates or not acts(op)):
            code.steps.append(Compute(op))
        if acts(op):
            code.steps.append(Act(op))
            if matters and not allocates and not is_view(op):
                code.steps.append(Compute(op))

    def loop(self, code: Code, op: scf.ForOp) -> None:
        block = op.body.block
        code.steps.append(Enter(op))
        self.assign(code, op, block.args[1:], op.iter_args)
        begin = len(code.steps)
        test = Test(op)
        code.steps.append(test)
        self.block(code, block)
        assert block.last_op is not None
        self.assign(code, op, block.args[1:], block.last_op.operands)
        code.steps += [Advance(op), Jump(op, begin)]
        test.to = len(code.steps)
        self.assign(code, op, op.results, block.args[1:])

    def branch(self, code: Code, op: scf.IfOp) -> None:
        branch = Branch(op, op.cond)
        code.steps.append(branch)
        self.case(code, op, op.true_region)
        jump = Jump(op)
        code.steps.append(jump)
        branch.to = len(code.steps)
        if op.false_region.blocks:
            self.case(code, op, op.false_region)
        jump.to = len(code.steps)

    def case(self, code: Code, op: Operation, region: Region) -> None:
        block = only_block(op, region)
        self.block(code, block)
        if block.last_op is not None:
            self.assign(code, op, op.results, block.last_op.operands)

    def assign(self, code: Code, op: Operation, targets: Sequence[SSAValue], sources: Sequence[SSAValue]) -> None:
        pairs = tuple(pair for pair in zip(targets, sources, strict=True) if pair[0] in self.demands)
        if pairs:
            code.steps.append(Assign(op, pairs))

    def tasks(self, code: Code, op: ttg.WarpSpecializeOp) -> None:
        code.steps.append(Start(op))
        for number, (region, warps) in enumerate(zip(op.partitions.partition_regions, op.num_warps, strict=True)):
            partition = Code(f"partition {number}", warps)
            block = only_block(op, region)
            self.codes[block] = partition
            self.block(partition, block)
        block = only_block(op, op.default_region)
        self.block(code, block)
        code.steps.append(Join(op))
        if block.last_op is not None:
            self.assign(code, op, op.results, block.last_op.operands)


def name_of(value: SSAValue) -> str:
    """The Python name of a value."""
    return value.name_hint or "buffer"


def attribute_text(op: Operation) -> tuple[str, ...]:
    """Return what an operation computes, besides of its operands."""
    return (
        op.name,
        *(f"{name}={value}" for name, value in sorted(op.properties.items())),
        *(str(result.type) for result in op.results),
    )
