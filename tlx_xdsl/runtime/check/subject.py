"""What a check launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ..simulate.interpret import Change
from ..simulate.options import Options
from .report import Finding
from .sizes import Launchable, Scope, Sizes


@dataclass(frozen=True)
class Subject:
    """What a check launches: a kernel at some sizes."""

    sizes: Sequence[Sizes]
    """The smallest ones first."""
    settings: Options
    launchable: Callable[[Sizes, Change | None], Launchable]
    """The launch at some sizes, of what the frontend makes of the kernel or of a change of it."""
    module: Callable[[Sizes], ModuleOp]
    """The kernel for arguments of these types, whatever their values."""
    others: Callable[[], Iterable[Finding]]
    """Remarks on what goes wrong at sizes that are not run, where none are named."""

    def scope(self, at: Sizes, change: Change | None = None) -> Scope:
        """The launch at some sizes."""
        return Scope(at, lambda: self.launchable(at, change))

    def scopes(self, change: Change | None = None) -> list[Scope]:
        """The launches at all sizes."""
        return [self.scope(at, change) for at in self.sizes]
