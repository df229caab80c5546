"""Settings of `jit(warp_specialize=...)`: who chooses between decisions, and what is checked before a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast, get_args

from tlx_xdsl.errors import InputError, InputTypeError

By = Literal["rules", "clock", "search", "measure"]
"""Who chooses. `rules`: the passes alone, and the result is taken where it is proved. `clock`: the same, but the plain
kernel where the clock expects it to be faster. `search`: the clock chooses between other decisions, too. `measure`:
as `search`, and a GPU measures the best few and the plain kernel."""


@dataclass(frozen=True)
class Settings:
    """Settings of the specialisation of one kernel."""

    by: By = "clock"
    check: bool = False
    """True if the first launch for a key is compared with the plain kernel, on its own arguments."""
    seconds: float = 60.0
    """Seconds after which a search begins nothing new."""
    decisions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Decisions that are given: they are not looked for."""

    @staticmethod
    def of(given: object) -> Settings | None:
        """Return what `warp_specialize=` means: a truth value, who chooses, or a dictionary of settings and decisions.

        Raises TypeError and ValueError for anything else.
        """
        if given is None or given is False:
            return None
        if given is True:
            return Settings()
        if isinstance(given, Settings):
            return given
        if isinstance(given, str):
            return Settings(by=_chooser(given))
        if not isinstance(given, Mapping):
            kind = type(given).__name__
            raise InputTypeError(
                f"warp_specialize: expected True, {_listed()} or a dictionary of settings, found {kind}"
            )
        known = {each.name for each in fields(Settings)}
        named = dict(cast("Mapping[str, Any]", given))
        own = {name: named.pop(name) for name in list(named) if name in known}
        if "by" in own:
            own["by"] = _chooser(own["by"])
        own["decisions"] = {**own.get("decisions", {}), **named}
        return Settings(**own)

    def key(self) -> str:
        """The part of a cache's key that is these settings."""
        return f"{self.by} {sorted(self.decisions.items(), key=str)}"


def _chooser(given: Any) -> By:
    if given not in get_args(By):
        raise InputError(f"warp_specialize: expected {_listed()}, found {given!r}")
    return given


def _listed() -> str:
    return "one of " + ", ".join(f"'{each}'" for each in get_args(By))
