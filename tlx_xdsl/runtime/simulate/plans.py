"""Plans of kernels that were run before: to run one again, in another order or on other arrays, compiles nothing.

A plan holds a module and the code that runs it, and nothing of a run. It is for a kernel's text with all that it
reaches, the types of its arguments, its constants, and the options that the frontend and the passes look at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.analysis.launch_budget import check_launch
from tlx_xdsl.analysis.storage_budget import check_budget
from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.dialects.ttg import WarpSpecializeOp
from tlx_xdsl.errors import CompilationError, OverBudgetError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.grid import MOST_ALONG_Y_AND_Z
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.targets import target_named
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics, error_at, report_again
from tlx_xdsl.transforms.nvidia.setmaxnreg import RebalanceSetmaxnregPass
from tlx_xdsl.transforms.rewriting import ops_of

from ..driver.compilation import Specialization, installed_profile
from ..driver.fingerprint import kernel_fingerprint, values_fingerprint
from ..driver.specialization import LARGEST_CLUSTER
from .options import Options

MOST = 32
"""Plans that are kept: those that were used last."""


_known: OrderedDict[Hashable, tuple[Plan, tuple[Diagnostic, ...]]] = OrderedDict()
"""With what the frontend and the passes have reported."""


def planned(source: KernelSource, specialization: Specialization, stage: str, make: Callable[[], Plan]) -> Plan:
    """The plan for a kernel at a stage, made by `make` if it is new; what that reports is reported each time.

    Raises CompilationError as `make` does.
    """
    key = _key(source, specialization, stage)
    if key is None:
        return make()
    if key not in _known:
        with _also_reported() as reported:
            plan = make()
        _known[key] = plan, tuple(reported)
        if len(_known) > MOST:
            _known.popitem(last=False)
        return plan
    _known.move_to_end(key)
    plan, warnings = _known[key]
    for each in warnings:
        report_again(each)
    return plan


@contextmanager
def _also_reported() -> Generator[list[Diagnostic]]:
    """Collect what is reported inside of the `with`, and report it after it, too."""
    with collected_diagnostics() as found:
        error = None
        try:
            yield found
        except CompilationError as raised:
            error = raised
    for each in found:
        report_again(each)
    if error is not None:
        raise error


def _key(source: KernelSource, specialization: Specialization, stage: str) -> Hashable | None:
    """Return what a plan depends on; None where not all text is available."""
    try:
        text = kernel_fingerprint(source).digest
        constants = values_fingerprint(specialization.constexprs)
    except CompilationError:
        return None
    # The same text elsewhere has other places in reports.
    place = source.place
    types = tuple((name, str(type_)) for name, type_ in specialization.signature.items())
    return (
        text, constants, place, types, stage, specialization.target, specialization.num_warps, specialization.num_ctas,
        tuple(specialization.cluster), specialization.debug, specialization.passes, installed_profile(),
    )  # fmt: skip


# --- what a GPU refuses -----------------------------------------------------------------------------------------------
#
# What a GPU would refuse of a launch that the interpreter can run: found before the run, by the compiler's checks.
#
# The interpreter has as much shared memory, as many registers and warps as a kernel asks for; a thread block has not.


T = TypeVar("T")


def refusals(module: ModuleOp, kernel: Operation, grid: Sequence[int], options: Options) -> list[CompilationError]:
    """The errors with which a kernel that has just left the frontend would be refused; it is left as it is.

    Shared and tensor memory, threads and registers count against `options.target`, as far as they are certain: what a
    pass of the compiler may still make smaller is not among them.
    """
    capability = target_named(options.target).capability
    found = [error for check in (check_launch, _check_registers) if (error := _refused(check, module)) is not None]
    try:
        maps = storage_maps(module, capability)
    except CompilationError:
        # It can't be laid out, which is no question of size: the pipeline says so, and so may the run.
        maps = []
    found += [error for each in maps if (error := _refused(check_budget, each)) is not None]
    return [*(error_at(kernel, message) for message in _sizes(grid, options)), *found]


def _sizes(grid: Sequence[int], options: Options) -> Iterator[str]:
    """Yield what is wrong with the sizes of a launch."""
    for name, number in (("num_warps", options.num_warps), ("num_ctas", options.num_ctas)):
        if number < 1 or number & (number - 1):
            yield f"{name} must be a power of two, found {number}"
    if (ctas := prod(options.cluster)) > LARGEST_CLUSTER:
        yield f"a cluster has at most {LARGEST_CLUSTER} CTAs, found {ctas}"
    for axis, size in zip("yz", grid[1:], strict=True):
        if size > MOST_ALONG_Y_AND_Z:
            yield f"a grid has at most {MOST_ALONG_Y_AND_Z:,} programs along {axis}, found {size:,}"


def _refused(check: Callable[[T], None], thing: T) -> OverBudgetError | None:
    """Return what a check refuses for want of something; what it only warns of may fit after all."""
    with collected_diagnostics():
        try:
            check(thing)
        except OverBudgetError as error:
            return error
        except CompilationError:
            # Another fault, which the pipeline reports at its place.
            return None
    return None


def _check_registers(module: ModuleOp) -> None:
    """Check the registers that tasks ask for, on a copy: the pass completes them."""
    if any(op.requested_registers is not None or op.attributes for op in ops_of(module, WarpSpecializeOp)):
        RebalanceSetmaxnregPass().apply(make_context(), module.clone())


def as_warning(error: CompilationError, target: str) -> Diagnostic:
    """The error as a warning of a run for that target."""
    return Diagnostic("warning", f"{target} would refuse this launch: {error.message}", error.location, error.notes)
