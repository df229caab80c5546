"""The debugger in launches of machine code: where a program stops, the interpreter runs it again, and is looked at.

Machine code can't be looked at itself. So a launch keeps what its arrays hold at first. Where a program comes to
`breakpoint()`, the arrays are put back, and that program alone is recorded in the interpreter (`tools/debug`). When the
user leaves the debugger, the launch is done, by code without breakpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tlx_xdsl.errors import BREAKPOINT, PRINTS, CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.driver.host_values import defaults_of, on_host
from tlx_xdsl.runtime.simulate.options import Options


def run_or_debug(
    source: KernelSource,
    grid: tuple[int, int, int],
    given: Mapping[str, Any],
    run: Callable[[], None],
    run_on: Callable[[], None],
) -> None:
    """Run a launch, and open the debugger at the program that stops it; `run_on` is the launch without breakpoints.

    `given` are the arguments by name. Raises Fault where the program is wrong, after the debugger.
    """
    # What looks into kernels takes a second to load, and few launches need it.
    from tlx_xdsl.tools.debug.commands import converse
    from tlx_xdsl.tools.debug.session import Session, arrays_of

    constants = {parameter.name for parameter in source.parameters if parameter.is_constexpr}
    values = {
        name: value for name, value in {**defaults_of(source), **given}.items() if name in source.signature.parameters
    }
    arguments: dict[str, Any] = {
        name: value if name in constants or isinstance(value, constexpr | str | tuple) or value is None
        else on_host(name, value)
        for name, value in values.items()
    }  # fmt: skip
    arrays = arrays_of(arguments)
    before = {name: array.copy() for name, array in arrays.items()}

    def put_back() -> None:
        for name, array in arrays.items():
            array[...] = before[name]

    try:
        run()
        return
    except Fault as found:
        fault = found
    is_breakpoint = fault.message.endswith(BREAKPOINT)
    after = {name: array.copy() for name, array in arrays.items()}
    put_back()
    assert fault.program is not None
    what = PRINTS if PRINTS in fault.message else BREAKPOINT if is_breakpoint else fault.message
    print(f"{fault.location}: {what} in program {fault.program}, which the interpreter repeats:")
    try:
        session = Session.of(source, grid, arguments, lambda: Options(jobs=1), programs=[fault.program])
    except CompilationError as error:
        print(error)
    else:
        if session.fault is None:
            session.stop_at(fault.location)
        converse(session)
    if is_breakpoint:
        put_back()
        run_on()
        return
    for name, array in arrays.items():
        array[...] = after[name]
    raise fault
