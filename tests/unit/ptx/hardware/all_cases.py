"""All cases, by name."""

from __future__ import annotations

from importlib import import_module

from tests.unit.ptx.hardware.launches import Case

MODULES = ("mma_cases", "plain_cases", "language_cases", "library_cases")


def all_cases() -> dict[str, Case]:
    """The cases of all modules."""
    found: dict[str, Case] = {}
    for name in MODULES:
        cases = import_module(f"tests.unit.ptx.hardware.{name}").CASES
        assert not found.keys() & cases.keys()
        found |= cases
    return found
