"""Comparison of a specialised kernel with its plain one: both run in the interpreter on the same arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tlx_xdsl.errors import CompilationError, InputError, InputTypeError
from tlx_xdsl.numerics.difference import difference, tolerance_of

from ..check.run import arrays_of
from ..driver.host_values import is_constant, on_host
from ..simulate.interpret import interpret_source, source_of_kernel
from ..simulate.options import Options
from .decision import ComparisonError
from .small import SmallLaunch
from .specialized import Specialized

FEW = 2
"""Programs of a persistent kernel in a small launch: each has several of the plain one's to do."""


@dataclass(frozen=True)
class Comparison:
    """Outcome of a comparison: `wrong` says the first difference, and `untested` why there was none to look for."""

    wrong: str = ""
    untested: str = ""

    def __bool__(self) -> bool:
        """True where both have computed the same."""
        return not self.wrong and not self.untested


def plain_results(specialized: Specialized, launch: SmallLaunch) -> dict[str, Any] | str:
    """The arguments after the plain kernel has run on them, or why it can't run on these."""
    arguments = launch.copied()
    try:
        interpret_source(source_of_kernel(specialized.plain), launch.grid, arguments, Options())
    except (CompilationError, InputError, InputTypeError) as error:
        return str(error)
    return arguments


def compared(specialized: Specialized, launch: SmallLaunch, expected: Mapping[str, Any]) -> Comparison:
    """Run the specialised kernel on a launch whose results the plain one has made, and compare all arrays."""
    arguments = launch.copied()
    fitted = specialized.fitted(launch.grid, arguments, FEW)
    if isinstance(fitted, str):
        return Comparison(untested=fitted)
    grid, values = fitted
    source = specialized.kernel.source
    names = [each.name for each in source.parameters]
    options = Options(**specialized.run_options, target=specialized.specialization.target)
    try:
        interpret_source(source, grid, dict(zip(names, values, strict=True)), options)
    except CompilationError as error:
        return Comparison(wrong=str(error))
    wanted = arrays_of(expected)
    for name, found in arrays_of(arguments).items():
        apart = difference(found, wanted[name], tolerance_of(found.dtype))
        if apart.wrong:
            place = ", ".join(map(str, apart.at))
            return Comparison(wrong=f"{name}[{place}] is {apart.found:g}, the plain kernel has {apart.expected:g}")
    return Comparison()


def compared_on(specialized: Specialized, grid: tuple[int, int, int], named: Mapping[str, Any]) -> None:
    """Compare on a launch's own arguments, which stay as they are.

    Raises ComparisonError where both do not compute the same, CompilationError where the plain kernel can't be run.
    """
    here = {name: value if is_constant(value) else on_host(name, value) for name, value in named.items()}
    launch = SmallLaunch(grid, here)
    expected = plain_results(specialized, launch)
    if isinstance(expected, str):
        raise CompilationError(f"check: the plain kernel can't be run on these arguments: {expected}")
    found = compared(specialized, launch, expected)
    if found.wrong:
        name = source_of_kernel(specialized.plain).name
        raise ComparisonError(f"check: '{name}' computes something else when it is specialised: {found.wrong}")
