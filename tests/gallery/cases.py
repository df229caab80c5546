"""What a kernel of the corpus is compiled with, and on which versions of Triton it can be expressed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import triton

HOPPER = 90
BLACKWELL = 100

VERSION = tuple(int(part) for part in re.findall(r"\d+", triton.__version__)[:2])
"""The installed Triton, as in (3, 9)."""


@dataclass(frozen=True)
class Unsupported:
    """Why versions of Triton can't express a kernel: those before `since`, and those from `until` on."""

    why: str
    since: tuple[int, int] = (0, 0)
    until: tuple[int, int] = (99, 0)

    def reason(self, version: tuple[int, int]) -> str | None:
        """Return why this version can't express the kernel; None if it can."""
        if version < self.since:
            return f"{self.why}: since Triton {self.since[0]}.{self.since[1]}"
        if version >= self.until:
            return f"{self.why}: until Triton {self.until[0]}.{self.until[1]}"
        return None


def since(major: int, minor: int, why: str) -> Unsupported:
    """The kernel needs something that came with this version."""
    return Unsupported(why, since=(major, minor))


def until(major: int, minor: int, why: str) -> Unsupported:
    """The kernel needs something that this version no longer has."""
    return Unsupported(why, until=(major, minor))


@dataclass(frozen=True)
class Case:
    """A kernel and all that Triton needs to know to compile it."""

    name: str
    kernel: Any
    arguments: dict[str, Any]
    """For each run-time argument its type: "*fp16", "i32", ... or, if it is divisible by 16, "*fp16:16", or a tuple
    of types. For each compile-time argument its value (a string is wrapped into `Constant`)."""
    archs: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    limits: tuple[Unsupported, ...] = ()

    @property
    def is_gluon(self) -> bool:
        return self.kernel.is_gluon()

    @property
    def skipped_reason(self) -> str | None:
        """Why the installed Triton can't express this kernel; None if it can."""
        reasons = [limit.reason(VERSION) for limit in self.limits]
        return next((reason for reason in reasons if reason), None)


@dataclass(frozen=True)
class Constant:
    """The value of a compile-time argument that is a string."""

    value: str


CASES: dict[str, Case] = {}
"""All kernels of the corpus by name, in the order of their definition."""


def case(
    arguments: dict[str, Any],
    *,
    name: str | None = None,
    archs: tuple[int, ...] = (HOPPER,),
    limits: tuple[Unsupported, ...] = (),
    **options: Any,
) -> Callable[[Any], Any]:
    """Put a kernel into the corpus. Stacked, it puts the same kernel in with several sets of arguments."""

    def register(kernel: Any) -> Any:
        case_name = name or kernel.__name__
        if case_name in CASES:
            raise ValueError(f"two kernels of the corpus are called {case_name}")
        CASES[case_name] = Case(case_name, kernel, arguments, archs, options, limits)
        return kernel

    return register
