"""An entry of the zoo: a kernel, what goes wrong in it, and what the report must say.

Bug and twin are one kernel: its parameter `BUG` names the mistake, and is empty in the twin. So they share their text,
and the lines that differ are next to each other. A line that the report must point at ends in a comment
`# at: NAME, NAME`, with the values of `BUG` for which it must, or follows such a comment. Where there is another way
to be right, it is a value of `BUG` that begins with `right: `.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tlx_xdsl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.simulate.options import STAGES
from tlx_xdsl.text.diagnostics import Diagnostic

Grid = int | tuple[int, ...]
Arguments = Callable[..., tuple[Any, ...]]
"""Makes arguments; on several ranks it is given their number."""


@dataclass(frozen=True, eq=False)
class Bug:
    """A mistake in a kernel."""

    kernel: Any
    mistake: str
    """The value of `BUG`."""
    kind: str
    """The class of the mistake: CI checks the first of each class in each area."""
    cause: str
    """A regular expression that the first line of the report must match: it names the cause, not only the victim."""
    grid: Grid
    arguments: Arguments
    """Makes the arrays and descriptors, always with the same values."""
    constants: Mapping[str, Any]
    options: Mapping[str, Any]
    """Options of the run, such as `cluster` and `target`."""
    twin: Mapping[str, Any]
    """What the clean twin has instead of the mistake: another way to be right than an empty `BUG`."""
    seconds: float
    missed: str
    """Why the checker does not find it, where it does not."""
    badly_named: str
    """What the report says instead of the cause, where it does."""
    false_alarm: str
    """What the checker says of the clean twin, where it is wrong about it."""
    ranks: tuple[int, ...] = ()
    """GPUs that run the kernel: the mistake shows on the first number of them, the twin is right on all."""
    twin_arguments: Arguments | None = None
    """What the clean twin is given, where the mistake is in the arguments."""

    @property
    def name(self) -> str:
        """The name of kernel and mistake."""
        return f"{self.kernel.source.name}-{self.mistake.replace(' ', '-')}"

    @property
    def module(self) -> str:
        """The name of the kernel's file, without its ending."""
        return Path(inspect.getfile(self.kernel.source.fn)).stem

    def check(self, stages: Sequence[str] = STAGES) -> tuple[Diagnostic, ...]:
        """Check the kernel with the mistake; findings may be the compiler's, where it refuses that."""
        settings = {**self.constants, "BUG": self.mistake, **self.options, "stages": stages}
        return _findings(self.kernel, self.grid, self.arguments, self.seconds, settings, self.ranks[:1])

    def check_twin(self, stages: Sequence[str] = STAGES) -> tuple[Diagnostic, ...]:
        """Check the kernel without the mistake."""
        settings = {**self.constants, "BUG": "", **self.twin, **self.options, "stages": stages}
        arguments = self.twin_arguments or self.arguments
        # What is wrong is found before the time is over, however slow the machine; what is right has more orders.
        seconds = min(self.seconds, 1.0) if self.ranks else self.seconds
        return _findings(self.kernel, self.grid, arguments, seconds, settings, self.ranks)

    def lines(self) -> set[int]:
        """The lines that the report must point at, one of them."""
        text, first = inspect.getsourcelines(self.kernel.source.fn)
        marked, following = set[int](), False
        for number, line in enumerate(text, first):
            is_comment = line.lstrip().startswith("#")
            is_marked = self.mistake in _marks(line)
            if not is_comment and (is_marked or following):
                marked.add(number)
            following = is_comment and (is_marked or following)
        return marked

    def is_named_by(self, finding: Diagnostic) -> bool:
        """Return whether a finding says what the cause is, at a line that is marked."""
        location = finding.location
        is_there = (
            location is not None
            and location.filename == inspect.getfile(self.kernel.source.fn)
            and location.line in self.lines()
        )
        return is_there and re.search(self.cause, finding.message) is not None


@dataclass(frozen=True, eq=False)
class Clean:
    """A run of a kernel without mistakes, at sizes of its own."""

    kernel: Any
    grid: Grid
    arguments: Arguments
    settings: Mapping[str, Any]
    seconds: float
    label: str
    false_alarm: str
    """What the checker says of it, where it is wrong."""

    @property
    def name(self) -> str:
        """The name of kernel and sizes."""
        return f"{self.kernel.source.name}-{self.label}"

    def check(self) -> tuple[Diagnostic, ...]:
        """Check the kernel."""
        # What stock Triton makes of the kernels is `test_zoo_ptx.py`'s.
        settings = {**self.settings, "stages": STAGES}
        return _findings(self.kernel, self.grid, self.arguments, self.seconds, settings)


def _findings(
    kernel: Any,
    grid: Grid,
    arguments: Arguments,
    seconds: float,
    settings: Mapping[str, Any],
    ranks: tuple[int, ...] = (),
) -> tuple[Diagnostic, ...]:
    of_ranks = {"ranks": ranks, "arguments": arguments} if ranks else {}
    try:
        report = tlx_xdsl.check(
            kernel, grid, *(() if ranks else arguments()), seconds=seconds, **settings, **of_ranks
        )  # fmt: skip
    except CompilationError as error:
        return (Diagnostic("error", error.message, error.location, error.notes),)
    return tuple(finding.diagnostic for finding in report.findings)


def _marks(line: str) -> list[str]:
    _, mark, names = line.rstrip().partition("# at: ")
    return [name.strip() for name in names.split(",")] if mark else []


@dataclass
class Cage:
    """A kernel with the arguments that its mistakes need; `bugs` are those that are known of it."""

    kernel: Any
    arguments: Arguments
    grid: Grid = 1
    constants: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    """For more orders than the first one of each stage, for mistakes that need another one."""
    ranks: tuple[int, ...] = ()
    """GPUs that run the kernel, where it is one for several."""
    bugs: list[Bug] = field(default_factory=list)
    clean_runs: list[Clean] = field(default_factory=list)

    def bug(
        self,
        mistake: str,
        kind: str,
        cause: str,
        *,
        missed: str = "",
        badly_named: str = "",
        false_alarm: str = "",
        grid: Grid | None = None,
        arguments: Arguments | None = None,
        constants: Mapping[str, Any] | None = None,
        twin: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        ranks: tuple[int, ...] | None = None,
        twin_arguments: Arguments | None = None,
    ) -> Cage:
        """Add a mistake; where sizes are given, both it and its twin run with them."""
        self.bugs.append(
            Bug(
                self.kernel,
                mistake,
                kind,
                cause,
                self.grid if grid is None else grid,
                self.arguments if arguments is None else arguments,
                {**self.constants, **(constants or {})},
                self.options,
                twin or {},
                self.seconds if seconds is None else seconds,
                missed,
                badly_named,
                false_alarm,
                self.ranks if ranks is None else ranks,
                twin_arguments,
            )
        )
        return self

    def clean(
        self,
        *,
        false_alarm: str = "",
        grid: Grid | None = None,
        arguments: Arguments | None = None,
        seconds: float | None = None,
        **constants: Any,
    ) -> Cage:
        """Add sizes, or ways to be right, at which the kernel is clean, too."""
        parameters = inspect.signature(self.kernel.source.fn).parameters
        twin = {"BUG": ""} if "BUG" in parameters else {}
        run = Clean(
            self.kernel,
            self.grid if grid is None else grid,
            self.arguments if arguments is None else arguments,
            {**self.constants, **twin, **constants, **self.options},
            self.seconds if seconds is None else seconds,
            "-".join(f"{name}-{value}".replace(" ", "-") for name, value in constants.items())
            or (f"run-{len(self.clean_runs)}" if self.clean_runs else "run"),
            false_alarm,
        )
        self.clean_runs.append(run)
        return self


def unknown_mistakes(kernel: Any, known: set[str]) -> set[str]:
    """The mistakes that a kernel's text can make or mark, and the table does not have; and those that it lacks."""
    text = inspect.getsource(kernel.source.fn)
    tree = ast.parse(inspect.cleandoc("\n" + text))
    compared = {
        constant.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "BUG"
        for each in node.comparators
        for constant in ast.walk(each)
        if isinstance(constant, ast.Constant)
    }
    marked = {name for line in text.splitlines() for name in _marks(line)}
    return (compared - {""} | marked) ^ known
