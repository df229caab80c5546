"""Stock Triton's own TTGIR in the interpreter: an oracle that shares no code with our compiler."""

import importlib.util
import itertools
import os

import pytest

pytestmark = pytest.mark.backend
if importlib.util.find_spec("triton") is None:
    pytest.skip("stock Triton is not installed", allow_module_level=True)

from tests.corpus import generate  # noqa: E402
from tests.corpus.cases import CASES  # noqa: E402
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

generate.cases()
AMPERE = ("vector_add", "softmax", "pipelined_loop", "matmul_fp16", "matmul_tf32", "matmul_int8", "attention", "layernorm")
"""Kernels that are compiled for sm_80, too: their loads are cp.async, their products mma."""
TEXTS = [
    *((name, arch) for name in REFERENCES for arch in CASES[name].archs),
    *((name, 80) for name in AMPERE),
]
FULL = os.environ.get("TLX_TEST_VOLUME") == "full"
SCHEDULES = ("adversarial", "round-robin", "random")


@pytest.mark.parametrize(("name", "arch"), TEXTS, ids=[f"{name}-sm{arch}" for name, arch in TEXTS])
def test_results_are_right_and_nothing_is_reported(name: str, arch: int) -> None:
    schedules = itertools.product(SCHEDULES, range(3)) if FULL else [("adversarial", 0)]
    for schedule, seed in schedules:
        running.check(name, arch, schedule, seed)


def test_at_least_forty_kernels_of_plain_triton() -> None:
    assert len([name for name in REFERENCES if not CASES[name].is_gluon]) >= 40
