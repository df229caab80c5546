"""The random programs of `programs.py` and the random addresses of `pointers.py` as machine code.

They give the numbers that numpy gives. Around each array lie pages that may not be touched, so that an access beside
it ends the process, and what is left of its own pages is as it was; the memory for temporary values is NaN.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import numpy as np

from tests.fuzz import numpy_language, pointers
from tests.fuzz.pool import Ending, report
from tests.fuzz.programs import SPELLED, Program, _module, arguments, compared, program
from tests.unit.cpu.codegen.native import Guarded, compiled
from tlx_xdsl import CompilationError
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.text.parser import parse_module


def found_natively(made: Program, number: int, *, checks: bool) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays after the program has run as machine code."""
    given = {name: array for name, array in arguments(made, number).items() if name not in made.same}
    guarded = {name: Guarded(array, at_end=bool(number & 2)) for name, array in given.items()}
    arrays = {name: guarded[made.same.get(name, name)].array for name in made.arrays}
    with tempfile.TemporaryDirectory() as folder:
        source = source_of(_module(made.text, folder).kernel)
        assert source is not None
        signature = {name: f"*{SPELLED[dtype]}" for name, (dtype, _) in made.arrays.items()}
        native = compiled(plain_module(source, Specialization({**signature, "n": "i32"}, {})), checks=checks)
        failed = native.run((1, 1, 1), [*arrays.values(), made.n])
        assert failed is None, failed
    for each in guarded.values():
        each.check()
    return arrays


def differences(made: Program, number: int) -> str:
    """Describe differences between numpy and the machine code."""
    expected = arguments(made, number)
    numpy_language.run(made.text, expected, made.n)
    said: list[str] = []
    for name, array in found_natively(made, number, checks=number % 8 == 0).items():
        same = (array == expected[name]) | ((array != array) & (expected[name] != expected[name]))
        if not same.all():
            at = int(np.argmin(same))
            said.append(f"{name}[{at}] is {array[at]}, expected {expected[name][at]}")
    return "\n".join(said)


def through_pointers(number: int) -> Ending:
    """Compare the addresses of a number; those that are too far apart are left out."""
    made = pointers.program(number)
    if (found := pointers.arrays(made, number)) is None:
        return Ending("far")
    values, expected = found
    guarded = pointers.guarded(values, lambda array: Guarded(array, at_end=bool(number & 2)))
    given = [each.array if isinstance(each, Guarded) else each for each in guarded]
    try:
        native = compiled(parse_module(pointers.text(made)), checks=number % 8 == 1)
    except CompilationError as error:
        return Ending("wrong", f"refused: {error}")
    failed = native.run((pointers.PROGRAMS, 1, 1), given)
    assert failed is None, failed
    for each in guarded:
        if isinstance(each, Guarded):
            each.check()
    return Ending("ok") if (said := pointers.mismatch(given, expected)) is None else Ending("wrong", said)


def trial(number: int) -> Ending:
    """Compare the program of a number, if that is even, or the addresses."""
    return through_pointers(number) if number & 1 else compared(differences, number)


def show(number: int) -> str:
    """Return the text of a numbered program."""
    return pointers.text(pointers.program(number)) if number & 1 else program(number).text


if __name__ == "__main__":
    sys.exit(report("native", trial, show))
