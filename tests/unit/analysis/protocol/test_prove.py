"""Proofs of synchronisation for all trip counts: what is right is proved, and no mistake is."""

import re
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
from tests.unit import volume
from tests.unit.analysis.protocol.kernels import below_zero, by_thread, polls, ring, turns
from tests.zoo.table import AREAS
from tlx_xdsl.analysis.protocol.prove import prove
from tlx_xdsl.runtime.check.run import any_values
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module, installed_profile
from tlx_xdsl.runtime.simulate.interpret import source_of_kernel
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.tools.launch_line.loading import load_kernel

pytestmark = pytest.mark.quick

EXAMPLES = Path(__file__).parents[4] / "examples"
# pyright: basic

RING_BUGS = ("no wait for empty", "no wait for full", "no arrival", "phase", "bytes", "depth", "count")


def proof(kernel, options=None, **arguments):
    source = source_of_kernel(kernel)
    (found,) = prove(any_values(source, arguments, Options(**(options or {}))), seconds=20)
    return found


def ring_arguments(T, SLOTS, BUG="none"):
    src = np.ones((max(T, 1) * 16, 16), np.float32)
    src = tlx_xdsl.TensorDescriptor.from_tensor(src, [16, 16])
    return {"src": src, "dst": np.zeros(max(T, 1) * 256, np.float32), "T": T, "SLOTS": SLOTS, "BUG": BUG}


def example(name, **constants):
    kernel, defaults = load_kernel(str(EXAMPLES / name))
    options = {key: value for key, value in defaults.options.items() if key in ("num_warps", "target")}
    wanted = Specialization(defaults.signature, {**defaults.constexprs, **constants}, **{"target": "sm_90a", **options})
    (found,) = prove(frontend_module(kernel.source, wanted, installed_profile()), seconds=60)
    return found


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_a_ring_is_proved(slots):
    found = proof(ring, **ring_arguments(3, slots))
    assert found
    assert found.reason is None
    assert not found.required


@pytest.mark.parametrize("bug", RING_BUGS)
def test_a_wrong_ring_is_refuted(bug):
    found = proof(ring, **ring_arguments(3, 2, bug))
    assert found.answer == "refuted"
    assert found.reason.location.filename.endswith("kernels.py")


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("bug", ["none", *RING_BUGS])
def test_nothing_is_found_in_what_is_proved(bug, slots):
    """With 0 to 8 turns: the interpreter knows nothing of the proof, and the other way round."""
    if not proof(ring, **ring_arguments(3, slots, bug)):
        return
    report = tlx_xdsl.check(
        ring,
        1,
        SLOTS=slots,
        BUG=bug,
        sizes={"T": range(9)},
        arguments=lambda T: _of_size(T),
        seconds=60,
        stages=("frontend",),
    )
    assert report, str(report)


def _of_size(T):
    found = ring_arguments(T, 1)
    return {name: found[name] for name in ("src", "dst")}


def test_named_barriers():
    assert proof(turns, T=3, BUG="none")
    assert proof(turns, T=3, BUG="one more").answer == "refuted"
    assert "ends with 128 of 256" in proof(turns, T=3, BUG="last call").reason.message


@pytest.mark.parametrize(("kernel", "arguments", "message"), [
    (polls, {"flag": np.zeros(1, np.int32), "T": 3}, "global memory is not followed"),
    (by_thread, {"T": 3}, "not followed"),
    (below_zero, {"T": 3}, ""),
])  # fmt: skip
def test_what_is_not_followed_is_not_proved(kernel, arguments, message):
    found = proof(kernel, **arguments)
    assert not found
    assert message in str(found.reason)
    assert "kernels.py:" in str(found.reason)


EASY = ["hopper_gemm_ws.py:matmul", "hopper_gemm_pipelined.py:matmul", "ampere_gemm_pipelined.py:matmul",
        "hopper_attention_ws.py:attention", "hopper_attention_pipelined.py:attention"]  # fmt: skip
LONG = ["hopper_attention_pingpong.py:attention", "hopper_gemm_persistent_cooperative.py:matmul",
        "hopper_gemm_persistent_pingpong.py:matmul"]  # fmt: skip


@pytest.mark.parametrize("name", EASY + (LONG if volume.is_full() else LONG[:1]))
def test_examples_are_proved(name):
    found = example(name)
    assert found.answer == "proved", str(found.reason)


SYNCHRONISES = re.compile(r"(\s+)tlx\.(barrier_\w+|named_barrier_\w+|async_\w*wait\w*)\(")
MUTANTS = [
    (name, number)
    for name in (*EASY, LONG[0])
    for number, line in enumerate((EXAMPLES / name.partition(":")[0]).read_text().splitlines())
    if SYNCHRONISES.match(line)
]


@pytest.mark.parametrize(("name", "number"), MUTANTS if volume.is_full() else MUTANTS[::5])
def test_no_line_of_an_example_is_redundant(name, number, tmp_path):
    """Each wait and each arrival is needed: without it the proof fails, also where the loops turn."""
    file, _, kernel = name.partition(":")
    lines = (EXAMPLES / file).read_text().splitlines()
    lines[number] = SYNCHRONISES.match(lines[number])[1] + "pass"
    (tmp_path / file).write_text("\n".join(lines) + "\n")
    found = example(f"{tmp_path / file}:{kernel}")
    assert found.answer == "refuted", found


def test_what_a_proof_is_for_only():
    (required,) = example("hopper_attention_pipelined.py:attention").required
    assert "hopper_attention_pipelined.py:103" in required.loop
    assert required.otherwise.message.startswith("deadlock")


def test_tensor_memory_is_named():
    found = example("blackwell_gemm_ws.py:matmul")
    assert found.answer == "unproved"
    assert "tensor memory" in found.reason.message


# Proxies, results in flight, global memory and threads of a task are not looked at; zero turns are a condition of the
# proof.
BESIDE = ("proxy fence", "result in flight", "TMA store not written", "residency", "descriptor in use", "descriptor",
          "layout of a view", "no lock", "no poll", "tasks of one program", "threads of one task",
          "sums in another order", "element left out")  # fmt: skip
"""What the kinds of mistakes begin with."""
BUGS = [
    bug for area, bugs in AREAS.items() for bug in bugs if area != "bounds" and not bug.kind.startswith(BESIDE)
]  # fmt: skip
CHOSEN = BUGS if volume.is_full() else BUGS[::4]


@pytest.mark.parametrize("bug", CHOSEN, ids=lambda bug: bug.name)
def test_no_mistake_of_the_zoo_is_proved(bug):
    source = source_of_kernel(bug.kernel)
    constants = {name: value for name, value in bug.constants.items() if name in source.signature.parameters}
    given = dict(source.signature.bind_partial(*bug.arguments(), **constants, BUG=bug.mistake).arguments)
    try:
        module = any_values(source, given, Options(**bug.options))
    except tlx_xdsl.CompilationError:
        return
    found = prove(module, seconds=5)[0]
    assert not found or found.required
