"""The choice for each launch of one kernel: found in memory, on disk, or by a search."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import Signature
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.language.compile_time import unwrapped

from ..clock.stand_ins import standing_in
from ..driver.fingerprint import values_fingerprint
from ..driver.host_values import ALIGNED, is_descriptor, signature_of, typed
from ..driver.specialization import Specialization
from ..simulate.interpret import source_of_kernel
from .host_part import address_of
from .search import Measure, Wanted, searched
from .settings import Settings
from .specialized import Specialized
from .stored import key_of, launch_class, load, store

MOST_KEPT = 512
"""Choices of one kernel in memory; the oldest go first."""


class Choices:
    """The choices for one kernel. Threads may share it: one of them looks for what is new, and others wait."""

    def __init__(self, kernel: Any, settings: Settings):
        self.kernel = kernel
        self.settings = settings
        self._known: dict[Any, Specialized] = {}
        self._turn = threading.RLock()

    def of(
        self,
        named: Mapping[str, Any],
        *,
        grid: Grid | None = None,
        target: str = "sm_90a",
        options: Mapping[str, Any] | None = None,
        device: str = "",
        chip: str | None = None,
        rules: bool = False,
        measure: Callable[[Wanted], Measure] | None = None,
    ) -> Specialized:
        """Return what a launch with these arguments by name takes.

        `options` are launch options of the plain kernel. With `rules`, or without a grid, the clock has no say.

        Raises CompilationError for a fault in the kernel, TypeError for arguments that do not fit.
        """
        settings = replace(self.settings, by="rules") if rules or grid is None else self.settings
        chosen = {"num_warps": 4, **(options or {})}
        found = typed(source_of_kernel(self.kernel), standing_in(named), _array_types(named))
        wanted = Wanted(
            self.kernel, found.signature, found.constexprs, target, chosen["num_warps"], chosen, grid, named, chip
        )
        classes = ()
        if settings.by != "rules" and grid is not None:
            classes = launch_class(grid_of(grid, {name: unwrapped(value) for name, value in named.items()}), named)
        return self._chosen(wanted, settings, classes, device, measure)

    def for_types(self, wanted: Specialization) -> Specialized:
        """Return what the rules make of the kernel for types and constants."""
        asked = Wanted(
            self.kernel, wanted.signature, wanted.constexprs, wanted.target, wanted.num_warps,
            {"num_warps": wanted.num_warps},
        )  # fmt: skip
        return self._chosen(asked, replace(self.settings, by="rules"), (), "", None)

    def refuse(self, choice: Specialized, reason: CompilationError) -> None:
        """Take the plain kernel from now on in the place of a choice that could not be launched, for this process."""
        with self._turn:
            for key, known in self._known.items():
                if known is choice:
                    self._known[key] = replace(choice, kernel=choice.plain, refused=reason)

    def _chosen(
        self,
        wanted: Wanted,
        settings: Settings,
        classes: tuple[Any, ...],
        device: str,
        measure: Callable[[Wanted], Measure] | None,
    ) -> Specialized:
        types = tuple((name, str(type_)) for name, type_ in wanted.signature.items())
        constants, options = _hashable(wanted.constexprs), _hashable(wanted.options)
        key = (types, constants, wanted.target, options, settings.by, classes, device)
        with self._turn:
            choice = self._known.get(key)
            if choice is None:
                choice = self._found(wanted, settings, classes, device, measure)
                while len(self._known) >= MOST_KEPT:
                    del self._known[next(iter(self._known))]
                self._known[key] = choice
        return choice

    def _found(
        self,
        wanted: Wanted,
        settings: Settings,
        classes: tuple[Any, ...],
        device: str,
        measure: Callable[[Wanted], Measure] | None,
    ) -> Specialized:
        """Read the choice from the disk, or look for it and keep it there."""
        try:
            key = key_of(wanted, settings, classes, device)
        except CompilationError:
            # The text of a function is missing, which the compiler reports at its call.
            return searched(wanted, settings, None if measure is None else measure(wanted))
        found = load(key, self.kernel)
        if found is None:
            found = searched(wanted, settings, None if measure is None else measure(wanted))
            store(key, found)
        return found


def _array_types(named: Mapping[str, Any]) -> dict[str, Signature]:
    """The types of arrays, which say whether the memory starts at a multiple of 16: what stands in for it does."""
    arrays = {name: value for name, value in named.items() if hasattr(value, "dtype") and hasattr(value, "shape")}
    types = {name: signature_of(name, value) for name, value in arrays.items() if not is_descriptor(value)}
    return {
        name: f"{type_}:{ALIGNED}" if str(type_).startswith("*") and not address_of(arrays[name]) % ALIGNED else type_
        for name, type_ in types.items()
    }


def _hashable(values: Mapping[str, Any]) -> Any:
    """Constants or options as a part of a key."""
    try:
        items: Any = tuple((name, unwrapped(value)) for name, value in values.items())
        hash(items)
    except TypeError:
        return values_fingerprint(values)
    # 1 and True are equal, and different constants.
    return items, tuple(value.__class__ for _, value in items)
