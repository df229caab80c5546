"""Blocks that no TMA loads: copied by the producer's threads, and right; the synchronisation is proved, and needed.

The oracle of numbers is the plain kernel in the interpreter; those of the synchronisation are the prover and `check`.
"""

import re

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain import matmul_gathered
from tests.gallery.plain.family import Problem
from tests.gallery.plain.numpy_arrays import NumpyArrays, check as check_values, expected as reference_of
from tests.gallery.plain.specialized import make
from tlx_xdsl.dialects import ttg
from tlx_xdsl.runtime.check.run import check
from tlx_xdsl.runtime.specialize.specialized import warp_specialized
from tlx_xdsl.runtime.specialize.verdict import proof_of
from tlx_xdsl.runtime.specialize.written import kernel_of
from tlx_xdsl.transforms.warp_specialize.refusal import WarpSpecializeRefusal
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions
from tlx_xdsl.transforms.warp_specialize.tasks_of import NOTE

BLOCKS = {"BM": 64, "BN": 64, "BK": 32}


@tlx_xdsl.jit
def by_a_list(a_ptr, b_ptr, c_ptr, list_ptr, M, N, K,
              BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """The rows of B come from a list, of which each turn loads a part."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        at = tl.load(list_ptr + depth, mask=depth < K, other=0)
        a = tl.load(a_ptr + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth < K)[None, :])
        b = tl.load(b_ptr + at[:, None] * N + columns[None, :], mask=(depth < K)[:, None] & (columns < N)[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16),
             mask=(rows[:, None] < M) & (columns[None, :] < N))  # fmt: skip


@tlx_xdsl.jit
def by_pointers(a_ptr, b_ptr, c_ptr, M, N, K, STRIDE_A: tl.constexpr, ALONG: tl.constexpr, OTHER: tl.constexpr,
                EVERY: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """A has any strides, another value outside, or only each `EVERY`-th row; its pointers are carried."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * STRIDE_A + depth[None, :] * ALONG
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=((rows < M) & (rows % EVERY == 0))[:, None] & (k + depth < K)[None, :], other=OTHER)
        b = tl.load(b_ptr + (k + depth)[:, None] * N + columns[None, :],
                    mask=(k + depth < K)[:, None] & (columns < N)[None, :], other=0.0)  # fmt: skip
        acc = tl.dot(a, b, acc)
        a_ptrs += BK * ALONG
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16),
             mask=(rows[:, None] < M) & (columns[None, :] < N))  # fmt: skip


@tlx_xdsl.jit
def squares(a_ptr, c_ptr, K, STRIDE: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    rows = tl.arange(0, BM)
    acc = tl.zeros((BM, BM), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * STRIDE + (k + tl.arange(0, BK))[None, :])
        acc = tl.dot(a, a.T, acc)
    tl.store(c_ptr + rows[:, None] * BM + rows[None, :], acc)


def problem(kernel, m, n, k, **constants):
    new = NumpyArrays()
    width = max(constants.get("STRIDE_A", 0), constants.get("ALONG", 0) * k, k)
    args = {"a_ptr": new.normal(m, width), "b_ptr": new.normal(k, n), "c_ptr": new.poisoned(m, n)}
    if kernel is by_a_list:
        args["list_ptr"] = new.below(k, k)
    return Problem((-(-m // 64), -(-n // 64)), args | {"M": m, "N": n, "K": k}, {"c": args["c_ptr"]}, ("c",), dict, 0.0)


def made_of(kernel, sizes, decisions, **constants):
    wanted = problem(kernel, *sizes, **constants)
    return make(kernel, wanted, constants | BLOCKS, 4, decisions)


def copies(module):
    return [op for op in module.walk() if isinstance(op, ttg.AsyncCopyGlobalToLocalOp)]


PLAIN = {"STRIDE_A": 176, "ALONG": 1, "OTHER": 0.0, "EVERY": 1}
COPIED = {
    "rows of B by a list": (by_a_list, {}),
    "rows of 8 bytes": (by_pointers, PLAIN | {"STRIDE_A": 180}),
    "each third row": (by_pointers, PLAIN | {"EVERY": 3}),
}


@pytest.mark.parametrize("decisions", [Decisions(groups=1), Decisions(groups=1, depth=2, persistent=True)], ids=str)
@pytest.mark.parametrize("case", COPIED)
def test_copied_blocks_are_right(case, decisions):
    kernel, constants = COPIED[case]
    sizes = 80, 112, 176
    made = made_of(kernel, sizes, decisions, **constants)
    assert copies(made.specialized)
    expected, found = (problem(kernel, *sizes, **constants) for _ in range(2))
    made.run_plain(expected)
    result = made.run_specialized(found, schedule="adversarial")
    assert not [each for each in result.warnings if each.severity != "remark"]
    np.testing.assert_array_equal(found.arrays["c"], expected.arrays["c"])


STAY = {
    "rows of 2 bytes": (PLAIN | {"STRIDE_A": 177}, "a thread would copy 16 bits at a time"),
    "columns side by side": (PLAIN | {"STRIDE_A": 1, "ALONG": 180}, "of its columns lie side by side in memory"),
    "another value outside": (PLAIN | {"EVERY": 3, "OTHER": 1.0}, "cp.async writes 0 where the mask is false"),
}  # fmt: skip


@pytest.mark.parametrize("case", STAY)
def test_what_stays_says_why(case):
    constants, reason = STAY[case]
    module = made_of(by_pointers, (80, 112, 176), Decisions(groups=1), **constants).specialized
    assert not copies(module)
    notes = [note.data for op in module.walk() if (note := op.attributes.get(NOTE)) is not None]
    assert any("loaded by the threads, because" in note and reason in note for note in notes), notes


def test_a_kernel_without_either_is_refused_at_its_load():
    types, constants = {"a_ptr": "*fp16:16", "c_ptr": "*fp32:16", "K": "i32:16"}, {"STRIDE": 177, "BM": 64, "BK": 32}
    refused = warp_specialized(squares, types, constants).refused
    assert isinstance(refused, WarpSpecializeRefusal)
    assert re.search(r"or threads by cp\.async: .*; no cp\.async: .*16 bits at a time", refused.message)
    assert "a = tl.load(" in refused.source_line
    assert not warp_specialized(squares, types, constants | {"STRIDE": 180}).refused


# The synchronisation --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gathered():
    """The specialised kernel of the gallery with four slots, two of which wait for their report."""
    table = matmul_gathered.TLX_COMPILE["matmul_gathered"]
    constants = table["constexprs"] | {"BLOCK_M": 128, "BLOCK_N": 64}
    wanted = Decisions(groups=2, persistent=False)
    return warp_specialized(matmul_gathered.matmul_gathered, table["signature"], constants, wanted)


def changed(gathered, folder, *changes):
    """The kernel of the written file after some changes of its text."""
    text = gathered.source
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "changed.py"
    path.write_text(text)
    return kernel_of(path)[0]


FENCED = "tlx.async_load_wait_group(2)\n                tlx.fence_async_shared()\n"
LATE = "full[(filled + 2) % 4], pred=k >= 128"
WRONG = {
    "waits for one copy less": [("load_wait_group(2)", "load_wait_group(3)")],
    "reports a turn early": [(LATE, "full[(filled + 3) % 4], pred=k >= 64")],
    "never reports the last one": [("(filled + 3) % 4], pred=K > 0", "(filled + 3) % 4], pred=K < 0")],
}


def test_four_slots_are_proved(gathered, tmp_path):
    verdict = proof_of(changed(gathered, tmp_path), gathered.specialization)
    assert verdict.answer == "proved", str(verdict)


@pytest.mark.parametrize("case", WRONG)
def test_changes_of_the_synchronisation_are_refuted(gathered, case, tmp_path):
    assert proof_of(changed(gathered, tmp_path, *WRONG[case]), gathered.specialization).answer == "refuted"


def test_the_final_code_is_right(gathered):
    """The oracle is numpy; the PTX machine also looks for unordered accesses."""
    constants = {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 64}
    wanted = matmul_gathered.FAMILY.make({"M": 144, "N": 80, "K": 336, "rows": 50}, NumpyArrays(), constants)
    grid, args = gathered.arguments(wanted.grid, **wanted.arguments, **constants)
    assert not gathered.kernel.interpret(grid, *args, stage="ptx", **gathered.options).warnings
    check_values(wanted, reference_of(wanted), matmul_gathered.FAMILY.tolerance)


@pytest.mark.parametrize("fenced", [True, False])
def test_the_fence_is_the_writers(gathered, fenced, tmp_path):
    """Check that without the fence after the wait, tensor cores may miss what threads have copied."""
    kernel = changed(gathered, tmp_path, *([] if fenced else [(FENCED, FENCED.partition("\n")[0] + "\n")]))
    family = matmul_gathered.FAMILY
    wanted = family.make({"M": 128, "N": 64, "K": 320, "rows": 50}, NumpyArrays(), {"BLOCK_M": 128, "BLOCK_N": 64})
    grid, args = gathered.arguments(wanted.grid, **wanted.arguments, BLOCK_M=128, BLOCK_N=64, BLOCK_K=64)
    report = check(kernel, grid, *args, stages=("frontend",))
    assert bool(report) is fenced
    assert fenced or "cp.async" in str(report.findings[0].diagnostic)
