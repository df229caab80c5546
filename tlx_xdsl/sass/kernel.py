"""PTX as steps: what each instruction computes of integers (PTX ISA, "Integer Arithmetic Instructions" and others)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tlx_xdsl.ptx import carries
from tlx_xdsl.ptx.compute import COMPARISONS
from tlx_xdsl.ptx.read.faults import location_of
from tlx_xdsl.ptx.read.syntax import (
    Address,
    Function,
    Instruction,
    Module,
    Negated,
    Number,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

from . import accesses as words
from .integers import logic
from .operands import NotKnownError
from .program import Access, Step

BITS = {"pred": 1, **{f"{kind}{bits}": bits for kind in "busf" for bits in (8, 16, 32, 64, 128)}}
"""The bits of a register by the name of its type."""


class Translator:
    """Makes the steps of a kernel."""

    def __init__(self, module: Module, function: Function, symbols: Mapping[str, str]):
        """Take the kernel; `symbols` has the expressions of its variables, parameters and special registers."""
        self._module = module
        self._function = function
        self._symbols = symbols
        self._rules: dict[str, Callable[[Instruction], list[str]]] = {
            **dict.fromkeys(("add", "sub", "div", "rem", "min", "max", "neg", "abs", "sad"), self._arithmetic),
            **dict.fromkeys(("and", "or", "xor", "not", "lop3"), self._logic),
            **dict.fromkeys(("shl", "shr"), self._shift),
            **dict.fromkeys(("bfe", "bfi"), self._field),
            **dict.fromkeys(("popc", "brev", "clz", "bfind"), self._count),
            "mul": self._product,
            "mad": self._product,
            "addc": self._carried,
            "shf": self._funnel,
            "prmt": self._permute,
            "mov": self._move,
            "selp": self._choose,
            "setp": self._compare,
            "cvt": self._convert,
            "cvta": self._generic,
            "ld": self._load,
            "elect": self._elect,
            "shfl": self._shuffle,
            "vote": self._vote,
            "activemask": self._active,
            "redux": self._reduce,
            "mapa": self._remote,
            "mbarrier": self._waited,
        }
        self.steps: list[Step] = []
        self.accesses: list[Access] = []
        # Most labels are of the debugger: blocks begin where branches lead.
        leaders = {0, *(function.labels[name] for names in function.tables.values() for name in names)}
        for number, item in enumerate(function.instructions):
            if item.name in ("bra", "brx", "ret", "exit", "trap"):
                leaders.add(number + 1)
            if item.name == "bra" and isinstance(target := item.operands[0], Symbol):
                leaders.add(function.labels[target.name])
        for item in function.instructions:
            self.steps.append(self._step(item))
        self.starts = {each: each for each in leaders if each < len(self.steps)}

    # Operands --------------------------------------------------------------------------------------------------------

    def _name(self, register: Register) -> str:
        kind = "P" if self._function.registers[register.number][1] == "pred" else "r"
        return f"{kind}{register.number}"

    def _value(self, operand: Operand, bits: int, *, is_signed: bool = False) -> str:
        mask = (1 << bits) - 1
        if isinstance(operand, Register):
            name = self._name(operand)
            size = BITS.get(self._function.registers[operand.number][1], 0)
            if is_signed and size == bits:
                return f"(({name} ^ {1 << (bits - 1)}) - {1 << (bits - 1)})"
            if is_signed:
                return f"signed({name}, {bits})"
            return f"({name} & {mask})" if size > bits else name
        if isinstance(operand, Number):
            value = operand.value & mask
            if is_signed and value >> (bits - 1):
                value -= 1 << bits
            return str(value)
        if isinstance(operand, Symbol):
            if (found := self._symbols.get(operand.name)) is None:
                raise NotKnownError(operand.name)
            return f"({found} + {operand.offset} & {mask})" if operand.offset else found
        if isinstance(operand, Negated):
            return f"({self._name(operand.register)} ^ True)"
        if isinstance(operand, Vector) and bits % max(1, len(operand.items)) == 0:
            each = bits // len(operand.items)
            parts = [f"{self._value(item, each)} << {each * place}" for place, item in enumerate(operand.items)]
            return f"({' | '.join(parts)})"
        raise NotKnownError(type(operand).__name__)

    def _address(self, operand: Operand, bits: int) -> str:
        if not isinstance(operand, Address):
            raise NotKnownError(type(operand).__name__)
        base = self._value(operand.base, 64 if bits == 64 else 32)
        return f"({base} + {operand.offset} & {(1 << bits) - 1})" if operand.offset else base

    def _written(self, operand: Operand) -> list[Register]:
        match operand:
            case Register():
                return [operand]
            case Vector(items):
                return [each for item in items for each in self._written(item)]
            case Pair(first, second):
                return [*self._written(first), *self._written(second)]
            case _:
                return []

    def _read(self, operand: Operand) -> list[Register]:
        match operand:
            case Register():
                return [operand]
            case Negated(register):
                return [register]
            case Address(base, _, parts):
                return [each for part in (base, *parts) for each in self._read(part)]
            case Vector(items):
                return [each for item in items for each in self._read(item)]
            case _:
                return []

    # Instructions ----------------------------------------------------------------------------------------------------

    def _step(self, item: Instruction) -> Step:
        step = Step()
        if item.guard is not None:
            step.guard = f"({self._name(item.guard)} ^ True)" if item.negated else self._name(item.guard)
            step.sources = (self._name(item.guard),)
        operands = item.operands
        if item.name in ("ret", "exit", "trap"):
            step.ends = True
            return step
        if item.name in ("bra", "brx"):
            self._branch(step, item)
            return step
        step.sources += tuple(self._name(each) for operand in operands for each in self._read(operand))
        step.targets = tuple(self._name(each) for each in self._written(operands[0])) if operands else ()
        if carries.leaves(item.opcode):
            step.targets += tuple(self._name(each) for each in self._written(operands[3]))
        if item.name in ("st", "stmatrix", "red") or item.opcode.startswith(
            ("cp.", "mbarrier.arrive", "mbarrier.init")
        ):
            step.targets = ()
        self._access(step, item)
        try:
            made = self._effect(item)
        except NotKnownError:
            made = None
        step.code = tuple(made or ())
        return step

    def _branch(self, step: Step, item: Instruction) -> None:
        if item.name == "bra" and isinstance(target := item.operands[0], Symbol):
            step.jump = f"where({self._function.labels[target.name]})"
        elif item.name == "brx" and isinstance(table := item.operands[1], Symbol):
            targets = [self._function.labels[each] for each in self._function.tables[table.name]]
            step.jump = f"where(dict(enumerate({targets})).get({self._value(item.operands[0], 32)}, U))"
            step.sources += tuple(self._name(each) for each in self._read(item.operands[0]))
        else:
            step.jump = "where(U)"

    def _access(self, step: Step, item: Instruction) -> None:
        try:
            found = self._accessed(item)
        except NotKnownError:
            kind = _kind(item.opcode)
            found = None if kind is None else (kind, words.NOT_KNOWN, ["U"], 0, True)
        if found is None:
            return
        kind, names, operands, size, is_ordered = found
        step.access, step.event = len(self.accesses), "".join(f"{each}, " for each in operands)
        text = " ".join((self._module.line_text(item.line) or item.opcode).split())
        self.accesses.append(
            Access(kind, text, names, size, item.line, location_of(self._module, item.place), is_ordered)
        )

    def _accessed(self, item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool] | None:
        opcode, operands = item.opcode, item.operands
        match item.name:
            case "wgmma" if "mma_async" in opcode:
                return self._tensor_product(item)
            case "ld" | "st" | "atom" | "red":
                return self._plain(item)
            case "ldmatrix":
                return (
                    f"{words.MATRIX_LOAD} of {words.SHARED}",
                    ("address",),
                    [self._address(operands[1], 32)],
                    16,
                    False,
                )
            case "stmatrix":
                return (
                    f"{words.MATRIX_STORE} of {words.SHARED}",
                    ("address",),
                    [self._address(operands[0], 32)],
                    16,
                    False,
                )
            case "cp" if opcode.startswith(("cp.async.ca", "cp.async.cg")):
                size = operands[2].value if isinstance(operands[2], Number) else 0
                where = [self._address(operands[0], 32), self._address(operands[1], 64)]
                reads = f"({self._value(operands[3], 32)} != 0)" if len(operands) > 3 else "True"
                return words.COPY, words.COPY_NAMES, [*where, _descriptor(item), reads], size, True
            case "cp" if ".bulk." in opcode and not {"prefetch", "commit_group", "wait_group"} & set(item.modifiers):
                return self._bulk(item)
            case "mbarrier":
                return self._barrier(item)
            case _:
                return None

    def _tensor_product(self, item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool]:
        _, one, other, adds, *_ = item.operands
        descriptor = self._value(other, 64)
        added = self._value(adds, 1) if not isinstance(adds, Number) else str(adds.value != 0)
        if isinstance(one, Vector):
            return words.WGMMA, ("descriptor of B", words.ADDS), [descriptor, added], 0, True
        names = ("descriptor of A", "descriptor of B", words.ADDS)
        return words.WGMMA, names, [self._value(one, 64), descriptor, added], 0, True

    def _plain(self, item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool] | None:
        modifiers = item.modifiers
        if any(each in ("param", "local", "const") or each.startswith("param::") for each in modifiers):
            return None
        kind = {"ld": words.LOAD, "st": words.STORE}.get(item.name, words.ATOMIC)
        if "shared::cluster" in modifiers:
            # The machine makes a generic address of it, in a way of its own.
            return f"{kind} {words.GENERIC}", ("address",), ["U"], 0, kind == words.ATOMIC
        spaces = {"shared": words.SHARED, "global": words.GLOBAL}
        space = next((spaces[name] for each in modifiers if (name := each.partition("::")[0]) in spaces), words.GENERIC)
        bits = 32 if space == words.SHARED else 64
        place = next(each for each in item.operands if isinstance(each, Address))
        names, operands = ("address",), [self._address(place, bits)]
        if space != words.SHARED:
            names, operands = ("address", words.DESCRIPTOR), [*operands, _descriptor(item)]
        return f"{kind} {space}", names, operands, self._size(item), kind == words.ATOMIC

    def _size(self, item: Instruction) -> int:
        size = next((BITS[each] // 8 for each in reversed(item.modifiers) if each in BITS), 0) or 2
        return size * next((int(each[1:]) for each in item.modifiers if each in ("v2", "v4", "v8")), 1)

    def _bulk(self, item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool] | None:
        opcode, operands = item.opcode, item.operands
        if ".bulk.tensor" not in opcode:
            if opcode.startswith("cp.async.bulk.shared"):
                where = [self._address(operands[0], 32), self._address(operands[1], 64)]
                return words.BULK_COPY, (words.SHARED, words.GLOBAL), where, 0, True
            raise NotKnownError(opcode)
        if "gather4" in opcode or "scatter4" in opcode or "im2col" in opcode:
            raise NotKnownError(opcode)
        if opcode.startswith("cp.async.bulk.tensor") and ".shared" in opcode.partition(".global")[0]:
            kind, (to, tensor, barrier) = words.TMA_LOAD, operands[:3]
            first = [self._address(to, 32), self._address(barrier, 32), self._address(tensor, 64)]
        else:
            kind = words.TMA_REDUCTION if "reduce" in opcode else words.TMA_STORE
            tensor, source = operands[:2]
            first = [self._address(source, 32), self._address(tensor, 64)]
        if not isinstance(tensor, Address) or not tensor.parts or not isinstance(tensor.parts[0], Vector):
            raise NotKnownError(opcode)
        places = [self._value(each, 32) for each in tensor.parts[0].items]
        return kind, (*words.TMA_NAMES[kind], *words.coordinates(len(places))), [*first, *places], 0, True

    def _barrier(self, item: Instruction) -> tuple[str, tuple[str, ...], list[str], int, bool] | None:
        what = item.modifiers[0]
        place = next((each for each in item.operands if isinstance(each, Address)), None)
        if place is None:
            return None
        where = self._address(place, 32)
        if what in ("init", "inval"):
            return (words.INIT if what == "init" else words.INVALIDATION), ("barrier",), [where], 0, True
        if what.startswith("arrive"):
            return words.ARRIVAL, ("barrier",), [where], 0, True
        if what in ("try_wait", "test_wait") and "parity" in item.modifiers:
            return words.WAIT, ("barrier", "phase"), [where, f"{self._value(item.operands[2], 32)} & 1"], 0, True
        return None

    # What is computed ------------------------------------------------------------------------------------------------

    def _effect(self, item: Instruction) -> list[str] | None:
        rule = self._rules.get(item.name)
        return None if rule is None else rule(item)

    def _assign(self, operand: Operand, value: str) -> list[str]:
        if not isinstance(operand, Register):
            raise NotKnownError(value)
        return [f"{self._name(operand)} = {value}"]

    def type_of(self, item: Instruction) -> tuple[int, bool]:
        """The bits of the type of an instruction, and whether it is signed."""
        name = next((each for each in reversed(item.modifiers) if each in BITS or each[:1] in "fb"), "")
        if name not in BITS or name.startswith("f"):
            raise NotKnownError(item.opcode)
        return BITS[name], name.startswith("s")

    def _arithmetic(self, item: Instruction) -> list[str]:
        bits, is_signed = self.type_of(item)
        mask, to, sources = (1 << bits) - 1, item.operands[0], item.operands[1:]
        if "cc" in item.modifiers and item.name == "add":
            return self._carried(item)
        if {"sat", "cc"} & set(item.modifiers):
            raise NotKnownError(item.opcode)
        plain = [self._value(each, bits) for each in sources]
        ordered = [self._value(each, bits, is_signed=is_signed) for each in sources]
        match item.name:
            case "add" | "sub":
                value = f"{plain[0]} {'+' if item.name == 'add' else '-'} {plain[1]}"
            case "div":
                value = f"quotient({ordered[0]}, {ordered[1]})"
            case "rem":
                value = f"remainder({ordered[0]}, {ordered[1]})"
            case "min" | "max":
                value = f"{'least' if item.name == 'min' else 'most'}({ordered[0]}, {ordered[1]})"
            case "neg":
                value = f"-{plain[0]}"
            case "sad":
                value = f"abs({ordered[0]} - {ordered[1]}) + {plain[2]}"
            case "abs":
                value = f"abs({ordered[0]})"
            case _:
                raise NotKnownError(item.opcode)
        return self._assign(to, f"({value}) & {mask}")

    def _product(self, item: Instruction) -> list[str]:
        bits, is_signed = self.type_of(item)
        to, one, other, *added = item.operands
        if {"sat", "cc"} & set(item.modifiers):
            raise NotKnownError(item.opcode)
        value = f"{self._value(one, bits, is_signed=is_signed)} * {self._value(other, bits, is_signed=is_signed)}"
        wide = 2 * bits if "wide" in item.modifiers else bits
        if "hi" in item.modifiers:
            value = f"({value} >> {bits})"
        if added:
            value += f" + {self._value(added[0], wide)}"
        return self._assign(to, f"({value}) & {(1 << wide) - 1}")

    def _carried(self, item: Instruction) -> list[str]:
        """Sums with a carry from the instruction before, or for the one after."""
        bits, _ = self.type_of(item)
        to, one, other, *rest = item.operands
        terms = [self._value(one, bits), self._value(other, bits)]
        if item.name == "addc":
            terms.append(self._value(rest[-1], 1))
        made = ["s = " + " + ".join(terms), *self._assign(to, f"s & {(1 << bits) - 1}")]
        return made + (self._assign(rest[0], f"s >> {bits}") if "cc" in item.modifiers else [])

    def _logic(self, item: Instruction) -> list[str]:
        bits, _ = self.type_of(item)
        values = [self._value(each, bits) for each in item.operands[1:]]
        if bits == 1:
            values = [
                str(each.value != 0) if isinstance(each, Number) else value
                for each, value in zip(item.operands[1:], values, strict=True)
            ]
        if item.name == "not":
            return self._assign(item.operands[0], f"{values[0]} ^ {True if bits == 1 else (1 << bits) - 1}")
        if item.name == "lop3":
            *names, table = item.operands[1:]
            if not isinstance(table, Number):
                raise NotKnownError(item.opcode)
            one, other, third = (self._value(each, bits) for each in names)
            return self._assign(item.operands[0], logic(table.value, (one, other, third)))
        sign = {"and": "&", "or": "|", "xor": "^"}[item.name]
        return self._assign(item.operands[0], f"{values[0]} {sign} {values[1]}")

    def _shift(self, item: Instruction) -> list[str]:
        bits, is_signed = self.type_of(item)
        to, value, amount = item.operands
        count = self._value(amount, 32)
        if item.name == "shl":
            return self._assign(to, f"left({self._value(value, bits)}, {count}, {bits})")
        moved = f"right({self._value(value, bits, is_signed=is_signed)}, {count}, {bits})"
        return self._assign(to, f"{moved} & {(1 << bits) - 1}")

    def _funnel(self, item: Instruction) -> list[str]:
        to, low, high, amount = item.operands
        to_left, wraps = "l" in item.modifiers, "wrap" in item.modifiers
        where = f"to_left={to_left}, wraps={wraps}, takes_high={to_left}, is_signed=False"
        return self._assign(
            to, f"funnel({self._value(low, 32)}, {self._value(high, 32)}, {self._value(amount, 32)}, {where})"
        )

    def _field(self, item: Instruction) -> list[str]:
        bits, is_signed = self.type_of(item)
        to, *sources = item.operands
        if item.name == "bfi":
            value, into = (self._value(each, bits) for each in sources[:2])
            at, length = (self._value(each, 32) for each in sources[2:])
            return self._assign(to, f"inserted({value}, {into}, {at}, {length}, {bits}) & {(1 << bits) - 1}")
        value, at, length = self._value(sources[0], bits), *(self._value(each, 32) for each in sources[1:])
        return self._assign(to, f"field({value}, {at}, {length}, {bits}, is_signed={is_signed})")

    def _permute(self, item: Instruction) -> list[str]:
        if item.opcode != "prmt.b32":
            raise NotKnownError(item.opcode)
        one, other, selector = (self._value(each, 32) for each in item.operands[1:])
        return self._assign(item.operands[0], f"permute({one}, {other}, {selector})")

    def _move(self, item: Instruction) -> list[str]:
        bits, _ = self.type_of(item) if item.modifiers[-1] not in ("f32", "f64") else (BITS[item.modifiers[-1]], False)
        to, source = item.operands
        if bits == 1:
            if isinstance(source, Number):
                return self._assign(to, str(source.value != 0))
            return self._assign(to, self._value(source, 1))
        if isinstance(to, Vector):
            each = bits // len(to.items)
            made = [f"t = {self._value(source, bits)}"]
            for place, item_ in enumerate(to.items):
                if isinstance(item_, Register):
                    made += self._assign(item_, f"t >> {each * place} & {(1 << each) - 1}")
            return made
        return self._assign(to, self._value(source, bits))

    def _choose(self, item: Instruction) -> list[str]:
        bits = BITS.get(item.modifiers[-1], 0)
        to, one, other, which = item.operands
        if not bits:
            raise NotKnownError(item.opcode)
        return self._assign(
            to, f"select({self._value(which, 1)}, {self._value(one, bits)}, {self._value(other, bits)})"
        )

    def _compare(self, item: Instruction) -> list[str]:
        bits, is_signed = self.type_of(item)
        to, one, other, *rest = item.operands
        sign = COMPARISONS.get(item.modifiers[0])
        if sign is None or len(item.modifiers) > (3 if rest else 2):
            raise NotKnownError(item.opcode)
        value = (
            f"({self._value(one, bits, is_signed=is_signed)} {sign} {self._value(other, bits, is_signed=is_signed)})"
        )
        if rest:
            joined = {"and": "&", "or": "|", "xor": "^"}[item.modifiers[1]]
            value = f"{value} {joined} {self._value(rest[0], 1)}"
        if isinstance(to, Pair):
            if rest:
                raise NotKnownError(item.opcode)
            return ["t = " + value, *self._assign(to.first, "t"), *self._assign(to.second, "t ^ True")]
        return self._assign(to, value)

    def _convert(self, item: Instruction) -> list[str]:
        to_type, from_type = item.modifiers[-2:]
        if to_type not in BITS or from_type not in BITS or "f" in (to_type[0], from_type[0]) or "sat" in item.modifiers:
            raise NotKnownError(item.opcode)
        value = self._value(item.operands[1], BITS[from_type], is_signed=from_type[0] == "s")
        to = item.operands[0]
        if not isinstance(to, Register):
            raise NotKnownError(item.opcode)
        # A narrower result is extended to its register as its type says.
        held = BITS[self._function.registers[to.number][1]]
        bits = BITS[to_type]
        value = f"{value} & {(1 << bits) - 1}"
        if to_type[0] == "s" and held > bits:
            value = f"signed({value}, {bits}) & {(1 << held) - 1}"
        return self._assign(to, value)

    def _generic(self, item: Instruction) -> list[str]:
        value = self._value(item.operands[1], 64)
        if any(each.startswith("shared") for each in item.modifiers) and "to" not in item.modifiers:
            value = f"{value} | special('SR_SWINHI') << 32"
        if any(each.startswith("param") for each in item.modifiers):
            value = f"{value} + special('parameters') & M64"
        return self._assign(item.operands[0], value)

    def _load(self, item: Instruction) -> list[str]:
        to, place = item.operands[:2]
        size = self._size(item)
        if "param" in item.modifiers:
            if not isinstance(place, Address) or not isinstance(place.base, Symbol):
                raise NotKnownError(item.opcode)
            where = f"{self._symbols[f'[{place.base.name}]']} + {place.offset}"
            read = "param"
        elif {"local", "const"} & set(item.modifiers):
            raise NotKnownError(item.opcode)
        else:
            space, bits = ("s", 32) if any(each.startswith("shared") for each in item.modifiers) else ("g", 64)
            where, read = self._address(place, bits), f"ld('{space}',"
        registers = to.items if isinstance(to, Vector) else (to,)
        each = size // len(registers)
        type_ = next(name for name in reversed(item.modifiers) if name in BITS)
        made = [f"t = {where}"]
        for number, register in enumerate(registers):
            if isinstance(register, Register):
                value = (
                    f"{read} t + {each * number}, {each})"
                    if read != "param"
                    else f"param(constant, t + {each * number}, {each})"
                )
                held = BITS[self._function.registers[register.number][1]]
                if type_[0] == "s" and held > 8 * each:
                    value = f"signed({value}, {8 * each}) & {(1 << held) - 1}"
                made += self._assign(register, value)
        return made

    def _count(self, item: Instruction) -> list[str]:
        bits, is_signed = self.type_of(item)
        value = self._value(item.operands[1], bits)
        match item.name:
            case "popc":
                value = f"ones({value})"
            case "brev":
                value = f"reversed_bits({value}, {bits})"
            case "clz":
                value = f"{bits} - 1 - signed(leading({value}, {bits}))"
            case _:
                value = f"leading({value}, {bits}, is_signed={is_signed}, shift={'shiftamt' in item.modifiers})"
        return self._assign(item.operands[0], value)

    def _elect(self, item: Instruction) -> list[str]:
        to = item.operands[0]
        first, second = (to.first, to.second) if isinstance(to, Pair) else (None, to)
        made = self._assign(second, "True")
        return made + (self._assign(first, self._symbols["%laneid"]) if isinstance(first, Register) else [])

    def _shuffle(self, item: Instruction) -> list[str]:
        to = item.operands[0]
        first, second = (to.first, to.second) if isinstance(to, Pair) else (to, None)
        made = self._assign(first, self._value(item.operands[1], 32))
        return made + (self._assign(second, "True") if isinstance(second, Register) else [])

    def _vote(self, item: Instruction) -> list[str]:
        to, value = item.operands[:2]
        if "ballot" in item.modifiers:
            return self._assign(to, f"select({self._value(value, 1)}, 1 << {self._symbols['%laneid']}, 0)")
        return self._assign(to, self._value(value, 1))

    def _active(self, item: Instruction) -> list[str]:
        return self._assign(item.operands[0], f"1 << {self._symbols['%laneid']}")

    def _reduce(self, item: Instruction) -> list[str]:
        return self._assign(item.operands[0], self._value(item.operands[1], 32))

    def _remote(self, item: Instruction) -> list[str]:
        if "u32" not in item.modifiers or not any(each.startswith("shared") for each in item.modifiers):
            raise NotKnownError(item.opcode)
        to, place, rank = item.operands
        return self._assign(to, f"{self._value(place, 32)} & 0xffffff | ({self._value(rank, 32)} << 24 & M)")

    def _waited(self, item: Instruction) -> list[str]:
        if item.modifiers[0] not in ("try_wait", "test_wait"):
            raise NotKnownError(item.opcode)
        return self._assign(item.operands[0], "is_over()")


def _kind(opcode: str) -> str | None:
    """The kind of a copy or a product in a form that is not known."""
    if opcode.startswith("wgmma.mma"):
        return words.WGMMA
    if not opcode.startswith("cp.") or "prefetch" in opcode or "group" in opcode.split(".")[-1]:
        return None
    if ".bulk.tensor" not in opcode:
        return words.BULK_COPY if ".bulk." in opcode else None
    if "reduce" in opcode:
        return words.TMA_REDUCTION
    return words.TMA_LOAD if ".shared" in opcode.partition(".global")[0] else words.TMA_STORE


def _descriptor(item: Instruction) -> str:
    """Return what an access to global memory names beside its address; a policy of the caches is not known."""
    return "U" if "cache_hint" in item.opcode else words.LAUNCH_DESCRIPTOR
