"""Programs of many cores, on the three machines and with numpy: of several sizes, in f32 and bf16."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tlx_xdsl.language.ttl as ttl

from tests.unit import volume
from tests.unit.ttl.pipes.ttl_pipe_programs import PROGRAMS, Program
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.runtime import MACHINES, Prepared, compile_kernel, specs_of
from tlx_xdsl.ttl.runtime.execution import run_cpp

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++: apt install g++")
SIZES = {"ring": (4,), "sum_at_one": (4,), "deal": (5,), "uneven": (4,)}
FULL = {
    "summa": (2, 4, 5, 8),
    "turning_summa": (5,),
    "ring": (8,),
    "gather": (5, 8),
    "scatter": (8,),
    "deal": (8,),
    "uneven": (8,),
    "all_to_all": (8,),
    "tree": (5, 8),
    "sum_at_one": (8,),
}
CASES = [
    (name, size)
    for name in PROGRAMS
    for size in (*SIZES.get(name, (3,)), *(FULL.get(name, ()) if volume.is_full() else ()))
]
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}


def arrays(program: Program, dtype: Any = np.float32) -> list[np.ndarray]:
    return [*(each.astype(dtype) for each in program.inputs), np.zeros(program.result.shape, dtype)]


def machines(name: str, dtype: str) -> list[str]:
    """All machines, or, where there is less time, one for each type and C++ for four programs."""
    found = [*MACHINES] if volume.is_full() else ["ttkernel" if dtype == "f32" else "tensors"]
    if not volume.is_full() and dtype == "f32" and name in ("ring", "gather", "uneven", "sum_at_one"):
        found.append("cpp")
    return [each for each in found if each != "cpp" or shutil.which("g++") is not None]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "size"), CASES)
def test_program(name: str, size: int, dtype: str) -> None:
    program = PROGRAMS[name](size)
    for machine in machines(name, dtype):
        given = arrays(program, DTYPES[dtype])
        prepared = Prepared(program.kernel, given, machine)
        prepared.run(given, **({} if machine == "cpp" else {"schedule": "random", "seed": 1}))
        np.testing.assert_array_equal(given[-1].astype(np.float32), program.result, err_msg=machine)


def lines_of(program: Program) -> int:
    """Lines of the C++ that are neither empty nor directives that name a line."""
    compiled = compile_kernel(program.kernel, specs_of(program.kernel, arrays(program)))
    lines = "\n".join(compiled.sources.values()).splitlines()
    return sum(bool(line.strip()) and not line.startswith("#line") for line in lines)


def test_code_does_not_grow_with_the_grid() -> None:
    small, large = (lines_of(PROGRAMS["summa"](size)) for size in (3, 8 if volume.is_full() else 5))
    assert small == large <= 150
    assert lines_of(PROGRAMS["gather"](3)) == lines_of(PROGRAMS["gather"](4))


@needs_compiler
def test_a_wrong_address_is_found() -> None:
    """The receivers of a ring report where their block is; the machine knows where it is."""
    program = PROGRAMS["ring"](3)
    given = arrays(program)
    made = compile_kernel(program.kernel, specs_of(program.kernel, given))
    text, count = re.subn(r"(\*CoreLocalMem<volatile uint32_t>\(\w+\));", r"\1 + 1;", made.sources["send.cpp"])
    assert count
    broken = replace(made, sources={**made.sources, "send.cpp": text})
    with pytest.raises(CompilationError, match="are written, which are no reserved pages"):
        run_cpp(broken, specs_of(program.kernel, given), given)


@ttl.kernel(grid=(2, 1))
def read_twice(a: Any, out: Any) -> None:
    """Let compute and a mover of core 1 both take blocks of one buffer."""
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    result = ttl.make_circular_buffer_like(out, shape=(1, 1))
    x = ttl.core(dims=1)

    @ttl.datamovement()
    def read() -> None:
        with cb.reserve() as block:
            ttl.copy(a[0, x], block).wait()

    @ttl.compute()
    def compute() -> None:
        if x >= 0:
            with cb.wait() as block, result.reserve() as o:
                o.store(block + block)

    @ttl.datamovement()
    def write() -> None:
        if x == 1:
            with cb.wait() as block:
                ttl.copy(block, out[0, x]).wait()
        with result.wait() as block:
            ttl.copy(block, out[0, x]).wait()


def test_two_consumers_on_a_core() -> None:
    a = np.zeros((32, 64), np.float32)
    message = r"a circular buffer has one consumer, found a second thread that is its consumer on core \(1, 0\)"
    with pytest.raises(CompilationError, match=message) as error:
        compile_kernel(read_twice, specs_of(read_twice, [a, a]))
    assert "the first consumer is at" in error.value.notes[0]
