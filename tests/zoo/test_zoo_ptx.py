"""Final PTX of the zoo: right kernels give no report; mistakes that no pass mends are found there, too."""

import dataclasses

import pytest

import tlx_xdsl
from tests.unit import volume
from tests.zoo.table import AREAS, CLEAN
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.simulate.interpret import interpret
from tlx_xdsl.runtime.simulate.options import Options

pytestmark = pytest.mark.backend

OPTIONS = {field.name for field in dataclasses.fields(Options)}
REUSED = "stock Triton reuses the memory of operands while a product that is waited for later still reads them"
WRONGLY_COMPILED = {"accumulators_of_two-run": REUSED}
TWINS = {
    (bug.kernel.source.name, repr(bug.twin), repr(bug.constants)): bug for bugs in AREAS.values() for bug in bugs
}  # fmt: skip
"""One mistake for each clean twin."""
MENDED = ("proxy fence",)
"""Classes of mistakes that our passes mend before the PTX is made."""
PASSED_OVER = ("aliased tensor memory", "operand in flight", "ping-pong", "wrong slot")
"""Classes of which some show in the numbers only: operations of a tensor core count as ordered by their issue."""
MISTAKES = [
    bug
    for area, bugs in AREAS.items()
    if area in ("hopper", "clusters", "blackwell")
    for bug in bugs
    if bug.kind not in (*MENDED, *PASSED_OVER)
]


def run(kernel, grid, arguments, settings):
    parameters = kernel.source.signature.parameters
    options = {name: value for name, value in settings.items() if name in OPTIONS and name not in parameters}
    rest = {name: value for name, value in settings.items() if name not in options}
    interpret(kernel, grid, *arguments(), **rest, options={**options, "stage": "ptx", "max_seconds": 30})


def _marked(name, value):
    why = WRONGLY_COMPILED.get(name)
    return pytest.param(value, id=name, marks=[pytest.mark.xfail(strict=True, reason=why)] if why else [])


CLEAN_RUNS = [_marked(each.name, each) for each in CLEAN]


@pytest.mark.parametrize("clean", CLEAN_RUNS if volume.is_full() else CLEAN_RUNS[::10])
def test_what_is_right_gives_no_report(clean):
    """Nor do its numbers differ from the interpreter's."""
    report = tlx_xdsl.check(clean.kernel, clean.grid, *clean.arguments(), stages=("ptx",), seconds=30, **clean.settings)
    assert report, str(report)


@pytest.mark.parametrize("bug", [*TWINS.values()][:: 1 if volume.is_full() else 30], ids=lambda bug: bug.name)
def test_the_twin_is_clean(bug):
    run(bug.kernel, bug.grid, bug.arguments, {**bug.constants, "BUG": "", **bug.twin, **bug.options})


@pytest.mark.parametrize("bug", MISTAKES[:: 1 if volume.is_full() else 30], ids=lambda bug: bug.name)
def test_the_mistake_is_found(bug):
    with pytest.raises(CompilationError):
        run(bug.kernel, bug.grid, bug.arguments, {**bug.constants, "BUG": bug.mistake, **bug.options})
