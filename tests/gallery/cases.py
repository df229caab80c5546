"""Arguments and options of the galleries' kernels, and the versions of Triton that can express each."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.versions import RELEASE

HOPPER = 90
BLACKWELL = 100


@dataclass(frozen=True)
class Unsupported:
    """Versions of Triton that can't express a kernel, with the reason: before `since`, and from `until` on."""

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
class Constant:
    """The value of a compile-time argument that is a string."""

    value: str


@dataclass(frozen=True)
class Case:
    """A kernel and all that Triton needs to know to compile it."""

    name: str
    kernel: Any
    arguments: dict[str, Any]
    """For each run-time argument its type: "*fp16", "i32", ... or, if it is divisible by 16, "*fp16:16", or a tuple
    of types. For each compile-time argument its value (a string is wrapped into `Constant`)."""
    archs: tuple[int, ...] = (HOPPER,)
    """What stock compiles it for."""
    limits: tuple[Unsupported, ...] = ()
    library: bool = False
    """Whether the kernel calls what stock writes in its language over primitives: then IR need not be equal."""
    options: dict[str, Any] = field(default_factory=dict)
    """The compiler's: `num_warps` and the like."""

    @property
    def is_gluon(self) -> bool:
        """True if the kernel is written in Gluon."""
        return self.kernel.is_gluon()

    @property
    def skipped_reason(self) -> str | None:
        """The reason why the installed Triton can't express this kernel; None if it can."""
        reasons = [limit.reason(RELEASE) for limit in self.limits]
        return next((reason for reason in reasons if reason), None)


_registered: list[Case] = []


@contextlib.contextmanager
def collected() -> Iterator[list[Case]]:
    """Collect the cases that are made meanwhile, in their order, apart from `registered()`."""
    global _registered
    outer, _registered = _registered, []
    try:
        yield _registered
    finally:
        _registered = outer


def registered() -> list[Case]:
    """Return the cases of all modules that were imported, in the order of their definition."""
    return list(_registered)


def case(
    arguments: dict[str, Any],
    *,
    name: str | None = None,
    archs: tuple[int, ...] = (HOPPER,),
    limits: tuple[Unsupported, ...] = (),
    library: bool = False,
    **options: Any,
) -> Callable[[Any], Any]:
    """Make a case of a jitted function; stacked, several, each with its name. See `Case` for the arguments."""

    def register(kernel: Any) -> Any:
        _registered.append(Case(name or kernel.__name__, kernel, arguments, archs, limits, library, options))
        return kernel

    return register


def named(cases: list[Case]) -> dict[str, Case]:
    """Return cases by name.

    Raises:
        ValueError: two of them have the same name.
    """
    found = {each.name: each for each in cases}
    if len(found) != len(cases):
        names = [each.name for each in cases]
        raise ValueError(f"two kernels are called {next(name for name in names if names.count(name) > 1)}")
    return found
