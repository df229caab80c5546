"""Translator of a region of the IR to the Python generator that runs it: every operation is looked at once.

Arithmetic and control flow become Python's own. An operation of a dialect that a machine runs becomes a call, or, where
threads may meet, a `yield`: the generator says what comes next, and the scheduler resumes it when that was done.

    %s = arith.addi %a, %b : i32              v2 = v0 + v1
    ttkernel.tile_regs_acquire()              f3(thread)
    ttkernel.cb_wait_front(%cb, %s)           yield s4, (v5, v2)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, FloatAttr, IntegerAttr, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineMap,
)

from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.ttl.analysis.signs import results_of

Touch: TypeAlias = tuple[Any, ...]
"""What a step reads or changes, as the explorer compares it: kind of access, then what is accessed."""


def _nothing(*_: Any) -> tuple[Touch, ...]:
    return ()


@dataclass(eq=False, slots=True)
class Step:
    """An operation at which threads may meet; the functions take the thread and the operands."""

    op: Operation
    run: Callable[..., Any]
    """Does it, and gives its result."""
    ready: Callable[..., bool] | None = None
    """Whether it can be done now; it always can where there is none."""
    waits_for: Callable[..., str] | None = None
    """What a thread that can't go on waits for."""
    touches: Callable[..., tuple[Touch, ...]] = _nothing


Request: TypeAlias = tuple[Step, tuple[Any, ...]]
Coroutine: TypeAlias = Generator[Request, Any, None]
Local: TypeAlias = Callable[..., Any]
"""Runs an operation that no other thread sees; takes the thread and the operands."""
Builder: TypeAlias = Callable[[Operation], "Local | Step"]
"""Looks at an operation once and gives what runs it."""


@dataclass(frozen=True)
class Dialects:
    """Operations that a machine can run besides arithmetic and control flow."""

    builders: Mapping[str, Builder]
    """By the operation's name."""
    guards: Mapping[str, Callable[[Operation], Local]]
    """Operations that run their region if a condition holds, which this gives."""
    terminators: frozenset[str]
    skipped: frozenset[str] = frozenset()


def attribute(op: Operation, name: str) -> Attribute | None:
    """The attribute or property of that name."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found


def integer(op: Operation, name: str, default: int | None = None) -> int:
    """An integer attribute, which there must be where there is no default."""
    found = attribute(op, name)
    if isinstance(found, IntegerAttr):
        return found.value.data
    if default is None:
        raise fault_at(op, f"'{op.name}' has no integer attribute '{name}'")
    return default


def integers(op: Operation, name: str) -> tuple[int, ...]:
    """An attribute that is an array of integers; none where it is missing."""
    found: Any = attribute(op, name)
    if found is None:
        return ()
    if isinstance(found, DenseArrayBase):
        return tuple(int(value) for value in cast(Sequence[int], found.get_values()))
    return tuple(_number(each) for each in found)


def _number(value: Any) -> int:
    if isinstance(value, int):
        return value
    data = value.value if isinstance(value, IntegerAttr) else value
    return int(data.data)


def translate(
    blocks: Sequence[Block], dialects: Dialects, name: str, aliases: Mapping[SSAValue, SSAValue] | None = None
) -> Callable[..., Coroutine]:
    """The generator function of blocks that run one after the other; takes the thread, then the first one's arguments.

    `aliases` are values, such as the arguments of another block, that are the same as others.

    Raises Fault for operations that the machine does not know.
    """
    writer = _Writer(dialects, dict(aliases or {}))
    arguments = ", ".join(["thread", *(writer.name(argument) for argument in blocks[0].args)])
    for block in blocks:
        writer.block(block, 1)
    source = "\n".join([f"def code({arguments}):", *writer.lines, "    return", "    yield", ""])
    space: dict[str, Any] = {**writer.constants, "div": _divide, "rem": _remainder}
    exec(compile(source, f"<{name}>", "exec"), space)
    return space["code"]


def _divide(a: int, b: int) -> int:
    """Division towards zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def _remainder(a: int, b: int) -> int:
    return a - _divide(a, b) * b


_INFIX = {
    "addi": "+", "subi": "-", "muli": "*", "floordivsi": "//", "andi": "&", "ori": "|", "xori": "^", "shli": "<<",
    "shrsi": ">>", "shrui": ">>", "divui": "//", "remui": "%", "addf": "+", "subf": "-", "mulf": "*",
}  # fmt: skip
_CALLS = {
    "divsi": "div({}, {})", "remsi": "rem({}, {})", "minsi": "min({}, {})", "maxsi": "max({}, {})",
    "minui": "min({}, {})", "maxui": "max({}, {})", "ceildivsi": "-(-{} // {})", "ceildivui": "-(-{} // {})",
    "select": "{1} if {0} else {2}",
}  # fmt: skip
_SAME = frozenset(("index_cast", "index_castui", "extui", "extsi", "trunci"))
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


class _Writer:
    """Writes Python lines."""

    def __init__(self, dialects: Dialects, aliases: dict[SSAValue, SSAValue]):
        self.dialects = dialects
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._aliases = aliases
        self._names: dict[SSAValue, str] = {}

    def name(self, value: SSAValue) -> str:
        """The Python variable of a value."""
        value = self._aliases.get(value, value)
        return self._names.setdefault(value, f"v{len(self._names)}")

    def block(self, block: Block, depth: int) -> tuple[str, ...]:
        """Write the operations of a block; gives the variables that it yields."""
        for op in block.ops:
            if op.name in self.dialects.skipped:
                continue
            if op.name in self.dialects.terminators or op.name in ("scf.yield", "affine.yield"):
                return tuple(self.name(value) for value in op.operands)
            self._op(op, depth)
        return ()

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _assign(self, op: Operation, depth: int, text: str) -> None:
        results = ", ".join(self.name(value) for value in op.results)
        self._line(depth, f"{results} = {text}" if results else text)

    def _op(self, op: Operation, depth: int) -> None:
        dialect, _, short = op.name.partition(".")
        if (builder := self.dialects.builders.get(op.name)) is not None:
            self._call(op, builder(op), depth)
        elif (guard := self.dialects.guards.get(op.name)) is not None:
            operands = self._operands(op)
            self._line(depth, f"if {self._constant('f', guard(op))}({', '.join(['thread', *operands])}):")
            self.block(op.regions[0].blocks[0], depth + 1)
            self._line(depth + 1, "pass")
        elif op.name == "builtin.unrealized_conversion_cast":
            self._assign(op, depth, ", ".join(self._operands(op)))
        elif dialect == "arith" and (text := self._arith(op, short)) is not None:
            self._assign(op, depth, text)
        elif dialect in ("scf", "affine") and self._control(op, depth):
            pass
        else:
            raise fault_at(op, f"the interpreter can't run '{op.name}'")

    def _call(self, op: Operation, made: Local | Step, depth: int) -> None:
        operands = self._operands(op)
        if isinstance(made, Step):
            values = "".join(f"{each}, " for each in operands)
            self._assign(op, depth, f"yield {self._constant('s', made)}, ({values})")
        else:
            self._assign(op, depth, f"{self._constant('f', made)}({', '.join(['thread', *operands])})")

    def _operands(self, op: Operation) -> list[str]:
        return [self.name(value) for value in op.operands]

    def _constant(self, kind: str, value: Any) -> str:
        name = f"{kind}{len(self.constants)}"
        self.constants[name] = value
        return name

    def _arith(self, op: Operation, short: str) -> str | None:
        operands = self._operands(op)
        if short in _INFIX:
            return f" {_INFIX[short]} ".join(operands)
        if short in _CALLS:
            return _CALLS[short].format(*operands)
        if short in _SAME:
            return operands[0]
        if short == "cmpi":
            return f" {_COMPARISONS[integer(op, 'predicate')]} ".join(operands)
        value = attribute(op, "value")
        if short == "constant" and isinstance(value, IntegerAttr | FloatAttr):
            number = value.value.data
            return repr(bool(number) if op.results[0].type == i1 else number)
        return None

    def _control(self, op: Operation, depth: int) -> bool:
        match op.name:
            case "affine.apply":
                self._assign(op, depth, self._map(op, "map", op.operands)[0])
            case "affine.min" | "affine.max":
                texts = self._map(op, "map", op.operands)
                self._assign(op, depth, _extreme(op.name.removeprefix("affine."), texts))
            case "scf.if":
                self._branch(op, depth)
            case "scf.for":
                lower, upper, step, *carried = op.operands
                self._loop(op, depth, f"{self.name(lower)}, {self.name(upper)}, {self.name(step)}", carried)
            case "affine.for":
                loop: Any = op
                lower = _extreme("max", self._map(op, "lowerBoundMap", loop.lowerBoundOperands))
                upper = _extreme("min", self._map(op, "upperBoundMap", loop.upperBoundOperands))
                self._loop(op, depth, f"{lower}, {upper}, {integer(op, 'step')}", loop.inits)
            case _:
                return False
        return True

    def _branch(self, op: Operation, depth: int) -> None:
        self._line(depth, f"if {self.name(op.operands[0])}:")
        for number, region in enumerate(op.regions):
            if number and region.blocks:
                self._line(depth, "else:")
            for block in region.blocks:
                self._copy([self.name(value) for value in op.results], self.block(block, depth + 1), depth + 1)
                self._line(depth + 1, "pass")

    def _loop(self, op: Operation, depth: int, bounds: str, inits: Sequence[SSAValue]) -> None:
        body = op.regions[0].blocks[0]
        index, *carried = (self.name(value) for value in body.args)
        self._copy(carried, [self.name(value) for value in inits], depth)
        self._line(depth, f"for {index} in range({bounds}):")
        self._copy(carried, self.block(body, depth + 1), depth + 1)
        self._line(depth + 1, "pass")
        self._copy([self.name(value) for value in op.results], carried, depth)

    def _copy(self, targets: Sequence[str], sources: Sequence[str], depth: int) -> None:
        if targets:
            self._line(depth, f"{', '.join(targets)} = {', '.join(sources)}")

    def _map(self, op: Operation, name: str, operands: Sequence[SSAValue]) -> list[str]:
        found = attribute(op, name)
        assert isinstance(found, AffineMapAttr)
        return affine_texts(found.data, [self.name(value) for value in operands])


def _extreme(word: str, texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{word}({', '.join(texts)})"


def affine_texts(affine_map: AffineMap, names: Sequence[str]) -> list[str]:
    """The results of a map as Python expressions of the names of its dimensions and symbols."""

    def binary(expression: AffineBinaryOpExpr, a: str, b: str) -> str:
        kind = expression.kind
        return f"(-(-{a} // {b}))" if kind is AffineBinaryOpKind.CeilDiv else f"({a} {_AFFINE[kind]} {b})"

    return results_of(affine_map, names, str, binary)


_AFFINE = {
    AffineBinaryOpKind.Add: "+",
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.Mod: "%",
    AffineBinaryOpKind.FloorDiv: "//",
}
