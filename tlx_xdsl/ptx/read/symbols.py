"""Addresses of variables in the state spaces (PTX ISA, "State Spaces").

A shared address has the rank of the CTA in its cluster in the bits from 24 on, as the shared window of a cluster has
it; the first 1024 bytes of a CTA's shared memory are the system's. Generic addresses of the state spaces lie in
windows far above those of global memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx_xdsl.errors import InputError

from .syntax import Function, Module, Parameter

SHARED_START = 1024
"""The first byte of a CTA's shared memory that a kernel may use."""
RANK_SHIFT = 24
"""The lowest bit of the rank in a shared address."""
SHARED_WINDOW = 1 << 48
"""The generic address of the shared address 0."""
PARAM_WINDOW = 1 << 49
LOCAL_WINDOW = 1 << 50
VARIABLES = 1 << 40
"""The address of the first variable in global or constant memory."""


@dataclass(frozen=True, slots=True)
class Home:
    """The state space and the address of a name."""

    space: str
    address: int
    size: int


@dataclass(slots=True)
class Symbols:
    """The homes of the variables and parameters of a kernel."""

    homes: dict[str, Home] = field(default_factory=dict[str, Home])
    shared_bytes: int = 0
    """Bytes of shared memory that are declared with a size."""
    local_bytes: int = 0
    parameter_bytes: int = 0


def place(module: Module, function: Function) -> Symbols:
    """Lay out the variables of a module and the parameters of a kernel, and of the functions that it calls."""
    found = Symbols()
    ends = {"shared": SHARED_START, "global": VARIABLES, "local": 0, "param": 0}
    ends["param"] = _parameters(found, function.parameters, 0)
    dynamic: list[str] = []
    for variable in (*module.variables.values(), *function.variables):
        # Variables in `.param` are the arguments of calls, of each thread its own.
        space = {"const": "global", "param": "local"}.get(variable.space, variable.space)
        if (
            (known := found.homes.get(variable.name)) is not None
            and known.space == space
            and known.size >= variable.size
        ):
            continue
        if space == "shared" and not variable.size:
            dynamic.append(variable.name)
            continue
        start = aligned(ends[space], max(variable.alignment, 16))
        found.homes[variable.name] = Home(space, start, variable.size)
        ends[space] = start + variable.size
    # Dynamic shared memory comes after all that has a size; tiles of TMA want 1024 bytes.
    start = aligned(ends["shared"], 1024)
    for name in dynamic:
        found.homes[name] = Home("shared", start, 0)
    found.shared_bytes = (start if dynamic else ends["shared"]) - SHARED_START
    found.local_bytes, found.parameter_bytes = ends["local"], ends["param"]
    return found


def _parameters(found: Symbols, parameters: list[Parameter], end: int) -> int:
    for parameter in parameters:
        if parameter.alignment & (parameter.alignment - 1):
            raise InputError(f"the alignment {parameter.alignment} of '{parameter.name}' is no power of two")
        start = aligned(end, parameter.alignment)
        found.homes[parameter.name] = Home("param", start, parameter.size)
        end = start + parameter.size
    return end


def aligned(address: int, to: int) -> int:
    """The next multiple of `to`."""
    return -(-address // to) * to
