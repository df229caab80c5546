"""Python code of basic blocks: each block is a function on the registers of a cohort.

    add.f32   %r3, %r1, %r2;               r1_f4 = R[1]
    setp.lt.s32 %p1, %r4, 7;               r4_i4 = R[4]; r2_f4 = R[2]
    @%p1 bra  $L__BB0_1;                   r3_f4 = (r1_f4+r2_f4)
                                           r9_b = (r4_i4<K0)
                                           R[3] = r3_f4; R[9] = r9_b
                                           return c.branch(r9_b, 5, 6, 7)

Values are numpy arrays with an element for each thread of the cohort; no array is changed once it is made. A register
has one view in which it is kept between blocks, that in which it is used most.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .arithmetic.kinds import KINDS, PLAIN, REGISTER_BYTES, Kind
from .flow import EXIT, Block
from .read.faults import error_on_line
from .read.syntax import Decimal, Function, Instruction, Module, Negated, Number, Operand, Register, Symbol
from .steps import Step

SPECIALS = {
    **{f"%{name}.{axis}": 4 for name in (
        "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"
    ) for axis in "xyz"},
    "%laneid": 4, "%warpid": 4, "%nwarpid": 4, "%smid": 4, "%nsmid": 4, "%gridid": 8, "%clock": 4, "%clock64": 8,
    "%globaltimer": 8, "%globaltimer_lo": 4, "%globaltimer_hi": 4, "%cluster_ctarank": 4, "%cluster_nctarank": 4,
    "%lanemask_eq": 4, "%lanemask_lt": 4, "%lanemask_le": 4, "%lanemask_gt": 4, "%lanemask_ge": 4,
    "%dynamic_smem_size": 4, "%total_smem_size": 4, "%is_explicit_cluster": 4, "WARP_SZ": 4,
}  # fmt: skip
"""The registers that are known."""


if TYPE_CHECKING:
    from .read.symbols import Symbols

BlockFunction: TypeAlias = Callable[[Any, list[Any]], int]
"""Takes a cohort and its registers; gives the number of the next block."""


def home_kinds(function: Function, steps: list[Step | None]) -> list[Kind]:
    """The view in which each register is kept between blocks."""
    votes: list[Counter[str]] = [Counter() for _ in function.registers]
    for step in steps:
        if step is None:
            continue
        for operand, kind in (*step.reads, *step.writes):
            if isinstance(operand, Register):
                votes[operand.number][kind] += 1
    found: list[Kind] = []
    for (_, type_), counts in zip(function.registers, votes, strict=True):
        size = REGISTER_BYTES[type_]
        fitting = [name for name, _ in counts.most_common() if KINDS[name].size == size and KINDS[name].lanes == 1]
        found.append(KINDS[fitting[0] if fitting else PLAIN[size]])
    return found


class Generator:
    """Makes the functions of a kernel's blocks."""

    def __init__(self, module: Module, function: Function, symbols: Symbols, steps: list[Step | None]):
        self._module = module
        self._function = function
        self._symbols = symbols
        self._steps = steps
        self.homes = home_kinds(function, steps)
        """The view in which each register is kept between blocks."""

    def block(self, block: Block, label: Callable[[str], int]) -> BlockFunction:
        """The function of a block; `label` gives the block of a label.

        Raises PtxError for an operand that does not fit.
        """
        made = _Body(self._module, self._function, self._symbols, self.homes, block)
        for number in range(block.first, block.last):
            made.instruction(number, self._function.instructions[number], self._steps[number])
        made.end(self._function.instructions[block.last - 1], label)
        source = "\n    ".join(["def block(c, R):", *made.lines])
        names = made.names
        exec(compile(source, f"<PTX block {block.number}>", "exec"), names)
        return names["block"]


class _Body:
    def __init__(self, module: Module, function: Function, symbols: Symbols, homes: list[Kind], block: Block):
        self._module = module
        self._function = function
        self._symbols = symbols
        self._homes = homes
        self._block = block
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"nz": np.count_nonzero, "where": np.where, "np": np}
        self._known: dict[int, dict[str, str]] = {}
        """The variables that hold a register, by its number and their views."""
        self._written: set[int] = set()
        self._line = 0
        self._temporaries = 0
        self._constants: dict[tuple[Any, ...], str] = {}
        for name, kind in KINDS.items():
            self.names[f"T_{name.replace('~', '_')}"] = kind.dtype

    # Operands --------------------------------------------------------------------------------------------------------

    def _wrong(self, message: str) -> Exception:
        return error_on_line(self._module, self._line, message)

    def _register(self, number: int, kind: Kind) -> str:
        """The variable that holds a register in a view."""
        known = self._known.get(number)
        home = self._homes[number]
        if known is None:
            variable = f"r{number}_{home.name}"
            self.lines.append(f"{variable} = R[{number}]")
            known = self._known[number] = {home.name: variable}
        if (found := known.get(kind.name)) is not None:
            return found
        have = next(iter(known))
        variable = f"r{number}_{kind.name.replace('~', '_')}"
        self.lines.append(f"{variable} = {self._viewed(known[have], KINDS[have], kind, number)}")
        known[kind.name] = variable
        return variable

    def _viewed(self, text: str, have: Kind, want: Kind, number: int) -> str:
        name = self._function.registers[number][0]
        if have.size == 0 or want.size == 0:
            raise self._wrong(f"the register '{name}' has another type than this instruction takes")
        if have.lanes > 1 and not have.flat and have.name != "q":
            text = f"np.ascontiguousarray({text})"
        if have.size < want.size:
            raise self._wrong(f"the register '{name}' has {8 * have.size} bits, this instruction takes {8 * want.size}")
        if have.size > want.size:
            if have.name == "q":
                raise self._wrong(f"the register '{name}' has 128 bits, this instruction takes {8 * want.size}")
            if have.name != PLAIN[have.size]:
                text = f"{text}.view(T_{PLAIN[have.size]})" + (".ravel()" if have.lanes > 1 else "")
            text = f"{text}.astype(T_{PLAIN[want.size]})"
            have = KINDS[PLAIN[want.size]]
        if have.dtype != want.dtype:
            text = f"{text}.view(T_{want.name.replace('~', '_')})"
        if want.lanes > 1 and not want.flat:
            return f"{text}.reshape(-1,{want.lanes})"
        return f"{text}.ravel()" if have.lanes > 1 and not have.flat else text

    def _constant(self, value: Any) -> str:
        key = (str(value.dtype), value.tobytes())
        if (name := self._constants.get(key)) is None:
            name = self._constants[key] = f"K{len(self._constants)}"
            self.names[name] = value
        return name

    def operand(self, operand: Operand, kind: Kind, *, spread: bool) -> str:
        """The expression of an operand; constants are spread over the threads, or scalars."""
        match operand:
            case Register(number=number):
                return self._register(number, kind)
            case Negated(register=register):
                if kind.size:
                    raise self._wrong("'!' is for predicates")
                return f"(~{self._register(register.number, kind)})"
            case Number() | Decimal():
                if kind.lanes > 1:
                    plain = KINDS[PLAIN[kind.size]]
                    if plain.name == "q":
                        raise self._wrong("a constant cannot have 128 bits")
                    return self._viewed(f"c.spread({self._constant(constant(operand, plain))})", plain, kind, 0)
                name = self._constant(constant(operand, kind))
                return f"c.spread({name})" if spread else name
            case Symbol():
                return self._symbol(operand, kind)
            case _:
                raise self._wrong("an operand is no value")

    def _symbol(self, operand: Symbol, kind: Kind) -> str:
        if kind.size == 0:
            raise self._wrong(f"'{operand.name}' is no predicate")
        if operand.name in SPECIALS:
            size = SPECIALS[operand.name]
            text = f"c.special({operand.name!r})"
            if operand.offset or kind.lanes > 1:
                raise self._wrong(f"'{operand.name}' cannot stand here")
            if size != kind.size:
                text = f"{text}.astype(T_{PLAIN[kind.size]})"
            return text if PLAIN[kind.size] == kind.name else f"{text}.view(T_{kind.name})"
        home = self._symbols.homes.get(operand.name)
        if home is None:
            raise self._wrong(f"the name '{operand.name}' is not declared")
        if kind.size not in (4, 8) or kind.lanes > 1:
            raise self._wrong(f"the address of '{operand.name}' cannot stand here")
        address = home.address + operand.offset
        if home.space == "shared":
            text = f"c.shared_address({address})"
            text = text if kind.size == 4 else f"{text}.astype(T_u8)"
        else:
            text = f"c.spread({self._constant(np.array(address % (1 << 8 * kind.size), PLAIN[kind.size])[()])})"
        return text if kind.name == PLAIN[kind.size] else f"{text}.view(T_{kind.name})"

    # Instructions ----------------------------------------------------------------------------------------------------

    def instruction(self, number: int, instruction: Instruction, step: Step | None) -> None:
        """Write the code of an instruction that is no branch."""
        self._line = instruction.line
        if step is None:
            return
        guard = None
        if instruction.guard is not None:
            guard = self._register(instruction.guard.number, KINDS["b"])
            guard = f"(~{guard})" if instruction.negated else guard
        # An expression of scalars alone would give a scalar.
        spread = (
            step.arrays
            or step.effect is not None
            or not any(isinstance(operand, Register | Negated | Symbol) for operand, _ in step.reads)
        )
        operands = [self.operand(operand, KINDS[kind], spread=spread) for operand, kind in step.reads]
        if step.effect is not None:
            self._effect(number, step, guard, operands)
            return
        text = step.code
        for name, value in step.names.items():
            unique = f"F{number}_{name}"
            text = text.replace(name, unique)
            self.names[unique] = value
        for place, operand in enumerate(operands):
            text = text.replace(f"{{{place}}}", operand)
        if len(step.writes) == 1:
            self._write(step.writes[0], text, guard)
            return
        results = [self._temporary() for _ in step.writes]
        self.lines.append(f"{', '.join(results)} = {text}")
        for write, result in zip(step.writes, results, strict=True):
            self._write(write, result, guard)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def _effect(self, number: int, step: Step, guard: str | None, operands: list[str]) -> None:
        name = f"E{number}"
        self.names[name] = step.effect
        self.lines.append(f"c.at = {number}")
        mask = "None"
        if guard is not None:
            mask = self._temporary()
            self.lines.append(f"{mask} = {guard}")
        call = f"{name}({', '.join(['c', mask, *operands])})"
        if not step.writes and not step.suspends:
            self.lines.append(call if guard is None else f"if nz({mask}): {call}")
            return
        result = self._temporary()
        self.lines.append(f"{result} = {call}")
        if step.suspends:
            self.lines.append(f"if {result} is None: return {self._block.number}")
        for place, write in enumerate(step.writes):
            single = result if len(step.writes) == 1 else f"{result}[{place}]"
            self._write(write, single, None if guard is None else mask)

    def _write(self, write: tuple[Register | None, str], text: str, guard: str | None) -> None:
        register, name = write
        if register is None:
            return
        number, kind = register.number, KINDS[name]
        home = self._homes[number]
        if (home.size == 0) != (kind.size == 0) or kind.size > home.size:
            shown, bits = self._function.registers[number][0], 8 * kind.size
            raise self._wrong(f"the register '{shown}' cannot hold the {bits or 1} bits of the result")
        if kind.size < home.size:
            signed = kind.dtype.kind == "i"
            part = self._temporary()
            self.lines.append(f"{part} = {text}")
            plain = f"{'i' if signed else 'u'}{kind.size}"
            if kind.name != plain:
                part = self._narrow(part, kind, plain)
            wide = f"{'i' if signed else 'u'}{home.size}" if home.size < 16 else "q"
            if wide == "q":
                raise self._wrong("a result of 128 bits is wanted")
            text = f"{part}.astype(T_{wide})" + (f".view(T_{home.name})" if wide != home.name else "")
            kind = home
        if guard is not None:
            old = self._register(number, home)
            if kind.name != home.name:
                new = self._temporary()
                self.lines.append(f"{new} = {text}")
                text, kind = self._viewed(new, kind, home, number), home
            text = f"where({guard}{'[:,None]' if home.lanes > 1 else ''}, {text}, {old})"
        variable = f"r{number}_{kind.name.replace('~', '_')}"
        self.lines.append(f"{variable} = {text}")
        self._known[number] = {kind.name: variable}
        self._written.add(number)

    def _narrow(self, text: str, kind: Kind, plain: str) -> str:
        if kind.lanes > 1:
            return f"np.ascontiguousarray({text}).view(T_{plain}).ravel()"
        return f"{text}.view(T_{plain})"

    # The end of the block --------------------------------------------------------------------------------------------

    def end(self, last: Instruction, label: Callable[[str], int]) -> None:
        """Write back what is alive, and say what comes next."""
        self._line = last.line
        guard = None
        if last.guard is not None and last.name in ("bra", "ret", "exit"):
            guard = self._register(last.guard.number, KINDS["b"])
        index = None
        if last.name == "brx":
            index = self.operand(last.operands[0], KINDS["u4"], spread=True)
            if last.guard is not None:
                raise self._wrong("a guarded 'brx' is not known")
        for number in sorted(self._written & self._block.live_out):
            self.lines.append(f"R[{number}] = {self._register(number, self._homes[number])}")
        following = self._block.successors[-1] if self._block.successors else EXIT
        if index is not None:
            targets = tuple(self._block.successors)
            self.lines.append(f"return c.table({index}, {targets!r}, {self._block.meets})")
            return
        if last.name == "bra":
            assert isinstance(last.operands[0], Symbol)
            target = label(last.operands[0].name)
        elif last.name in ("ret", "exit"):
            target = EXIT
        else:
            self.lines.append(f"return {following if last.name != 'trap' else EXIT}")
            return
        if guard is None:
            self.lines.append(f"return {target}")
            return
        yes, no = (following, target) if last.negated else (target, following)
        self.lines += [
            f"t = nz({guard})",
            f"if t == c.n: return {yes}",
            f"if t == 0: return {no}",
            f"return c.part({guard}, {yes}, {no}, {self._block.meets})",
        ]


def constant(operand: Number | Decimal, kind: Kind) -> Any:
    """A constant as a scalar of a view (PTX ISA, "Constants")."""
    if kind.size == 0:
        return np.bool_(bool(operand.value))
    is_float = kind.dtype.kind == "f" or kind.dtype.kind == "V" or kind.name in ("bf", "e4", "e5")
    if isinstance(operand, Number) and operand.float_bits:
        code = "<I" if operand.float_bits == 32 else "<Q"
        wide = struct.unpack("<f" if operand.float_bits == 32 else "<d", struct.pack(code, operand.value))[0]
        if not is_float:
            return np.array(operand.value % (1 << 8 * kind.size), f"u{kind.size}").view(kind.dtype)[()]
        if kind.size * 8 == operand.float_bits:
            return np.array(operand.value, f"u{kind.size}").view(kind.dtype)[()]
        return np.array(wide).astype(kind.dtype)[()]
    if isinstance(operand, Decimal):
        if is_float:
            return np.array(operand.value).astype(kind.dtype)[()]
        whole = int(operand.value) if math.isfinite(operand.value) else 0
        return np.array(whole % (1 << 8 * kind.size), f"u{kind.size}").view(kind.dtype)[()]
    # An integer where a float is wanted stands for its bits: LLVM writes packed constants so.
    return np.array(operand.value % (1 << 8 * kind.size), f"u{kind.size}").view(kind.dtype)[()]
