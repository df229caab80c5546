"""Plans of kernels that were run before: to run one again, in another order or on other arrays, compiles nothing.

A plan holds a module and the code that runs it, and nothing of a run. It is for a kernel's text with all that it
reaches, the types of its arguments, its constants, and the options that the frontend and the passes look at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics, report_again

from ..driver.compilation import Specialization, installed_profile
from ..driver.fingerprint import kernel_fingerprint, values_fingerprint

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
    """What is reported inside of the `with`, which is reported after it, too."""
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
    """What a plan depends on; None where not all text is available."""
    try:
        text = kernel_fingerprint(source).digest
        constants = values_fingerprint(specialization.constexprs)
    except CompilationError:
        return None
    # The same text elsewhere has other places in reports.
    place = source.filename, source.fn.__code__.co_firstlineno
    types = tuple((name, str(type_)) for name, type_ in specialization.signature.items())
    return (
        text, constants, place, types, stage, specialization.target, specialization.num_warps, specialization.num_ctas,
        tuple(specialization.cluster), specialization.debug, specialization.passes, installed_profile(),
    )  # fmt: skip
