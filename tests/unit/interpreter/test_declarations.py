"""What operations declare (`dialects/base/effects.py`) is what they do in the interpreter, over all kernels together.

What is made and not declared is a fault of the declaration; what is declared and never made is one, too, unless it is
listed here with the reason. Each operation that declares something runs in one of the kernels.
"""

from __future__ import annotations

import contextlib
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.gallery.synchronisation import cluster_runs, example_runs
from tests.gallery.synchronisation.zoo.kernels import CASES, FRONTEND, TTGIR
from tests.gallery.synchronisation.zoo.mutations import sites
from tests.gallery.synchronisation.zoo.running import run_plan
from tests.unit import volume
from tests.unit.interpreter.declared_kernels import KERNELS, TEXTS
from tests.unit.interpreter.observing import Finding, Recorder, declares, recording
from tests.unit.interpreter.oracle import checking, running, test_oracle_by_value
from tests.unit.kernels import test_attention, test_gemm
from tlx_xdsl.dialects import gpu, llvm, nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base.effects import (
    TMA, Effects, Group, Proxy, Sync, allocates, arrives, reads, updates, writes,
)  # fmt: skip
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.kernels.layernorm import layer_norm
from tlx_xdsl.kernels.softmax import softmax

STAGES = ("frontend", "ttgir")
MUTANTS = 2
"""Of each kernel of the zoo, where not all are run."""
KEPT = 4
"""Of what is run at both stages, one in so many is also run as TTGIR where not all are."""

# What differs, and why -----------------------------------------------------------------------------------------------

NO_RACE = "no other task has a turn in between: the interpreter has nothing to exclude"
A_HINT = "a prefetch changes nothing that a program sees: the interpreter does nothing"

UNMADE = {
    ("tlx.async_tma_prefetch", "PREFETCH 'desc' GLOBAL"): A_HINT,
    ("tlx.prefetch", "PREFETCH 'src' GLOBAL"): A_HINT,
    ("tlx.prefetch_tensormap", "PREFETCH 'desc' GLOBAL"): A_HINT,
    ("tt.atomic_load", "ATOMIC 'ptr' GLOBAL"): NO_RACE,
    ("tt.atomic_poll", "ATOMIC 'ptr' GLOBAL"): NO_RACE,
    ("tt.atomic_store", "ATOMIC 'ptr' GLOBAL"): NO_RACE,
    ("ttg.local_atomic_scatter_rmw", "ATOMIC 'dst' SHARED"): NO_RACE,
    ("tlx.fence", "ACQUIRE"): "a wait acquires by itself here, so that a fence after it has nothing to add",
    ("ttng.async_copy_mbarrier_arrive", "RELEASE"): "releases the copies, which is declared as a release of all",
}
"""What is declared and never made, by operation."""

DISAGREEMENTS = {
    ("nvvm.inline_ptx", "FENCE"): "a fence in PTX is declared as RELEASE or ACQUIRE, without FENCE",
    ("tlx.async_tma_load", "COMPLETE 'barrier' SHARED of other CTAs"): "with two_ctas, without multicast",
    ("ttng.tc_gen5_commit", "ARRIVE 'barrier' SHARED of other CTAs"): "in modules with MMAs of pairs of CTAs",
    ("ttng.reinterpret_tensor_descriptor", "READ 'raw_desc' GLOBAL"): "the hardware reads it in the copy by TMA",
    ("ttng.tensormap_fenceproxy_acquire", "READ 'desc_ptr' GLOBAL"): "the interpreter finds the descriptor's mark",
    ("ttng.warp_group_dot", "SHARED TENSOR_CORE until"): "a synchronous MMA waits for itself",
    ("ttng.tc_gen5_mma", "TENSOR_CORE until"): "a synchronous MMA waits for itself",
    ("ttng.cluster_barrier", "ACQUIRE"): "the wait of a relaxed barrier acquires what others have released",
}
"""Where the declaration is wrong, or the interpreter does more than the hardware, by operation and a part of the text."""

NOT_RUN = {
    "nvvm.elect.sync": "the interpreter runs the threads of a task as one, and refuses what differs between them",
}
"""Declared operations that run in no kernel."""


def unexplained(found: set[Finding]) -> list[str]:
    """The findings that no table explains, and the explanations that no finding needs."""
    left = {finding for finding in found if not _reasons(finding)}
    used = {reason for finding in found for reason in _reasons(finding)}
    unused = [f"no kernel shows this any more, delete it: {key}" for key in {*UNMADE, *DISAGREEMENTS} - used]
    return sorted(map(str, left)) + sorted(unused)


def _reasons(finding: Finding) -> list[tuple[str, str]]:
    table = {**UNMADE, **DISAGREEMENTS} if finding.is_declared else DISAGREEMENTS
    return [key for key in table if key[0] == finding.op and key[1] in finding.what]


# The kernels ---------------------------------------------------------------------------------------------------------


def sample(names: Any, part: int) -> list[Any]:
    """All of some names, or one in `part`, the same each time."""
    return [name for name in names if volume.is_full() or zlib.crc32(str(name).encode()) % part == 0]


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
    for name in sample(makers, KEPT):
        makers[name]().run(stage="frontend", jobs=1)
    for name in sample(makers, KEPT):
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
        for each in (module, case.module(TTGIR), *mutants):
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
            test_gemm.run(200, 130, 150, schedule, stage=stage)
        test_attention.run(2, 1, 70, 150, causal=True, stage=stage)
    x = np.ones((3, 100), np.float32)
    softmax(x)
    layer_norm(x)


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorder]:
    """What operations have made in all kernels."""
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
