"""Put functions in the place of their calls (PTX ISA, "call").

    call.uni (retval0), helper, (param0);      ->   the body of helper, in which helper's parameters are param0,
                                                    its result is retval0, and each ret is a branch to its end

Registers, labels and variables of the body get names of their own for each call. What has no body (`vprintf`,
`__assertfail`) stays a call.
"""

from __future__ import annotations

from dataclasses import replace

from .faults import error_on_line
from .syntax import (
    Address,
    Arguments,
    Function,
    Instruction,
    Module,
    Negated,
    Operand,
    Pair,
    Place,
    Register,
    Symbol,
    Vector,
)

_DEEPEST = 32
_MOST_INSTRUCTIONS = 1_000_000


def inlined(module: Module, function: Function) -> Function:
    """A function without calls of functions that have a body.

    Raises PtxError for a function that calls itself, or does not exist.
    """
    if not any(each.name == "call" for each in function.instructions):
        return function
    made = _Inliner(module, function)
    made.add(function, {}, None, "", None, 0)
    return made.result


def call_parts(instruction: Instruction) -> tuple[tuple[Operand, ...], str, tuple[Operand, ...]] | None:
    """The results, the function and the arguments of a call; None for another form."""
    operands = list(instruction.operands)
    results: tuple[Operand, ...] = ()
    if operands and isinstance(first := operands[0], Arguments):
        results = first.items
        del operands[0]
    if not operands or not isinstance(name := operands.pop(0), Symbol):
        return None
    arguments: tuple[Operand, ...] = ()
    if operands and isinstance(last := operands[0], Arguments):
        arguments = last.items
        del operands[0]
    return None if operands else (results, name.name, arguments)


class _Inliner:
    def __init__(self, module: Module, function: Function):
        self._module = module
        self.result = replace(
            function, registers=[], instructions=[], labels={}, tables={}, variables=[]
        )  # fmt: skip
        self._copies = 0

    def add(
        self, function: Function, names: dict[str, str], end: str | None, suffix: str, called: Place | None, depth: int
    ) -> None:
        """Append a body: `names` are those of its parameters where it was called, `end` the label after it."""
        result = self.result
        base = len(result.registers)
        result.registers.extend(function.registers)
        for variable in function.variables:
            result.variables.append(replace(variable, name=variable.name + suffix))
        names = {**{variable.name: variable.name + suffix for variable in function.variables}, **names}
        names |= {label: label + suffix for label in function.labels}
        names |= {table: table + suffix for table in function.tables}
        for table, targets in function.tables.items():
            result.tables[table + suffix] = tuple(target + suffix for target in targets)
        labels_at: dict[int, list[str]] = {}
        for label, at in function.labels.items():
            labels_at.setdefault(at, []).append(label + suffix)
        for number, instruction in enumerate(function.instructions):
            for label in labels_at.get(number, ()):
                result.labels[label] = len(result.instructions)
            self._instruction(instruction, base, names, end, called, depth)
        for label in labels_at.get(len(function.instructions), ()):
            result.labels[label] = len(result.instructions)

    def _instruction(
        self,
        instruction: Instruction,
        base: int,
        names: dict[str, str],
        end: str | None,
        called: Place | None,
        depth: int,
    ) -> None:
        result = self.result
        if len(result.instructions) > _MOST_INSTRUCTIONS:
            raise error_on_line(self._module, instruction.line, "calls make this kernel too long")
        guard = None if instruction.guard is None else Register(instruction.guard.number + base)
        place = _called(instruction.place, called)
        operands = tuple(_moved(operand, base, names) for operand in instruction.operands)
        new = replace(instruction, operands=operands, guard=guard, place=place)
        if instruction.name == "ret" and end is not None:
            result.instructions.append(replace(new, opcode="bra", operands=(Symbol(end),)))
            return
        if instruction.name != "call":
            result.instructions.append(new)
            return
        parts = call_parts(new)
        callee = self._module.functions.get(parts[1]) if parts is not None else None
        if parts is None or callee is None:
            raise error_on_line(self._module, instruction.line, "this call names no function that is known")
        if not callee.has_body:
            result.instructions.append(new)
            return
        if depth >= _DEEPEST:
            raise error_on_line(
                self._module, instruction.line, f"'{callee.name}' calls itself, or calls are nested deeply"
            )
        results, _, arguments = parts
        given = (*zip(callee.results, results, strict=False), *zip(callee.parameters, arguments, strict=False))
        if len(results) != len(callee.results) or len(arguments) != len(callee.parameters):
            raise error_on_line(self._module, instruction.line, f"'{callee.name}' takes other arguments")
        own: dict[str, str] = {}
        for parameter, operand in given:
            if not isinstance(operand, Symbol):
                raise error_on_line(self._module, instruction.line, "arguments of calls are variables")
            own[parameter.name] = operand.name
        self._copies += 1
        suffix = f"@{self._copies}"
        after = f"end{suffix}"
        if guard is not None:
            skip = replace(new, opcode="bra", operands=(Symbol(after),), negated=not instruction.negated)
            result.instructions.append(skip)
        self.add(callee, own, after, suffix, place, depth + 1)
        result.labels[after] = len(result.instructions)


def _called(place: Place | None, called: Place | None) -> Place | None:
    if place is None or called is None:
        return place or called
    return replace(place, inlined_at=_called(place.inlined_at, called) if place.inlined_at else called)


def _moved(operand: Operand, base: int, names: dict[str, str]) -> Operand:
    match operand:
        case Register(number=number):
            return Register(number + base)
        case Negated(register=register):
            return Negated(Register(register.number + base))
        case Symbol(name=name, offset=offset):
            return Symbol(names.get(name, name), offset)
        case Vector(items=items):
            return Vector(tuple(_moved(item, base, names) for item in items))
        case Arguments(items=items):
            return Arguments(tuple(_moved(item, base, names) for item in items))
        case Pair(first=first, second=second):
            return Pair(_moved(first, base, names), _moved(second, base, names))
        case Address(base=start, offset=offset, parts=parts):
            moved = _moved(start, base, names)
            assert isinstance(moved, type(start))
            return Address(moved, offset, tuple(_moved(part, base, names) for part in parts))
        case _:
            return operand
