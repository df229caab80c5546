"""The body of a function: statements in nested blocks, each with names of its own (PTX ISA, "Syntax")."""

from __future__ import annotations

from dataclasses import replace

from .. import carries
from ..carries import CARRY, CARRY_TYPE
from .syntax import (
    SIZES,
    Address,
    Arguments,
    Decimal,
    Function,
    Instruction,
    Negated,
    Number,
    Operand,
    Pair,
    Place,
    Register,
    Symbol,
    Vector,
)
from .tokens import Tokens
from .variables import read_variables

_MOST_REGISTERS = 1 << 18
_DEEPEST = 64
"""Blocks inside of each other, and braces of an operand, at most."""
BRANCHES = ("bra", "brx", "call")


def read_body(tokens: Tokens, function: Function) -> None:
    """Read the block in braces that follows, and find the labels of its branches.

    Raises PtxError for what is not known.
    """
    tokens.expect("{")
    body = _Body(tokens, function)
    body.block()
    body.resolve()


class _Body:
    def __init__(self, tokens: Tokens, function: Function):
        self._tokens = tokens
        self._function = function
        self._scopes: list[dict[str, Register]] = []
        self._path: list[int] = []
        """The numbers of the blocks around a statement."""
        self._blocks = 0
        self._place: Place | None = None
        self._in_assembly = False
        self._labels: dict[tuple[int, str], str] = {}
        """The name in the function of a label, by its block and its own name."""
        self._uses: list[tuple[int, tuple[int, ...]]] = []
        """The instructions that name labels, with the blocks around them."""

    def block(self) -> None:
        """Read statements up to the closing brace."""
        if len(self._path) >= _DEEPEST:
            raise self._tokens.error(f"more than {_DEEPEST} blocks are inside of each other")
        self._blocks += 1
        self._scopes.append({})
        self._path.append(self._blocks)
        while not self._tokens.accept("}"):
            self._statement()
        self._scopes.pop()
        self._path.pop()

    def _statement(self) -> None:
        tokens = self._tokens
        token = tokens.next
        if token.kind == "asm":
            self._in_assembly = token.text == "begin"
            tokens.take()
        elif tokens.accept("{"):
            self.block()
        elif tokens.accept(";"):
            pass
        elif token.kind == "word" and token.text.startswith("."):
            self._directive()
        elif token.text == "@" or token.kind == "word":
            self._instruction()
        else:
            raise tokens.error(f"expected an instruction, found '{token.text}'")

    # Directives ------------------------------------------------------------------------------------------------------

    def _directive(self) -> None:
        tokens, function = self._tokens, self._function
        token = tokens.take()
        match token.text:
            case ".loc":
                place = self._loc()
                # Inside of inline assembly LLVM counts lines of the assembly.
                if not self._in_assembly:
                    self._place = place
            case ".reg":
                self._registers()
            case ".pragma":
                tokens.take()
                tokens.expect(";")
            case ".shared" | ".local" | ".param":
                variables = read_variables(tokens, token.text[1:], token.line)
                function.variables.extend(variables)
            case text:
                raise tokens.error(f"the directive '{text}' is not known", token.line)

    def _loc(self) -> Place:
        tokens = self._tokens
        file, line, column = tokens.integer(), tokens.integer(), tokens.integer()
        inlined_at = None
        while tokens.accept(","):
            word = tokens.word()
            if word == "function_name":
                tokens.word()
                if tokens.accept("+"):
                    tokens.integer()
            elif word == "inlined_at":
                inlined_at = Place(tokens.integer(), tokens.integer(), tokens.integer())
            else:
                raise tokens.error(f"'{word}' of '.loc' is not known")
        return Place(file, line, column, inlined_at)

    def _registers(self) -> None:
        tokens = self._tokens
        line = tokens.next.line
        type_ = tokens.word().removeprefix(".")
        if type_ not in SIZES:
            raise tokens.error(f"the type '.{type_}' is not known", line)
        while True:
            name = tokens.word()
            if tokens.accept("<"):
                count = tokens.integer()
                tokens.expect(">")
                if not 0 <= count <= _MOST_REGISTERS:
                    raise tokens.error(f"there cannot be {count} registers", line)
                for number in range(count):
                    self._declare(f"{name}{number}", type_)
            else:
                self._declare(name, type_)
            if not tokens.accept(","):
                break
        tokens.expect(";")

    def _declare(self, name: str, type_: str) -> None:
        registers = self._function.registers
        if len(registers) >= _MOST_REGISTERS:
            raise self._tokens.error(f"there are more than {_MOST_REGISTERS} registers")
        self._scopes[-1][name] = Register(len(registers))
        registers.append((name, type_))

    # Instructions ----------------------------------------------------------------------------------------------------

    def _instruction(self) -> None:
        tokens, function = self._tokens, self._function
        guard, negated, line = None, False, tokens.next.line
        if tokens.accept("@"):
            negated = tokens.accept("!")
            guard = self._register(tokens.word())
        line = tokens.next.line
        opcode = tokens.word()
        if guard is None and tokens.accept(":"):
            self._label(opcode, line)
            return
        operands: list[Operand] = []
        while not tokens.accept(";"):
            if tokens.next.kind == "asm":
                raise tokens.error(f"expected ';' after '{opcode}'")
            operands.append(self._operand(0))
            if not tokens.accept(",") and tokens.next.text not in (";", "("):
                raise tokens.error(f"expected ',' or ';', found '{tokens.next.text}'")
        operands.extend(self._carry() for _ in range(carries.leaves(opcode) + carries.takes(opcode)))
        if opcode.partition(".")[0] in BRANCHES:
            self._uses.append((len(function.instructions), tuple(self._path)))
        function.instructions.append(Instruction(opcode, tuple(operands), line, self._place, guard, negated))

    def _carry(self) -> Register:
        """The register that holds the carry, which no PTX declares."""
        scope = self._scopes[0]
        if CARRY not in scope:
            scope[CARRY] = Register(len(self._function.registers))
            self._function.registers.append((CARRY, CARRY_TYPE))
        return scope[CARRY]

    def _label(self, name: str, line: int) -> None:
        function, tokens = self._function, self._tokens
        if tokens.accept(".branchtargets"):
            targets = [tokens.word()]
            while tokens.accept(","):
                targets.append(tokens.word())
            tokens.expect(";")
            function.tables[name] = tuple(targets)
            return
        if tokens.next.text == ".callprototype":
            raise tokens.error("calls through a prototype are not known")
        key = (self._path[-1], name)
        if key in self._labels:
            raise tokens.error(f"the label '{name}' is there twice", line)
        unique = name if name not in function.labels else f"{name}#{self._path[-1]}"
        self._labels[key] = unique
        function.labels[unique] = len(function.instructions)

    def _register(self, name: str) -> Register:
        for scope in reversed(self._scopes):
            if (found := scope.get(name)) is not None:
                return found
        raise self._tokens.error(f"the register '{name}' is not declared")

    def _operand(self, depth: int) -> Operand:
        tokens = self._tokens
        if depth > _DEEPEST:
            raise tokens.error(f"an operand has more than {_DEEPEST} braces inside of each other")
        token = tokens.next
        if tokens.accept("{"):
            return Vector(tuple(self._items("}", depth)))
        if tokens.accept("("):
            return Arguments(tuple(self._items(")", depth)))
        if tokens.accept("["):
            return self._address(depth)
        if tokens.accept("!"):
            return Negated(self._register(tokens.word()))
        if token.kind == "number" or token.text == "-":
            negative = tokens.accept("-")
            if tokens.next.kind != "number":
                raise tokens.error(f"expected a number, found '{tokens.next.text}'")
            number = tokens.number(tokens.take())
            if negative:
                number = Decimal(-number.value) if isinstance(number, Decimal) else Number(-number.value)
            return number
        first = self._name(tokens.word() if token.kind == "word" else self._no_operand())
        if tokens.accept("|"):
            return Pair(first, self._name(tokens.word()))
        if tokens.next.text in ("+", "-") and isinstance(first, Symbol):
            return Symbol(first.name, self._offset())
        return first

    def _no_operand(self) -> str:
        raise self._tokens.error(f"expected an operand, found '{self._tokens.next.text}'")

    def _items(self, end: str, depth: int) -> list[Operand]:
        items: list[Operand] = []
        while not self._tokens.accept(end):
            items.append(self._operand(depth + 1))
            if not self._tokens.accept(",") and self._tokens.next.text != end:
                raise self._tokens.error(f"expected ',' or '{end}', found '{self._tokens.next.text}'")
        return items

    def _name(self, name: str) -> Register | Symbol:
        for scope in reversed(self._scopes):
            if (found := scope.get(name)) is not None:
                return found
        return Symbol(name)

    def _offset(self) -> int:
        total = 0
        while self._tokens.next.text in ("+", "-"):
            sign = 1 if self._tokens.take().text == "+" else -1
            total += sign * self._tokens.integer()
        return total

    def _address(self, depth: int) -> Address:
        tokens = self._tokens
        base: Register | Symbol | Number
        if tokens.next.kind == "number":
            number = tokens.number(tokens.take())
            if not isinstance(number, Number):
                raise tokens.error("an address must be an integer")
            base = number
        else:
            base = self._name(tokens.word())
        offset = self._offset()
        parts: list[Operand] = []
        while tokens.accept(","):
            parts.append(self._operand(depth + 1))
        tokens.expect("]")
        return Address(base, offset, tuple(parts))

    # Labels ----------------------------------------------------------------------------------------------------------

    def resolve(self) -> None:
        """Put the names of labels in the function in the place of those in their blocks."""
        instructions = self._function.instructions
        for number, path in self._uses:
            before = instructions[number]
            operands = tuple(
                Symbol(self._unique(each.name, path), each.offset) if isinstance(each, Symbol) else each
                for each in before.operands
            )
            instructions[number] = replace(before, operands=operands)
        for name, targets in self._function.tables.items():
            self._function.tables[name] = tuple(self._unique(target, (1,)) for target in targets)

    def _unique(self, name: str, path: tuple[int, ...]) -> str:
        for block in reversed(path):
            if (found := self._labels.get((block, name))) is not None:
                return found
        return name
