"""Writes a function of LLVM IR, instruction by instruction.

Operands of one instruction have the same number of lanes, or one: a scalar is broadcast to the lanes of the others.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute

from tlx_xdsl.analysis.integers.transfer import bytes_of

# Values of LLVM IR as text: an operand, the type of its elements and how many of them it has.

PTR, F32, F64, I1, I8, I16, I32, I64 = "ptr", "float", "double", "i1", "i8", "i16", "i32", "i64"
FLOATS = (F32, F64)


@dataclass(frozen=True, slots=True)
class Value:
    """An operand of LLVM IR."""

    text: str
    element: str
    """The type of its elements: `float`, `i32`, `ptr`."""
    lanes: int = 1
    """1 for a scalar; a vector has more."""

    @property
    def type(self) -> str:
        """Return the type in LLVM IR: `float`, `<16 x float>`."""
        return self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"

    @property
    def typed(self) -> str:
        """Type and operand, as instructions have them."""
        return f"{self.type} {self.text}"


def constant(number: float, element: str, lanes: int = 1) -> Value:
    """A number; in all lanes, if there are several. A float is rounded to the type."""
    if element in FLOATS:
        rounded = ctypes.c_float(number).value if element == F32 else float(number)
        text = f"0x{struct.pack('>d', rounded).hex()}"
    elif element == I1:
        text = "true" if number else "false"
    else:
        text = str(int(number))
    if lanes > 1:
        text = f"splat ({element} {text})"
    return Value(text, element, lanes)


@lru_cache(maxsize=256)
def iota(lanes: int, element: str, first: int = 0) -> Value:
    """`first`, `first + 1`, ... in the lanes."""
    text = ", ".join(f"{element} {first + lane}" for lane in range(lanes))
    return Value(f"<{text}>", element, lanes) if lanes > 1 else constant(first, element)


def poison(element: str, lanes: int = 1) -> Value:
    """No value in particular."""
    return Value("poison", element, lanes)


@lru_cache(maxsize=256)
def register_type(type_: Attribute) -> str:
    """The type that a scalar of MLIR has in LLVM IR.

    Floats below 32 bits are integers that hold their bits: arithmetic on them is made in f32 (`conversions.py`), and
    nothing calls the conversions of a run-time library. An `index` has 64 bits.

    Raises TypeError for what is no scalar.
    """
    match type_:
        case IndexType():
            return I64
        case IntegerType():
            return f"i{type_.width.data}"
        case Float32Type():
            return F32
        case Float64Type():
            return F64
        case BFloat16Type() | Float16Type():
            return I16
        case _:
            return f"i{8 * bytes_of(type_)}"


def memory_type(type_: Attribute) -> str:
    """The type of an element in memory: an i1 takes a byte, everything else is as in registers."""
    register = register_type(type_)
    return I8 if register == I1 else register


def bytes_of_element(type_: Attribute) -> int:
    """The bytes that an element takes in memory."""
    return 8 if isinstance(type_, IndexType) else bytes_of(type_)


_MANGLED = {F32: "f32", F64: "f64", PTR: "p0"}
_BYTES = {I1: 1, I8: 1, I16: 2, I32: 4, F32: 4}
_NAMES = re.compile(r"%v\d+")
_COMPUTES = ("add", "and", "icmp", "insertelement", "or", "select", "shufflevector", "sub", "trunc", "xor")
"""The beginnings of instructions that may be done where their result is not needed."""


class Externals:
    """The functions that those of one module call."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        """By name; intrinsics of LLVM among them."""

    def declare(self, name: str, result: str, operands: Sequence[str]) -> None:
        """A function that is defined elsewhere."""
        self.declarations.setdefault(name, f"declare {result} @{name}({', '.join(operands)})")


@dataclass
class _Loop:
    """A loop that is written."""

    line: int
    """The one before it, which ends a block."""
    first: int
    """The number of the first name in it."""
    moved: dict[str, Value] = field(default_factory=dict[str, Value])
    """By their text the instructions that were written before it."""
    names: set[str] = field(default_factory=set[str])
    """Of the values of these."""

    def is_outside(self, name: str) -> bool:
        """Return whether a value is there before the loop."""
        return name[:2] != "%v" or name in self.names or int(name[2:]) < self.first

    def can_leave(self, text: str) -> bool:
        """Return whether an instruction only computes, with what is there before the loop."""
        return text.startswith(_COMPUTES) and all(map(self.is_outside, _NAMES.findall(text)))


class Builder:
    """Appends instructions to the block that was begun last."""

    def __init__(self, externals: Externals, register_bytes: int = 0):
        self.externals = externals
        self.register_bytes = register_bytes
        """Of the CPU's vectors."""
        self.lines: list[str] = []
        self.entry: list[str] = []
        """Instructions for the beginning of the function, such as `alloca`s."""
        self.label = "entry"
        """Of the block that is written."""
        self._next = 0
        self._zero: Value | None = None
        self._loops: list[_Loop] = []
        self._moves = False

    # --- instructions ------------------------------------------------------------------------------------------

    def name(self) -> str:
        """A new name of a value or a block."""
        self._next += 1
        return f"v{self._next}"

    def emit(self, text: str, element: str, lanes: int = 1) -> Value:
        """Append an instruction that gives a value."""
        loop = self._loops[-1] if self._moves and self._loops else None
        if loop is None or not loop.can_leave(text):
            name = f"%{self.name()}"
            self.lines.append(f"  {name} = {text}")
            return Value(name, element, lanes)
        if text not in loop.moved:
            found = loop.moved[text] = Value(f"%{self.name()}", element, lanes)
            loop.names.add(found.text)
            before, end = self.lines[loop.line].rpartition("\n")[::2]
            self.lines[loop.line] = "\n".join(filter(None, (before, f"  {found.text} = {text}", end)))
        return loop.moved[text]

    def splat(self, value: Value, lanes: int) -> Value:
        """A scalar in all lanes; what has them already stays."""
        if value.lanes == lanes:
            return value
        assert value.lanes == 1, (value, lanes)
        if value.text[0] not in "%@":
            return Value(f"splat ({value.typed})", value.element, lanes)
        loop = self._loops[-1] if self._loops else None
        is_narrow = lanes * _BYTES.get(value.element, 8) <= self.register_bytes
        # LLVM leaves a splat where it is used, and repeats it in each turn.
        moves = loop is not None and is_narrow and loop.is_outside(value.text)
        with self.moving() if moves else nullcontext():
            return self._splat(value, lanes)

    def _splat(self, value: Value, lanes: int) -> Value:
        vector = poison(value.element, lanes).typed
        first = self.emit(f"insertelement {vector}, {value.typed}, i32 0", value.element, lanes)
        return self.emit(
            f"shufflevector {first.typed}, {vector}, <{lanes} x i32> zeroinitializer", value.element, lanes
        )

    def aligned(self, *values: Value) -> list[Value]:
        """The values, all with as many lanes as the widest."""
        lanes = max(value.lanes for value in values)
        return [self.splat(value, lanes) for value in values]

    def binary(self, opcode: str, first: Value, second: Value) -> Value:
        """An instruction on two operands of one type, such as `add nsw` or `fmul`."""
        first, second = self.aligned(first, second)
        return self.emit(f"{opcode} {first.typed}, {second.text}", first.element, first.lanes)

    def fneg(self, value: Value) -> Value:
        """The negated float."""
        return self.emit(f"fneg {value.typed}", value.element, value.lanes)

    def compare(self, predicate: str, first: Value, second: Value) -> Value:
        """A comparison, such as `icmp slt` or `fcmp olt`."""
        first, second = self.aligned(first, second)
        return self.emit(f"{predicate} {first.typed}, {second.text}", I1, first.lanes)

    def select(self, condition: Value, first: Value, second: Value) -> Value:
        """`first` where the condition holds."""
        first, second = self.aligned(first, second)
        if condition.lanes > 1 or first.lanes == 1:
            condition, first, second = self.aligned(condition, first, second)
        return self.emit(f"select {condition.typed}, {first.typed}, {second.typed}", first.element, first.lanes)

    def cast(self, opcode: str, value: Value, element: str) -> Value:
        """A conversion of each element, such as `sext`, `fpext` or `bitcast`."""
        to = Value("", element, value.lanes)
        return self.emit(f"{opcode} {value.typed} to {to.type}", element, value.lanes)

    def resized(self, value: Value, element: str, *, signed: bool = True) -> Value:
        """An integer extended or truncated to another type."""
        bits, wanted = int(value.element[1:]), int(element[1:])
        if bits == wanted:
            return value
        return self.cast("trunc" if bits > wanted else "sext" if signed else "zext", value, element)

    def opaque(self, index: Value) -> Value:
        """The same i64, as a number that LLVM does not find out."""
        if self._zero is None:
            # Once, outside of all loops: what is made of it can leave them.
            self._zero = Value("%zero", I64)
            self.entry.append(f'  {self._zero.text} = call i64 asm "", "=r,0"(i64 0)')
        return self.binary("or", index, self._zero)

    def intrinsic(self, name: str, *values: Value) -> Value:
        """An intrinsic that LLVM overloads on the type of its operands, which is that of its result: `llvm.fma`."""
        aligned = self.aligned(*values)
        first = aligned[0]
        mangled = f"{name}.{mangle(first)}"
        self.externals.declare(mangled, first.type, [value.type for value in aligned])
        return self.emit(
            f"call {first.type} @{mangled}({', '.join(value.typed for value in aligned)})", first.element, first.lanes
        )

    def call(self, name: str, result: Value | None, *values: Value) -> Value | None:
        """A call; `result` has the type of what it gives."""
        type_ = "void" if result is None else result.type
        self.externals.declare(name, type_, [value.type for value in values])
        text = f"call {type_} @{name}({', '.join(value.typed for value in values)})"
        if result is None:
            self.lines.append(f"  {text}")
            return None
        return self.emit(text, result.element, result.lanes)

    def scalar_call(self, name: str, *values: Value) -> Value:
        """A function of scalars, called for each lane; its result has the type of its first operand."""
        aligned = self.aligned(*values)
        lanes = aligned[0].lanes
        result = Value("", aligned[0].element)
        if lanes == 1:
            return self._given(self.call(name, result, *aligned))
        whole = poison(result.element, lanes)
        for lane in range(lanes):
            parts = [self.extract(value, lane) for value in aligned]
            whole = self.insert(whole, self._given(self.call(name, result, *parts)), lane)
        return whole

    @staticmethod
    def _given(value: Value | None) -> Value:
        assert value is not None
        return value

    # --- vectors -----------------------------------------------------------------------------------------------

    def extract(self, vector: Value, lane: int) -> Value:
        """One lane."""
        return self.emit(f"extractelement {vector.typed}, i32 {lane}", vector.element)

    def insert(self, vector: Value, value: Value, lane: int) -> Value:
        """The vector with another value in one lane."""
        return self.emit(f"insertelement {vector.typed}, {value.typed}, i32 {lane}", vector.element, vector.lanes)

    def shuffle(self, vector: Value, lanes: Sequence[int]) -> Value:
        """Pick some of the lanes, in this order."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        other = poison(vector.element, vector.lanes).typed
        return self.emit(
            f"shufflevector {vector.typed}, {other}, <{len(lanes)} x i32> <{mask}>", vector.element, len(lanes)
        )

    def merged(self, first: Value, second: Value, lanes: Sequence[int]) -> Value:
        """Pick lanes of two vectors in this order; those of the second have the numbers after those of the first."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.emit(
            f"shufflevector {first.typed}, {second.typed}, <{len(lanes)} x i32> <{mask}>", first.element, len(lanes)
        )

    def transposed(self, rows: Sequence[Value]) -> list[Value]:
        """The columns of a matrix that has as many rows as lanes, a power of two.

        Each step exchanges two quarters of all blocks of a size: the upper right one and the lower left one.
        """
        found, size = list(rows), len(rows)
        step = size // 2
        while step:
            upper = [lane if not lane & step else size + lane - step for lane in range(size)]
            lower = [lane + step if not lane & step else size + lane for lane in range(size)]
            for row in range(size):
                if not row & step:
                    one, other = found[row], found[row + step]
                    found[row], found[row + step] = self.merged(one, other, upper), self.merged(one, other, lower)
            step //= 2
        return found

    def first(self, value: Value, lanes: int) -> Value:
        """The first lanes; a scalar stays."""
        if value.lanes in (1, lanes):
            return value
        return self.extract(value, 0) if lanes == 1 else self.shuffle(value, range(lanes))

    def folded(self, vector: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """All lanes combined, the upper half with the lower half again and again; their number is a power of two."""
        while vector.lanes > 1:
            half = vector.lanes // 2
            if half == 1:
                vector = combine(self.extract(vector, 0), self.extract(vector, 1))
            else:
                low, high = range(half), range(half, 2 * half)
                vector = combine(self.shuffle(vector, low), self.shuffle(vector, high))
        return vector

    # --- memory ------------------------------------------------------------------------------------------------

    def gep(self, element: str, pointer: Value, index: Value) -> Value:
        """The address of an element, which need not be there; a vector of addresses if `index` is one."""
        pointer = self.splat(pointer, index.lanes)
        return self.emit(f"getelementptr {element}, {pointer.typed}, {index.typed}", PTR, index.lanes)

    def load(self, element: str, pointer: Value, lanes: int = 1, align: int = 1) -> Value:
        """Elements that lie one after the other."""
        return self.emit(f"load {Value('', element, lanes).type}, {pointer.typed}, align {align}", element, lanes)

    def store(self, value: Value, pointer: Value, align: int = 1) -> None:
        """Elements one after the other."""
        self.lines.append(f"  store {value.typed}, {pointer.typed}, align {align}")

    def alloca(self, type_: str, align: int = 8) -> Value:
        """Memory of the function, for small things."""
        name = f"%{self.name()}"
        self.entry.append(f"  {name} = alloca {type_}, align {align}")
        return Value(name, PTR)

    # --- blocks ------------------------------------------------------------------------------------------------

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.label = label

    def branch(self, label: str) -> None:
        """End the block with a jump."""
        self.lines.append(f"  br label %{label}")

    def branch_if(self, condition: Value, yes: str, no: str) -> None:
        """End the block with a choice."""
        self.lines.append(f"  br {condition.typed}, label %{yes}, label %{no}")

    def phi(self, element: str, lanes: int, ways: Sequence[tuple[Value, str]]) -> tuple[Value, int]:
        """A value that depends on the block before, and the line that `add_way` extends."""
        name = f"%{self.name()}"
        parts = ", ".join(f"[ {value.text}, %{label} ]" for value, label in ways)
        self.lines.append(f"  {name} = phi {Value('', element, lanes).type} {parts}")
        return Value(name, element, lanes), len(self.lines) - 1

    def add_way(self, line: int, value: Value, label: str) -> None:
        """One more block before that of a phi."""
        comma = "," if self.lines[line].endswith("]") else ""
        self.lines[line] += f"{comma} [ {value.text}, %{label} ]"

    @contextmanager
    def loop(
        self, start: Value, end: Value, step: Value, carried: Sequence[Value] = ()
    ) -> Generator[tuple[Value, list[Value], list[Value]]]:
        """Write the body of a loop over `start`, `start + step`, ... below `end` (signed, i64).

        Gives the number, what is carried as it is in the body, and a list: the body replaces its elements by what the
        next iteration gets. After it that list holds what the loop ends with.
        """
        before, body, done = self.label, self.name(), self.name()
        carried = [*carried]
        # The condition stands at the end, and once before: LLVM's pass that does so takes long where loops are nested.
        bounds = [each.text for each in (start, end)]
        is_entered = all(each.lstrip("-").isdigit() for each in bounds) and int(bounds[0]) < int(bounds[1])
        if is_entered:
            self.branch(body)
        else:
            self.branch_if(self.compare("icmp slt", start, end), body, done)
        self._loops.append(_Loop(len(self.lines) - 1, int(body[1:])))
        self.begin(body)
        number, line = self.phi(start.element, 1, [(start, before)])
        phis = [self.phi(value.element, value.lanes, [(value, before)]) for value in carried]
        values = [value for value, _ in phis]
        following = list(values)
        yield number, values, following
        self._loops.pop()
        after = self.binary("add nsw", number, step)
        self.add_way(line, after, self.label)
        for (_, at), value in zip(phis, following, strict=True):
            self.add_way(at, value, self.label)
        latch = self.label
        self.branch_if(self.compare("icmp slt", after, end), body, done)
        self.begin(done)
        if not is_entered:
            ways = zip(carried, following, strict=True)
            following[:] = [
                self.phi(last.element, last.lanes, [(first, before), (last, latch)])[0] for first, last in ways
            ]

    @contextmanager
    def moving(self) -> Generator[None]:
        """Write what is computed of numbers from before the loop there: LLVM's passes that would do so do not run."""
        before, self._moves = self._moves, True
        yield
        self._moves = before

    def index(self, number: int) -> Value:
        """A number as an i64."""
        return constant(number, I64)

    def text(self, signature: str) -> str:
        """The function, whose first block is `entry`."""
        return "\n".join([f"{signature} {{", "entry:", *self.entry, *self.lines, "}"])


def mangle(value: Value) -> str:
    """Return how the names of intrinsics spell the type of a value: `v16f32`."""
    element = _MANGLED.get(value.element, value.element)
    return element if value.lanes == 1 else f"v{value.lanes}{element}"


def bits_type(element: str) -> str:
    """The integer as wide as a float."""
    assert element in FLOATS
    return I32 if element == F32 else I64
