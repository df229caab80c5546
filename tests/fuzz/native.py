"""The random programs of `tests/fuzz/programs.py` as machine code: the numbers that numpy and the interpreter give.

Around each array lie pages that may not be touched, so that an access beside it ends the process.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import numpy as np

from tests.fuzz import numpy_language
from tests.fuzz.pool import Ending, report
from tests.fuzz.programs import SPELLED, Program, _module, arguments, compared, show
from tests.unit.cpu.codegen.native import Guarded, compiled
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization


def found_natively(made: Program, number: int, *, checks: bool) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays after the program has run as machine code."""
    arrays = {name: Guarded(array, at_end=bool(number & 1)).array for name, array in arguments(made, number).items()}
    with tempfile.TemporaryDirectory() as folder:
        source = source_of(_module(made.text, folder).kernel)
        assert source is not None
        signature = {name: f"*{SPELLED[dtype]}" for name, (dtype, _) in made.arrays.items()}
        native = compiled(plain_module(source, Specialization({**signature, "n": "i32"}, {})), checks=checks)
        failed = native.run((1, 1, 1), [*arrays.values(), made.n])
        assert failed is None, failed
    return arrays


def differences(made: Program, number: int) -> str:
    """What differs between numpy and the machine code."""
    expected = arguments(made, number)
    numpy_language.run(made.text, expected, made.n)
    said: list[str] = []
    for name, array in found_natively(made, number, checks=number % 4 == 0).items():
        same = (array == expected[name]) | ((array != array) & (expected[name] != expected[name]))
        if not same.all():
            at = int(np.argmin(same))
            said.append(f"{name}[{at}] is {array[at]}, expected {expected[name][at]}")
    return "\n".join(said)


def trial(number: int) -> Ending:
    """Compare the program of a number."""
    return compared(differences, number)


if __name__ == "__main__":
    sys.exit(report("native", trial, show))
