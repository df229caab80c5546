"""Agreement of the coverage with what the interpreter touches: kernels of the oracle, and the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.gallery.synchronisation import example_runs
from tests.unit import volume
from tests.unit.addresses import ground_truth, random_programs
from tests.unit.addresses.coverage.touched_bytes import Watched, compare, coverage_of, pairs, run, watch_descriptors
from tests.unit.interpreter.oracle import checking, running
from tests.unit.interpreter.oracle.test_oracle_by_value import CHECKS
from tlx_xdsl.addresses import LaunchFacts, analyse_program_addresses
from tlx_xdsl.addresses.coverage.coverage import Coverage
from tlx_xdsl.addresses.coverage.disjointness import proofs
from tlx_xdsl.addresses.coverage.launch import Launch
from tlx_xdsl.analysis.integers.transfer import bytes_of
from tlx_xdsl.dialects import tt, ttng
from tlx_xdsl.dialects.base.tensors import pointee_type
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.plan import kernel_of, make_plan
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.tools.launch_line.loading import load_kernel

STORES = (tt.StoreOp, tt.DescriptorStoreOp, tt.DescriptorScatterOp, ttng.AsyncTMACopyLocalToGlobalOp)

PARTLY = {
    "pointers": 1,
    "pointers_from_memory": 1,
    "gather_and_scatter": 2,
    "early_return_of_values": 2,
    "float_atomics": 4,
    "orders_and_scopes": 1,
}
"""Operations of kernels that touch what depends on loaded numbers: by pointer, mask or a way through the kernel."""


def check_collisions(coverage: Coverage, memory: Watched) -> None:
    """Whoever is said to write the same bytes does, and whoever does is reported, or what is not known is."""
    really, verdicts = pairs(memory, *STORES), {each.verdict for each in coverage.writings()}
    mixed = pairs(memory, *STORES, tt.AtomicRMWOp)
    for writing in coverage.writings():
        if writing.meeting is not None:
            assert (writing.meeting.program, writing.meeting.other) in mixed
    if really:
        assert verdicts & {"collides", "not known"}


FULL = volume.is_full()


def _tested(number: int, check: checking.Check) -> bool:
    """Return whether a kernel is tested: in the CI tier some, and all that depend on data."""
    return FULL or check.kernel in PARTLY or number % 8 == 0


@pytest.mark.parametrize("check", [check for number, check in enumerate(CHECKS) if _tested(number, check.values[0])])
@pytest.mark.filterwarnings("ignore:tl.softmax")
def test_oracle(check: checking.Check, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    watch_descriptors(monkeypatch)
    rng = np.random.default_rng(0)
    arguments = {name: make(rng) for name, make in check.arguments.items()}
    memory, plan = Watched(), running.plan_of(check.kernel, "frontend")
    names, values = checking._spread(arguments)
    bound = bind(plan.function, values, names, memory)
    if check.prepare is not None:
        check.prepare(checking._starts(names, values, bound), arguments)
    run(plan, memory, bound, check.grid)
    coverage = coverage_of(plan.function, bound, check.grid, {})
    known = compare(coverage, bound, memory)
    accesses = {*(each.op for each in coverage.touched), *(each.op for each in coverage.unseen)}
    assert len(accesses) - known <= PARTLY.get(check.kernel, 0)
    check_collisions(coverage, memory)


@pytest.mark.parametrize(
    ("file", "case"),
    [
        ("ampere_gemm_pipelined.py:matmul", "portable-gemm-ragged"),
        ("hopper_gemm_ws.py:matmul", "ws-gemm-ragged"),
        ("hopper_attention_ws.py:attention", "ws-attention-causal"),
        *(
            [
                ("hopper_gemm_persistent_pingpong.py:matmul", "pingpong-gemm-ragged"),
                ("blackwell_gemm_ws.py:matmul", "blackwell-gemm-ragged"),
            ]
            if FULL
            else []
        ),
    ],
)
def test_examples(file: str, case: str, monkeypatch: pytest.MonkeyPatch):
    """TMA, asynchronous copies, tasks, persistent loops, and tiles that do not divide the arrays."""
    watch_descriptors(monkeypatch)
    launch = example_runs.CASES[case]()
    kernel, defaults = load_kernel(f"{example_runs.EXAMPLES / file}")
    target = "sm_100a" if "blackwell" in file else "sm_90a"
    signature: dict[str, Any] = {**defaults.signature}
    for name, value in zip(signature, launch.arguments, strict=True):
        if hasattr(value, "block_shape"):
            signature[name] = f"tensordesc<fp16{list(value.block_shape)}>"
        elif isinstance(value, np.ndarray) and value.dtype == ml_dtypes.bfloat16:
            signature[name] = "*bf16"
    constants = {**defaults.constexprs, **launch.constexprs}
    module = frontend_module(
        kernel.source, Specialization(signature, constants, target, num_warps=launch.options.get("num_warps", 4))
    )
    plan, memory = make_plan(module), Watched()
    grid = (*launch.grid, 1, 1)[:3]
    bound = bind(plan.function, launch.arguments, list(signature), memory)
    run(plan, memory, bound, grid)
    coverage = coverage_of(plan.function, bound, grid, {})
    assert not coverage.unseen
    assert compare(coverage, bound, memory) == len({each.op for each in coverage.touched}) > 2
    assert {each.verdict for each in coverage.writings()} == {"disjoint"}
    assert not pairs(memory, *STORES)


@pytest.mark.parametrize("first", [41, 44])
def test_units_of_rows(first: int, monkeypatch: pytest.MonkeyPatch):
    """Compare the bytes that TMA writes after the end of a row."""
    watch_descriptors(monkeypatch)
    kernel, defaults = load_kernel(f"{Path(__file__).parent / 'coverage_kernels.py'}:two_parts")
    module = frontend_module(kernel.source, Specialization(defaults.signature, defaults.constexprs))
    plan, memory = make_plan(module), Watched()
    bound = bind(plan.function, [np.zeros(8 * 64, np.float32), first], ["dst", "first"], memory)
    run(plan, memory, bound, (2, 1, 1))
    coverage = coverage_of(plan.function, bound, (2, 1, 1), {})
    assert compare(coverage, bound, memory) == 2
    assert pairs(memory, *STORES) == ({(0, 1)} if first % 4 else set())
    check_collisions(coverage, memory)


def test_random_programs():
    """Programs whose integers wrap around, are divided and chosen: what is said to be touched is, and nothing else."""
    known = total = 0
    for seed in range(0, 500, 1 if FULL else 25):
        program = random_programs.make_program(seed)
        module = parse_module(program.text)
        plan = make_plan(module, watcher=ground_truth.Recorder())
        pointer, *numbers = program.arguments
        bound: list[Any] = [np.int64(pointer), *map(np.int32, numbers)]
        events = ground_truth.run(plan, ground_truth.NoMemory(), program.grid, (1, 1, 1), bound)
        memory = Watched()
        coverage = coverage_of(plan.function, bound, program.grid, {})
        numbered = {coverage.launch.place(number): number for number in range(coverage.launch.programs)}
        for event in events:
            memory.program = numbered[event.program]
            memory.note(event.op, event.addresses, bytes_of(pointee_type(event.op.ptr.type)), event.touched)
        known += compare(coverage, bound, memory)
        total += len({*(each.op for each in coverage.touched), *(each.op for each in coverage.unseen)})
        check_collisions(coverage, memory)
    assert known > 0.9 * total > 0


def test_proofs_hold_in_launches():
    """Compare the strides that are proved of random programs with the addresses of launches."""
    proven = 0
    for seed in range(0, 500, 1 if FULL else 10):
        program = random_programs.make_program(seed)
        module = parse_module(program.text)
        function = kernel_of(module, None)
        numbers = dict(zip("nm", program.arguments[1:], strict=True))
        accesses = analyse_program_addresses(module, LaunchFacts(program.grid, dict(numbers))).accesses
        coverage = Coverage(module, function, Launch(program.grid, numbers))
        verdicts = {writing.array: writing.verdict for writing in coverage.writings()}
        for proof in proofs(module, accesses):
            names = {f"num_programs_{axis}": size for axis, size in zip("xyz", program.grid, strict=True)}
            several = coverage.launch.programs > 1
            holding = [several if " more than " in each else eval(each, {}, names) for each in proof.conditions]
            if proof.verdict != "not known" and all(holding):
                assert verdicts[proof.array] == proof.verdict, f"seed {seed}"
                proven += 1
    assert proven > (20 if FULL else 2)
