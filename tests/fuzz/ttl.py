"""Random TTL kernels four ways: by the meaning of blocks, on the checking machine, as C++, and in numpy.

`python -m tests.fuzz.ttl 300` compares 300 kernels. The C++ of several is compiled in one call of g++; without g++ that
way is left out, and the last line says so.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.pool import Ending, report
from tests.fuzz.ttl_programs import Case, case
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.interpreter.ttkernel import run as run_ttkernel
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.metalium.build import compile_many, find_compiler
from tlx_xdsl.ttl.metalium.program import MetaliumError, Program
from tlx_xdsl.ttl.runtime import CompiledKernel, Options, compile_kernel, run, specs_of
from tlx_xdsl.ttl.runtime.execution import run_cpp

TOGETHER = 8
"""Programs that one call of g++ compiles."""
CAPACITIES = (None, 4, 8, 16)
FULL = "destination registers"
"""Says that a kernel needs more of them than there are: it is compiled for more."""


@functools.cache
def has_compiler() -> bool:
    try:
        return bool(find_compiler())
    except MetaliumError:
        return False


def kernel_of(text: str, folder: str, number: int) -> Kernel:
    """The kernel of a file with this text, which the file must outlive."""
    name = f"fuzzed_ttl_{number}"
    path = Path(folder) / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def compiled(kernel: Kernel, made: Case) -> CompiledKernel:
    """The kernel, compiled for as many registers as the case says, or as it needs."""
    specs = specs_of(kernel, [each.before for each in made.arrays.values()])
    chosen = Options(**made.options)
    larger = [each for each in CAPACITIES[1:] if each > (chosen.capacity or 0)]
    while True:
        try:
            return compile_kernel(kernel, specs, chosen)
        except CompilationError as error:
            if FULL not in str(error) or not larger:
                raise
            chosen = replace(chosen, capacity=larger.pop(0))


def arrays_of(made: Case) -> list[np.ndarray]:
    return [each.before.copy() for each in made.arrays.values()]


def mismatch(made: Case, found: Sequence[np.ndarray]) -> str:
    """The first number that is not what numpy has."""
    for (name, array), machine in zip(made.arrays.items(), found, strict=True):
        if array.numbers is None or array.slack is None:
            if not np.array_equal(array.before, machine):
                return f"the input {name} was changed"
            continue
        expected, numbers = array.numbers.astype(np.float64), machine.astype(np.float64)
        with np.errstate(invalid="ignore"):
            same = (np.isnan(expected) & np.isnan(numbers)) | (np.abs(expected - numbers) <= array.slack)
        if not same.all():
            at = tuple(int(each) for each in np.unravel_index(int(np.argmin(same)), same.shape))
            return (
                f"{name}{list(at)} is {numbers[at]}, expected {expected[at]} +- {array.slack[at]:.3g}; "
                f"{int((~same).sum())} of {same.size} differ"
            )
    return ""


def ways(kernel: Kernel, made: Case, number: int, ready: CompiledKernel) -> Mapping[str, Callable[[Any], None]]:
    """Return the functions that run the case, by the name of the machine."""
    schedule = "random" if number % 2 else "round-robin"
    specs = specs_of(kernel, [each.before for each in made.arrays.values()])
    capacity = ready.manifest["options"]["dst_capacity"]
    options = replace(Options(**made.options), capacity=None)
    found: dict[str, Callable[[Any], None]] = {
        "tensors": lambda arrays: run(
            kernel, *arrays, machine="tensors", options=options, schedule=schedule, seed=number
        ),
        "ttkernel": lambda arrays: run_ttkernel(
            ready.module, arrays, schedule=schedule, seed=number, capacity=capacity
        ),
    }
    if has_compiler():
        found["cpp"] = lambda arrays: run_cpp(ready, specs, arrays, seed=number % 5)
    return found


def differences(made: Case, number: int, folder: str) -> str:
    """Describe the results that the machines get wrong."""
    kernel = kernel_of(made.text, folder, number)
    ready = compiled(kernel, made)
    said: list[str] = []
    for name, runs in ways(kernel, made, number, ready).items():
        arrays = arrays_of(made)
        try:
            runs(arrays)
        except CompilationError as error:
            said.append(f"{name}: {error}")
            continue
        if wrong := mismatch(made, arrays):
            said.append(f"{name}: {wrong}")
    return "\n".join(said)


@functools.lru_cache(maxsize=2)
def prepare(numbers: range, make: Callable[..., Case] = case) -> None:
    """Compile the C++ of these programs in one call: runs find it in the cache."""
    programs: list[Program] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            made = make(number)
            try:
                ready = compiled(kernel_of(made.text, folder, number), made)
            except Exception:
                # Its own trial ends with that.
                continue
            programs.append(Program(ready.sources, ready.manifest))
    try:
        compile_many(programs)
    except MetaliumError:
        # So does the trial of the program whose C++ is wrong.
        return


def trial(number: int, make: Callable[..., Case] = case) -> Ending:
    """Compare the program of a number; where it ends badly, find a shorter one that does, too."""
    ended = attempt(make(number), number)
    if ended.kind == "ok":
        return ended
    for size in range(8):
        small = make(number, size)
        again = attempt(small, number)
        if again.kind == ended.kind:
            return Ending(again.kind, f"{small.text}\n{small.options}, {size} operations\n{again.detail}")
    return ended


def attempt(made: Case, number: int) -> Ending:
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = differences(made, number, folder)
        except CompilationError as error:
            return Ending("internal" if "internal error" in str(error) else "wrong", f"refused: {error}")
        except Exception:
            return Ending("traceback", traceback.format_exc())
    return Ending("wrong", found) if found else Ending("ok")


def batched(number: int) -> Ending:
    """A trial of the command line, which goes through all numbers."""
    if has_compiler():
        first = number - number % TOGETHER
        prepare(range(first, first + TOGETHER))
    return trial(number)


def show(number: int) -> str:
    made = case(number)
    return f"{made.text}\n{made.options}"


if __name__ == "__main__":
    ended = report("ttl", batched, show)
    if not has_compiler():
        print("ttl: without the C++ way: there is no g++")
    sys.exit(ended)
