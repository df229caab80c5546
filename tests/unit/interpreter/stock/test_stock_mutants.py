"""Stock Triton's TTGIR with all synchronisation of a kind taken out: it must be reported, whatever stock made of it."""

import importlib.util
import re

import numpy as np
import pytest

pytestmark = pytest.mark.backend
if importlib.util.find_spec("triton") is None:
    pytest.skip("stock Triton is not installed", allow_module_level=True)

from tests.corpus import generate  # noqa: E402
from tests.unit.interpreter.stock import descriptors, matmul  # noqa: E402, F401
from tests.unit.interpreter.stock.running import REFERENCES, run_plan  # noqa: E402
from tlx_xdsl.interpreter.faults import Fault  # noqa: E402
from tlx_xdsl.interpreter.plan import make_plan  # noqa: E402
from tlx_xdsl.text.parser import parse_module  # noqa: E402

MUTANTS = [
    # What takes something out, the kernels, and what is reported.
    ("ttng.fence_async_shared", ("matmul_chain", "device_descriptor_copy", "host_descriptor_copy"), "proxy fence"),
    ("ttng.wait_barrier", ("device_descriptor_copy", "host_descriptor_copy", "descriptor_matmul"), "."),
    ("ttng.barrier_expect", ("device_descriptor_copy", "descriptor_matmul"), "."),
    ("ttng.init_barrier", ("device_descriptor_copy", "descriptor_matmul"), "not initialised"),
    ("ttng.async_tma_store_wait", ("device_descriptor_copy",), "nothing orders it after the TMA store"),
    ("ttng.tensormap_fenceproxy_acquire", ("device_descriptor_copy", "persistent_matmul"), "without a fence"),
    ("ttg.async_wait", ("matmul_fp16", "matmul_int8", "attention", "matmul_weights"), "nothing orders it after"),
    ("ttng.warp_group_dot_wait", ("matmul_fp16", "attention"), "not waited for|nothing orders it after the wgmma"),
]
"""`async_wait` and `warp_group_dot_wait` have results: they stay, and wait for nothing."""
CASES = [(op, name, arch, report) for op, names, report in MUTANTS for name in names for arch in (90, 100)]


@pytest.mark.parametrize(("op", "name", "arch", "report"), CASES)
def test_missing_synchronisation_is_reported(op: str, name: str, arch: int, report: str) -> None:
    text = generate.compiled(name, arch)["ttgir"]
    if op in ("ttg.async_wait", "ttng.warp_group_dot_wait"):
        line = re.compile(rf"(= {re.escape(op)} .*(?:num|pendings) = )\d+")
        mutant = line.sub(r"\g<1>99", text)
    else:
        mutant = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(f"{op} "))
    if mutant == text:
        pytest.skip(f"there is no {op}")
    plan = make_plan(parse_module(mutant))
    with pytest.raises(Fault, match=report):
        run_plan(plan, REFERENCES[name](np.random.default_rng(0)), "adversarial")
