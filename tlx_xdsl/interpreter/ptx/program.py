"""A straight line of PTX, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.ptx.conversions import CONVERSIONS
from tlx_xdsl.numerics.ptx.instructions import ACROSS_LANES, INSTRUCTIONS, TYPES, Compiled, PtxType, Vectors

from .registers import Registers
from .text import Statement, UnknownInstruction, parse

_NOTHING = frozenset(("griddepcontrol", "nanosleep", "prefetch"))
"""Instructions that change nothing here: launches follow each other, and hints are hints."""


class Program:
    """PTX whose registers `$0`, `$1`, ... are its results and its arguments."""

    def __init__(self, code: str):
        statements, self._declared = parse(code)
        self._steps = [
            (statement, compile_statement(statement)) for statement in statements if statement.name not in _NOTHING
        ]

    @property
    def crosses_lanes(self) -> bool:
        """Return whether a thread gets something of the others of its warp."""
        return any(statement.name in ACROSS_LANES for statement, _ in self._steps)

    def run(
        self,
        count: int,
        arguments: Mapping[str, Array],
        results: Mapping[str, int],
        special: Callable[[str], int | None],
    ) -> dict[str, Array]:
        """Run for `count` threads.

        `arguments` holds the bits of registers, `results` the width of each one that is wanted. A register of both is
        an argument that is changed. Raises UnknownInstruction for a register that is not declared, or for a
        special one for which `special` gives None.
        """
        registers = Registers(count, special)
        declare(registers, self._declared)
        for name, bits in results.items():
            registers.declare(name, bits)
        for name, values in arguments.items():
            registers.set(name, values)
        for statement, compiled in self._steps:
            step_statement(registers, statement, compiled)
        return {name: registers.get(name) for name in results}


def declare(registers: Registers, declared: Mapping[str, str]) -> None:
    """Make the registers that PTX declares, by their types."""
    for name, type_ in declared.items():
        registers.declare(name, TYPES[type_].bits if type_ != "pred" else 1)


def compile_statement(statement: Statement) -> Compiled:
    """Return what runs an instruction that computes with registers.

    Raises UnknownInstruction for any other.
    """
    types = [TYPES[part] for part in statement.modifiers if part in TYPES]
    modifiers = frozenset(part for part in statement.modifiers if part not in TYPES)
    build = INSTRUCTIONS.get(statement.name) or CONVERSIONS.get(statement.name)
    compiled = None if build is None or not types else build(modifiers, types)
    if compiled is None:
        raise UnknownInstruction(f"the interpreter can't run the PTX instruction '{statement.text}'")
    return compiled


def step_statement(registers: Registers, statement: Statement, compiled: Compiled) -> None:
    """Run an instruction for the threads whose guard holds.

    Raises UnknownInstruction where operands do not fit it, or name no register.
    """
    where: Array | None = None
    if statement.guard is not None:
        where = registers.get(statement.guard) != statement.negated
    with np.errstate(all="ignore"):
        result = compiled.run(*_sources(registers, statement, compiled))
    targets = statement.operands[0]
    if isinstance(targets, tuple):
        _unpack(registers, targets, result, where)
        return
    values: tuple[Array, ...] = cast(Any, result) if isinstance(result, tuple) else (result,)
    for name, value in zip(targets.split("|"), values, strict=False):
        if name.strip() != "_":
            registers.write(name.strip(), value, compiled.output, where)


def _sources(registers: Registers, statement: Statement, compiled: Compiled) -> list[Array]:
    """The values of the operands that an instruction reads."""
    _, *sources = statement.operands
    if compiled.vectors is Vectors.SPREAD and len(sources) == 2 and isinstance(sources[0], tuple):
        sources = [*sources[0], sources[1]]
    if len(sources) != len(compiled.inputs):
        raise UnknownInstruction(f"the PTX '{statement.text}' has {len(sources)} operands, not {len(compiled.inputs)}")
    values: list[Array] = []
    for source, type_ in zip(sources, compiled.inputs, strict=True):
        if isinstance(source, str):
            values.append(_read(registers, source, type_))
        elif compiled.vectors is Vectors.PACKED:
            values.append(_packed(registers, source, type_))
        else:
            raise UnknownInstruction(f"the PTX '{statement.text}' has a vector as an operand")
    return values


def _read(registers: Registers, text: str, type_: PtxType) -> Array:
    if type_.dtype.kind == "b" and text.startswith("!"):
        return ~registers.read(text[1:], type_)
    return registers.read(text, type_)


def _packed(registers: Registers, parts: Sequence[str], type_: PtxType) -> Array:
    """The bits of several registers in one, the first one lowest."""
    part = TYPES[f"b{type_.bits // len(parts)}"]
    columns = [registers.read(name, part) for name in parts]
    return np.ascontiguousarray(np.stack(columns, -1)).view(type_.dtype).reshape(-1)


def _unpack(registers: Registers, parts: Sequence[str], values: Array, where: Array | None) -> None:
    part = TYPES[f"b{8 * values.dtype.itemsize // len(parts)}"]
    columns = np.ascontiguousarray(values).view(part.dtype).reshape(-1, len(parts))
    for number, name in enumerate(parts):
        if name != "_":
            registers.write(name, columns[:, number], part, where)
