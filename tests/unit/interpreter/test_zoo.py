"""Every mutant of the kernels is found, or is listed as benign with an argument that holds."""

from __future__ import annotations

import random
import zlib

import pytest

from tests.gallery.synchronisation.zoo.benign import BENIGN
from tests.gallery.synchronisation.zoo.judging import benign_mutants, rows, unused
from tests.gallery.synchronisation.zoo.kernels import ALIASED, CASES, FRONTEND, TTGIR, Case
from tests.gallery.synchronisation.zoo.mutations import sites
from tests.gallery.synchronisation.zoo.running import ISSUE, run_mutant, run_plan
from tests.unit import volume
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.interpreter.scheduler import POLICIES

SAMPLE = 2
"""Where not all mutants of a kernel are run: how many are, beside one of each operation and mutation."""
SEEDS = range(3 if volume.is_full() else 1)

by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def sample(case: Case, module) -> list[int]:
    """The mutants to run: all, or the same few each time, of each operation and mutation at least one."""
    every = sites(module)
    if volume.is_full():
        return list(range(len(every)))
    shuffled = list(range(len(every)))
    random.Random(zlib.crc32(case.name.encode())).shuffle(shuffled)
    kinds = {(every[number].op.name, every[number].mutation.name): number for number in shuffled}
    return sorted(set(shuffled[:SAMPLE]) | set(kinds.values()))


@by_name
def test_mutants_are_found(case):
    module = case.module()
    complaints = [
        complaint for row in rows(case, module, case.make(), sample(case, module)) for complaint in row.complaints()
    ]
    assert not complaints, "\n".join(complaints)


ON_TENSOR_CORES = [case for case in CASES if case.name in ("blackwell_gemm", "blackwell_attention", "cluster_pair")]
"""The kernels for Blackwell: `tensor_core_order` changes nothing for the others."""
ISSUED = ON_TENSOR_CORES if volume.is_full() else [case for case in CASES if case.name == "blackwell_attention"]


@pytest.mark.parametrize("case", ISSUED, ids=[case.name for case in ISSUED])
def test_mutants_are_found_where_issue_orders(case):
    module = case.module()
    # What the order makes benign is among them.
    differ = benign_mutants(case, module, ISSUE).keys() - benign_mutants(case, module).keys()
    chosen = sorted(differ | set(sample(case, module)))
    complaints = [complaint for row in rows(case, module, case.make(), chosen, ISSUE) for complaint in row.complaints()]
    assert not complaints, "\n".join(complaints)


LATER = [("gemm_ws", ALIASED), ("gemm_ws", TTGIR), ("attention_ws", TTGIR), ("blackwell_attention", ALIASED)]
if volume.is_full():
    LATER = [(case.name, stage) for case in CASES for stage in (ALIASED, TTGIR)]


@pytest.mark.parametrize(("name", "stage"), LATER)
def test_mutants_are_found_at_later_stages(name, stage):
    case = next(case for case in CASES if case.name == name)
    module = case.module(stage)
    complaints = [
        complaint for row in rows(case, module, case.make(), sample(case, module)) for complaint in row.complaints()
    ]
    assert not complaints, "\n".join(complaints)


@by_name
def test_benign_mutants_exist(case):
    assert not unused(case, case.module())


def test_benign_mutants_are_of_kernels_here():
    assert {entry.case for entry in BENIGN} <= {case.name for case in CASES}


@by_name
@pytest.mark.parametrize("stage", [FRONTEND, ALIASED, TTGIR])
def test_correct_kernels_give_no_report(case, stage):
    plan = make_plan(case.module(stage))
    every = (case.sizes, *case.others)
    for sizes in every if stage == FRONTEND or volume.is_full() else every[1:2]:
        problem = case.make(sizes)
        for policy in POLICIES:
            for seed in SEEDS if policy != "round-robin" else range(1):
                outcome = run_plan(plan, problem, policy, seed)
                assert outcome.kind == "right", f"{sizes} {policy} {seed}: {outcome.text}"


def test_a_mutant_differs_only_in_its_edit():
    case = CASES[0]
    module = case.module()
    before = str(module)
    problem = case.make()
    for site in sites(module)[::7]:
        mutant = site.mutant(module)
        assert str(mutant) != before
        run_mutant(mutant, problem, POLICIES[:1])
    assert str(module) == before
