"""Stock Triton's own TTGIR in the interpreter: an oracle that shares no code with our compiler."""

import importlib.util
import itertools
import os

import numpy as np
import pytest

pytestmark = pytest.mark.backend
if importlib.util.find_spec("triton") is None:
    pytest.skip("stock Triton is not installed", allow_module_level=True)

from tests.corpus import generate  # noqa: E402
from tests.unit.interpreter.stock import (  # noqa: E402, F401
    control,
    descriptors,
    elementwise,
    matmul,
    memory,
    reductions,
    running,
    shapes,
)
from tests.unit.interpreter.stock.running import REFERENCES  # noqa: E402
from tests.versions import RELEASE  # noqa: E402
from tlx_xdsl.interpreter.faults import Deadlock, Fault  # noqa: E402
from tlx_xdsl.interpreter.scheduler import POLICIES  # noqa: E402

CASES = generate.cases()
AMPERE = (
    "vector_add", "softmax", "pipelined_loop", "matmul_fp16", "matmul_tf32", "matmul_int8", "attention", "layernorm",
)  # fmt: skip
"""Kernels that are compiled for sm_80, too: their loads are cp.async, their products mma."""
TEXTS = [
    *((name, arch) for name in REFERENCES for arch in CASES[name].archs),
    *((name, 80) for name in AMPERE),
]
FULL = os.environ.get("TLX_TEST_VOLUME") == "full"


DEFECTS: dict[tuple[str, int], tuple[tuple[int, int], tuple[int, int], str]] = {
    # The barriers by which the products free their operands end before the last products have arrived at them: only
    # the commit after the loop is waited for, and that only afterwards.
    ("descriptor_matmul_warp_specialized", 100): ((3, 6), (3, 8), "its life has ended"),
    ("descriptor_matmul_warp_specialized_small", 100): ((3, 6), (3, 8), "its life has ended"),
    # An operand that is made in registers has one buffer, which the next iteration writes before it waits for the
    # product that reads it.
    ("matmul_weights_warp_specialized", 100): ((3, 7), (3, 7), "nothing orders it after the tcgen05.mma"),
    # This one is ours: a tile that is spread over two CTAs runs as one program, for which barriers mean nothing.
    ("matmul_two_ctas", 100): ((3, 6), (99, 0), "works on the memory of one CTA"),
}
"""Where versions of stock, from one to another, leave a race, or we refuse a text: what must be reported."""


@pytest.mark.parametrize(("name", "arch"), TEXTS, ids=[f"{name}-sm{arch}" for name, arch in TEXTS])
def test_results_are_right_and_nothing_is_reported(name: str, arch: int) -> None:
    first, last, message = DEFECTS.get((name, arch), ((99, 0), (0, 0), ""))
    if first <= RELEASE <= last:
        with pytest.raises(Fault, match=message):
            running.check(name, arch, "adversarial", 0)
        return
    for schedule, seed in itertools.product(POLICIES, range(3 if FULL else 1)):
        running.check(name, arch, schedule, seed)


def test_at_least_forty_kernels_of_plain_triton() -> None:
    assert len([name for name in REFERENCES if not CASES[name].is_gluon]) >= 40


@pytest.mark.skipif(RELEASE < (3, 9), reason="tl.atomic_poll: since Triton 3.9")
def test_a_poll_that_is_never_answered_is_a_deadlock() -> None:
    """Every program polls for more than the flag can be, as no task adds to it."""
    arguments = {"flag": np.array([7], np.int32), "x": np.zeros(128, np.float32)}
    plan = running.stock_plan("atomic_load_store_poll", 90)
    with pytest.raises(Deadlock, match="polls for 8"):
        running.run_plan(plan, running.Run(arguments, {}))


def test_a_sum_that_overflows_is_found_by_stocks_own_assertion() -> None:
    x = np.full(256, 50_000, np.int32)
    with pytest.raises(Fault, match="overflow"):
        running.run_plan(running.stock_plan("overflow_checks", 90), running.Run({"x": x, "out": x.copy()}, {}))


def test_a_promise_that_is_broken_is_a_fault() -> None:
    arguments = {"x": np.zeros(128, np.float32), "n": 130}
    with pytest.raises(Fault, match="assume"):
        running.run_plan(running.stock_plan("print_and_assert", 90), running.Run(arguments, {}))
