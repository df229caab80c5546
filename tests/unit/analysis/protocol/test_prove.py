"""Proofs of synchronisation for all trip counts: what is right is proved, and no mistake is."""

import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
from tests.unit import volume
from tests.unit.analysis.protocol import late
from tests.unit.analysis.protocol.kernels import apart, below_zero, by_thread, polls, ring, strided_ring, turns
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


def test_a_search_ends_after_the_states_that_it_may_have():
    module = any_values(source_of_kernel(ring), ring_arguments(3, 3), Options())
    (whole,) = prove(module, states=100)
    (cut,) = prove(module, states=whole.states - 1)
    assert (whole.answer, cut.answer, cut.states) == ("proved", "unproved", whole.states)
    assert f"no end after {whole.states} states" in str(cut.reason)


@pytest.mark.parametrize("bug", RING_BUGS)
def test_a_wrong_ring_is_refuted(bug):
    found = proof(ring, **ring_arguments(3, 2, bug))
    assert found.answer == "refuted"
    assert found.reason.location.filename.endswith("kernels.py")


def strided_arguments(K, STEP, SLOTS, BUG):
    src = tlx_xdsl.TensorDescriptor.from_tensor(np.ones((max(K, 16), 16), np.float32), [16, 16])
    return {"src": src, "dst": np.zeros((K + 16) * 16, np.float32), "K": K, "STEP": STEP, "SLOTS": SLOTS, "BUG": BUG}


@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize("bug", ["none", "first turn"])
def test_a_step_that_is_an_argument_is_positive(slots, bug):
    """The interpreter is the oracle: what it ends is not refuted, and what is proved it ends."""
    found = proof(strided_ring, **strided_arguments(96, 1, slots, bug))
    assert found.answer == {"none": "proved", "first turn": "refuted"}[bug]
    runs = [(K, STEP) for K in (0, 16, 40, 96, 160) for STEP in (1, 2)]
    ends = []
    for K, STEP in runs:
        try:
            tlx_xdsl.interpret(strided_ring, 1, **strided_arguments(K, STEP, slots, bug))
            ends.append(True)
        except tlx_xdsl.CompilationError:
            ends.append(False)
    assert all(ends) == (bug == "none"), dict(zip(runs, ends, strict=True))


@pytest.mark.parametrize("bug", ["none", "one of them"])
def test_guesses_at_what_is_computed_refute_nothing(bug):
    """Facts do not relate the two maxima: a path on which both are above zero is none."""
    assert proof(apart, A=3, B=5, BUG=bug).answer == "unproved"
    ends = []
    for A, B in ((3, 5), (5, 3), (4, 4)):
        try:
            tlx_xdsl.interpret(apart, 1, A=A, B=B, BUG=bug)
            ends.append(True)
        except tlx_xdsl.CompilationError:
            ends.append(False)
    assert ends == [True, bug == "none", True]


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("bug", ["none", *RING_BUGS])
def test_nothing_is_found_in_what_is_proved(bug, slots):
    """Run 0 to 8 turns: the interpreter knows nothing of the proof, and the other way round."""
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
    (polls, {"flag": np.zeros(1, np.int32), "T": 3}, "what this gives is not followed"),
    (by_thread, {"T": 3}, "not followed"),
    (below_zero, {"T": 3}, ""),
])  # fmt: skip
def test_what_is_not_followed_is_not_proved(kernel, arguments, message):
    found = proof(kernel, **arguments)
    assert not found
    assert message in str(found.reason)
    assert "kernels.py:" in str(found.reason)


EVERY = [(*kernel, mistake, turns) for kernel, mistakes in late.LATE.items() for mistake, turns in mistakes.items()]


def named(case):
    kernel, slots, mistake, *_ = case
    return f"{kernel.source.name}-{slots}-{mistake.replace(' ', '-')}"


@pytest.mark.parametrize("case", EVERY, ids=named)
def test_what_is_wrong_later_is_not_proved(case):
    kernel, slots, mistake, _ = case
    assert not proof(kernel, **late.arguments(kernel, 3, slots, mistake))


@pytest.mark.parametrize("case", late.RIGHT, ids=named)
def test_what_is_right_beside_it_is_proved(case):
    kernel, slots, mistake = case
    found = proof(kernel, **late.arguments(kernel, 3, slots, mistake))
    assert found, str(found.reason)
    assert not found.required


SHOWN = [case for case in EVERY if case[-1] != late.NEVER]


@pytest.mark.parametrize("case", SHOWN if volume.is_full() else SHOWN[::12], ids=named)
def test_it_is_wrong_from_so_many_turns_on(case):
    kernel, slots, mistake, turns = case
    for number in (turns, max(turns - 1, 0)):
        given = late.arguments(kernel, number, slots, mistake)
        report = tlx_xdsl.check(kernel, 1, seconds=0, stages=("frontend",), **given)
        assert bool(report) is (number < turns), str(report)


def test_an_answer_that_is_forgotten_is_asked_for_again():
    """Both answers about a remainder two turns back are followed, although all tasks have left that turn."""
    found = proof(late.parities, **late.arguments(late.parities, 3, 2, "quotient of one turn back"))
    assert found.answer == "refuted"
    assert found.reason.message.startswith("deadlock")


EASY = ["hopper_gemm_ws.py:matmul", "hopper_gemm_pipelined.py:matmul", "ampere_gemm_pipelined.py:matmul",
        "hopper_attention_ws.py:attention", "hopper_attention_pipelined.py:attention",
        "blackwell_attention_ws.py:attention"]  # fmt: skip
LONG = ["hopper_attention_pingpong.py:attention", "hopper_gemm_persistent_cooperative.py:matmul",
        "hopper_gemm_persistent_pingpong.py:matmul", "blackwell_gemm_ws.py:matmul"]  # fmt: skip


@pytest.mark.parametrize("name", EASY + (LONG if volume.is_full() else LONG[:1]))
def test_examples_are_proved(name):
    found = example(name)
    assert found.answer == "proved", str(found.reason)


SYNCHRONISES = re.compile(r"(\s+)tlx\.(barrier_\w+|named_barrier_\w+|async_\w*wait\w*)\(")
# The scores of a block are issued after this wait by the products' task, and what they lead to is waited for before;
# the second line is of a variant with one slice.
REDUNDANT = ("tlx.barrier_wait(o_full[each], (n - 1) & 1)", "tlx.barrier_arrive(p_full[group])")
MUTANTS = [
    (name, number)
    for name in (*EASY, LONG[0])
    for number, line in enumerate((EXAMPLES / name.partition(":")[0]).read_text().splitlines())
    if SYNCHRONISES.match(line) and line.strip() not in REDUNDANT
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


OPTIONS = {each.name for each in fields(Options)}
"""Other options of a mistake are those of its check."""


def zoo(name, **constants):
    """A mistake of the zoo by its name, with other constants."""
    (found,) = [bug for bugs in AREAS.values() for bug in bugs if bug.name == name]
    return replace(found, constants={**found.constants, **constants})


def proof_of(bug, mistake):
    source = source_of_kernel(bug.kernel)
    constants = {name: value for name, value in bug.constants.items() if name in source.signature.parameters}
    given = dict(source.signature.bind_partial(*bug.arguments(), **constants, BUG=mistake).arguments)
    options = {name: value for name, value in bug.options.items() if name in OPTIONS}
    return prove(any_values(source, given, Options(**options)), seconds=5)[0]


def test_what_is_not_looked_at_is_named():
    both = ("numbers and layouts", "the threads of a task among each other")
    assert proof(turns, T=3, BUG="none").unseen == both
    assert example("hopper_gemm_ws.py:matmul").unseen == (
        *both, "global memory", "fences between proxies", "results of wgmma in registers"
    )  # fmt: skip


def test_a_phase_that_has_begun_is_to_end():
    bug = zoo("copy_ring-empty-counts-two", TILES=1, SLOTS=2)
    assert "ends in the middle of a phase, which lacks 1 of 2 arrivals" in str(proof_of(bug, bug.mistake).reason)
    assert proof_of(bug, "")


def test_bulk_copies_are_followed_by_their_bytes():
    assert proof_of(zoo("bulk-half-a-row"), "")
    assert "lacks 512 bytes" in str(proof_of(zoo("bulk-half-a-row"), "half a row").reason)


def test_a_wait_for_other_programs_is_a_condition():
    (required,) = proof_of(zoo("spin_lock-relaxed-take"), "").required
    assert "ends, which waits for what others write to global memory" in str(required)
    # Tasks of one program may wait for each other there, and at a barrier.
    found = proof_of(zoo("tasks_of_one-atomics-without-order"), "right: atomics of the block")
    assert found.reason.message == "waiting for what happens in global memory is not followed"


def test_no_proof_stands_beside_a_finding():
    bug = zoo("last_one-all-add-up")
    assert proof_of(bug, bug.mistake)
    report = tlx_xdsl.check(
        bug.kernel, bug.grid, *bug.arguments(), BUG=bug.mistake, prove=True, seconds=0, **bug.constants
    )  # fmt: skip
    assert report.findings
    assert [each.answer for each in report.proofs] == ["not proved"]
    assert "not proved: a run has found: " in str(report)


# Proxies, results in flight, and threads of a task are not looked at.
BESIDE = ("proxy fence", "result in flight", "descriptor", "layout of a view", "threads of one task",
          "element left out")  # fmt: skip
"""What the kinds of mistakes begin with."""
UNSEEN = re.compile("global memory|out of bounds|written by the first launch|before gdc_wait")
"""What findings say that are of nothing that a proof looks at."""
BUGS = [
    bug for area, bugs in AREAS.items() for bug in bugs if area != "bounds" and not bug.kind.startswith(BESIDE)
]  # fmt: skip
CHOSEN = BUGS if volume.is_full() else BUGS[::4]


def sizes_of(bug):
    """The constants of a mistake: as they are, and at full volume with each small number from 0 to 6."""
    yield bug.constants
    known = bug.kernel.source.signature.parameters
    numbers = {name: value for name, value in bug.constants.items() if type(value) is int and name in known}
    for name, value in numbers.items() if volume.is_full() else ():
        yield from ({**bug.constants, name: other} for other in range(7) if other != value)


@pytest.mark.parametrize("bug", CHOSEN, ids=lambda bug: bug.name)
def test_no_mistake_of_the_zoo_is_proved(bug):
    """A proved one is no mistake at that size, or one in what is not looked at; zero turns are a condition of it."""
    for sizes in sizes_of(bug):
        here = replace(bug, constants=sizes)
        try:
            found = proof_of(here, bug.mistake)
        except (tlx_xdsl.CompilationError, ValueError):
            continue
        if found and not found.required:
            findings = here.check()
            assert all(UNSEEN.search(each.message) for each in findings), str(findings[0])
