"""Trees of storage aliases, by an account of their promises that is independent of the passes.

The generator and the promises are those of `tests/unit/transforms/storage_alias/test_storage_properties.py`: here they
run at any volume, on any number of processes.
"""

from __future__ import annotations

import sys

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings, strategies as st

from tests.fuzz.pool import Ending, report
from tests.unit.transforms.storage_alias.storage_trees import TMEM, Program
from tests.unit.transforms.storage_alias.test_storage_properties import (
    any_program,
    check_map,
    check_promises,
    lower,
    total_of,
)
from tlx_xdsl.errors import CompilationError

TREES = 10
"""In each trial: hypothesis begins with the simplest ones."""


def examples(number: int, *, verbose: bool = False) -> None:
    """Check the trees of a number.

    Raises AssertionError for one that breaks a promise.
    """

    @seed(number)
    @settings(
        max_examples=TREES, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), verbosity=Verbosity.verbose if verbose else Verbosity.quiet,
    )  # fmt: skip
    @given(any_program, st.sampled_from(["computed", "computed", "exact", "larger"]), st.integers(1, 70000))
    def check(program: Program, sizing: str, excess: int) -> None:
        least = total_of(program)
        if program.storage is TMEM:
            excess = min(excess % 100, 512 - least)
        size = None if sizing == "computed" else least + (excess if sizing == "larger" else 0)
        lowered = lower(program, size)
        check_promises(lowered, size)
        check_map(lowered, size)

    check()


def trial(number: int) -> Ending:
    """Check the trees of a number."""
    try:
        examples(number)
    except AssertionError as error:
        return Ending("wrong", str(error))
    except CompilationError as error:
        return Ending("internal" if "internal error" in str(error) else "wrong", str(error))
    return Ending("ok")


def show(number: int) -> str:
    """Print the trees of a number."""
    examples(number, verbose=True)
    return ""


if __name__ == "__main__":
    sys.exit(report("trees", trial, show, each=TREES))
