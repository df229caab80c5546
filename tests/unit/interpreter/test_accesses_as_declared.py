"""Agreement of declarations (`dialects/base/effects.py`) with the interpreter, over all kernels together.

What is made and not declared is a fault of the declaration; what is declared and never made is one, too, unless it is
listed here with the reason. Each operation that declares something runs in one of the kernels.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.gallery.synchronisation import cluster_runs, example_runs
from tests.gallery.synchronisation.zoo.kernels import CASES, FRONTEND, TTGIR
from tests.gallery.synchronisation.zoo.mutations import sites
from tests.gallery.synchronisation.zoo.running import run_plan
from tests.unit import volume
from tests.unit.interpreter.declared_accesses import Finding, declares
from tests.unit.interpreter.declared_kernels import KERNELS, TEXTS
from tests.unit.interpreter.oracle import checking, running, test_oracle_by_value
from tests.unit.interpreter.synchronisation.observing import Recorder
from tests.unit.interpreter.synchronisation.watching import recording
from tests.unit.kernels.attention import test_attention
from tests.unit.kernels.gemm import test_gemm
from tlx_xdsl.dialects import gpu, llvm, nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import effects as declared_effects
from tlx_xdsl.dialects.base.effects import (
    TMA,
    Effects,
    Group,
    Sync,
    arrives,
    reads,
    updates,
    writes,
)  # fmt: skip
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.kernels.rows.norm import layer_norm_launch
from tlx_xdsl.kernels.rows.softmax import softmax_launch

STAGES = ("frontend", "ttgir")
MUTANTS = 2
"""Of each kernel of the zoo, where not all are run."""
FRONTEND_RUNS = (
    "multicast", "layer-norm-pair", "ring-store-f32", "ring-async-i8", "ring-copy", "hand-over-total",
    "hand-over-relayed", "launch-control", "pair", "pair-persistent", "mxfp8", "mxfp4", "softmax",
    "portable-gemm", "pipelined-gemm",
)  # fmt: skip
TTGIR_RUNS = ("multicast", "layer-norm-pair", "ring-async-i8", "ring-copy", "hand-over-total", "pair", "mxfp4")
"""The kernels of the galleries that are run as they are, and as TTGIR, where not all are."""

# What differs, and why -----------------------------------------------------------------------------------------------

NO_RACE = "no other task has a turn in between: the interpreter has nothing to exclude"
ONE_PROGRAM = "CTAs that hold one tensor together run as one program"
A_HINT = "a prefetch changes nothing that a program sees: the interpreter does nothing"

UNMADE = {
    ("tlx.async_tma_prefetch", "PREFETCH 'desc' GLOBAL"): A_HINT,
    ("tlx.prefetch", "PREFETCH 'src' GLOBAL"): A_HINT,
    ("tt.atomic_load", "ATOMIC 'ptr' GLOBAL"): NO_RACE,
    ("tt.atomic_poll", "ATOMIC 'ptr' GLOBAL"): NO_RACE,
    ("tt.atomic_store", "ATOMIC 'ptr' GLOBAL"): NO_RACE,
    ("tlx.wait_signal", "ATOMIC 'ptr' GLOBAL"): NO_RACE,
    ("ttg.local_atomic_scatter_rmw", "ATOMIC 'dst' SHARED"): NO_RACE,
    ("ttng.async_shared_store", "SHARED of other CTAs"): ONE_PROGRAM,
    ("ttng.async_shared_store", "until mbarrier of other CTAs"): ONE_PROGRAM,
    ("ttng.async_copy_mbarrier_arrive", "RELEASE"): "releases the copies, which is declared as a release of all",
}
"""What is declared and never made, by operation."""

INTERPRETER_ONLY = {
    ("ttng.reinterpret_tensor_descriptor", "READ 'raw_desc' GLOBAL"): "the hardware reads it in the copy by TMA",
    ("ttng.tensormap_fenceproxy_acquire", "READ 'desc_ptr' GLOBAL"): "the descriptor's mark, which TMA does not have",
}
"""What the interpreter does and the hardware does not, by operation and a part of the text."""

TABLES = {**UNMADE, **INTERPRETER_ONLY}

NOT_RUN = {
    "nvvm.elect.sync": "the interpreter runs the threads of a task as one, and refuses what differs between them",
    "tlx.leave": "it ends a thread block whose time is over, and no time passes in the interpreter",
}
"""Declared operations that run in no kernel."""


def unexplained(found: set[Finding]) -> list[str]:
    """The findings that no table explains, and the explanations that no finding needs."""
    left = {finding for finding in found if not _reasons(finding)}
    used = {reason for finding in found for reason in _reasons(finding)}
    unused = [f"no kernel shows this any more, delete it: {key}" for key in TABLES.keys() - used]
    return sorted(map(str, left)) + sorted(unused)


def _reasons(finding: Finding) -> list[tuple[str, str]]:
    tables = TABLES if finding.is_declared else TABLES.keys() - UNMADE.keys()
    return [key for key in tables if key[0] == finding.op and key[1] in finding.what]


# The kernels ---------------------------------------------------------------------------------------------------------


def run_small() -> None:
    """The kernels of `declared_kernels.py`."""
    for text in TEXTS.values():
        text()
    for kernel in KERNELS.values():
        for stage in STAGES:
            kernel(stage)


def run_galleries() -> None:
    """Kernels for clusters and for Blackwell, and those of `examples/`."""
    makers = {**cluster_runs.CASES, **example_runs.CASES}
    for name in makers if volume.is_full() else FRONTEND_RUNS:
        makers[name]().run(stage="frontend", jobs=1)
    for name in makers if volume.is_full() else TTGIR_RUNS:
        # Not all can be compiled.
        with contextlib.suppress(CompilationError):
            makers[name]().run(stage="ttgir", jobs=1)


def run_zoo() -> None:
    """The kernels of the zoo, and mutants of them, which end in a fault."""
    for case in CASES:
        problem = case.make()
        module = case.module(FRONTEND)
        every = sites(module)
        random.Random(case.name).shuffle(every)
        mutants = (site.mutant(module) for site in (every if volume.is_full() else every[:MUTANTS]))
        later = [case.module(TTGIR)] if volume.is_full() or case in CASES[::3] else []
        for each in (module, *later, *mutants):
            run_plan(make_plan(each), problem, "round-robin")


def run_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of the oracle."""
    assert test_oracle_by_value.REFERENCES
    # Plans are kept: those of other tests were not looked at, and other tests shall not get ours.
    monkeypatch.setattr(running, "plan_of", running.plan_of.__wrapped__)
    for stage in running.STAGES if volume.is_full() else STAGES[:1]:
        for checks in checking.CHECKS.values():
            for check in checks if volume.is_full() else checks[:1]:
                checking.run_check(check, 0, stage)


def run_library() -> None:
    """The kernels of `tlx_xdsl/kernels`."""
    for stage in STAGES if volume.is_full() else STAGES[1:]:
        for schedule in test_gemm.TILES.values():
            test_gemm.check(*test_gemm.operands(200, 130, 150), schedule, stage=stage)
        test_attention.run(2, 1, 70, 150, causal=True, stage=stage)
    x = np.ones((3, 100), np.float32)
    softmax_launch(x, x.copy()).interpret(jobs=1)
    layer_norm_launch(x, None, None, x.copy()).interpret(jobs=1)


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorder]:
    """Record the accesses of operations in all kernels."""
    with recording() as recorder, pytest.MonkeyPatch.context() as monkeypatch:
        run_small()
        run_galleries()
        run_zoo()
        run_library()
        run_oracle(monkeypatch)
        yield recorder


def test_operations_make_the_accesses_that_they_declare(recorded: Recorder) -> None:
    assert not recorded.stray
    complaints = unexplained(recorded.findings())
    assert not complaints, "\n".join(complaints)


OURS = [op for dialect in (tt.TT, ttg.TTG, ttng.TTNG, tlx.TLX, nvvm.NVVM) for op in dialect.operations]
OURS += [gpu.BarrierOp, llvm.AssumeOp]


def test_each_declared_operation_runs(recorded: Recorder) -> None:
    missing = {op.name for op in OURS if declares(op) and op not in recorded.ran}
    assert missing == NOT_RUN.keys()


# Stock's kernels -----------------------------------------------------------------------------------------------------

STOCK_RUNS = ("vector_add", "atomics", "matmul_fp16")


@pytest.mark.backend
def test_stocks_kernels_make_no_access_that_is_not_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    from tests.unit.interpreter.stock import running as stock, test_stock_ttgir as texts

    monkeypatch.setattr(stock, "stock_plan", stock.stock_plan.__wrapped__)
    with recording() as recorder:
        for name, arch in texts.TEXTS:
            if volume.is_full() or name in STOCK_RUNS:
                with contextlib.suppress(CompilationError, pytest.skip.Exception):
                    stock.check(name, arch, "round-robin", 0)
    assert recorder.ran
    assert not recorder.stray
    found = [finding for finding in recorder.findings() if not finding.is_declared and not _reasons(finding)]
    assert not found, "\n".join(map(str, found))


# Declarations that are broken ----------------------------------------------------------------------------------------


def _gemm() -> None:
    case = CASES[0]
    assert run_plan(make_plan(case.module(FRONTEND)), case.make(), "round-robin").kind == "right"


def _bulk() -> None:
    KERNELS["bulk copies"]("frontend")


_STORE = "ttng.async_tma_copy_local_to_global"
BROKEN: dict[str, tuple[Callable[[], None], type, Effects, str]] = {
    "a read is left out": (
        _gemm, ttng.AsyncTMACopyLocalToGlobalOp, Effects(writes("desc"), by=TMA, completes_on=Group.BULK),
        f"{_STORE} makes, and does not declare: READ 'src' SHARED ASYNC until Group.BULK",
    ),
    "another proxy": (
        _gemm, ttng.AsyncTMACopyLocalToGlobalOp, Effects(reads("src"), writes("desc"), completes_on=Group.BULK),
        f"{_STORE} makes, and does not declare: READ 'src' SHARED ASYNC until Group.BULK",
    ),
    "no end": (
        _gemm, ttng.AsyncTMACopyLocalToGlobalOp, Effects(reads("src"), writes("desc"), by=TMA),
        f"{_STORE} makes, and does not declare: WRITE 'desc' GLOBAL ASYNC until Group.BULK",
    ),
    "a group for a barrier": (
        _bulk, tlx.AsyncBulkLoadOp, Effects(reads("src"), writes("result"), by=TMA, completes_on=Group.BULK),
        "tlx.async_bulk_load makes, and does not declare: COMPLETE 'barrier' SHARED",
    ),
    "another group": (
        _bulk, tlx.AsyncBulkStoreOp, Effects(reads("src"), writes("dst"), by=TMA, completes_on=Group.CP_ASYNC),
        "tlx.async_bulk_store makes, and does not declare: READ 'src' SHARED ASYNC until Group.BULK",
    ),
    "an operand for another": (
        _bulk, tlx.AsyncBulkStoreOp, Effects(reads("dst"), writes("src"), by=TMA, completes_on=Group.BULK),
        "tlx.async_bulk_store declares, and never makes: WRITE 'src' SHARED ASYNC until Group.BULK",
    ),
    "a write too many": (
        _gemm, ttg.LocalStoreOp, Effects(updates("dst")),
        "ttg.local_store declares, and never makes: READ 'dst' SHARED GENERIC until None",
    ),
    "no arrival": (
        _gemm, ttng.BarrierExpectOp, Effects(),
        "ttng.barrier_expect makes, and does not declare: ARRIVE 'alloc' SHARED",
    ),
    "an arrival for a wait": (
        _gemm, ttng.WaitBarrierOp, Effects(arrives("alloc")),
        "ttng.wait_barrier makes, and does not declare: ACQUIRE",
    ),
    "no fence": (
        _bulk, ttng.FenceAsyncSharedOp, Effects(sync=Sync.FENCE),
        "ttng.fence_async_shared makes, and does not declare: FENCE_PROXY",
    ),
}  # fmt: skip
"""Kernels, an operation that is declared wrongly, and what is found."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_declaration_that_is_broken_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, op, effects, message = BROKEN[name]
    # The declaration is looked up once a class.
    monkeypatch.setattr(declared_effects, "_declaration", declared_effects._declaration.__wrapped__)
    monkeypatch.setattr(op, "EFFECTS", effects)
    with recording() as recorder:
        kernel()
    assert message in set(map(str, recorder.findings()))
    monkeypatch.undo()
    with recording() as recorder:
        kernel()
    assert message not in set(map(str, recorder.findings()))
