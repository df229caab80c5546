"""Proofs across ranks: kernels that people import are proved, and no change of their signals and waits stays so."""

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit import volume
from tlx_xdsl.dialects import tlx as tlx_dialect, tt
from tlx_xdsl.dialects.tlx.barriers import FenceScope
from tlx_xdsl.dialects.tt import MemSemantic, MemSyncScope
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.kernels.comm import experts, reduce as kernels
from tlx_xdsl.kernels.comm.signals import FIRST, REPORT
from tlx_xdsl.runtime.check.across_ranks.launch import proved_launch
from tlx_xdsl.runtime.check.run import any_values
from tlx_xdsl.runtime.simulate.options import Options

# Kernels are read by the frontend, not run by Python.
# pyright: basic

NAMES = ("all_reduce_one_shot", "all_reduce_two_shot", "reduce_scatter", "all_gather")
PART, PROGRAMS = 12, 2


def symmetric(world, count, dtype=np.float32):
    return tlx_xdsl.symmetric([np.zeros(count, dtype) for _ in range(world)])


def own(world, count, dtype=np.float32):
    return [np.zeros(count, dtype) for _ in range(world)]


def pads_of(world):
    return symmetric(world, REPORT.value + FIRST.value + 2 * world * PROGRAMS, np.int64)


def collective(name, world):
    """Arguments whose programs take several blocks each, the last of them masked."""
    count = PART if name == "all_gather" else world * PART
    numbers = {"all_gather": {"part": PART, "length": PART}, "all_reduce_one_shot": {"n": count, "length": count}}
    return {
        "x": own(world, count), "staging": symmetric(world, 2 * world * world * PART),
        **({"sums": symmetric(world, PART)} if name == "all_reduce_two_shot" else {}),
        "pads": pads_of(world),
        "out": own(world, PART if name == "reduce_scatter" else world * PART),
        **numbers.get(name, {"n": count, "part": PART}), "BLOCK": 8,
    }  # fmt: skip


def proof_of(kernel, arguments, grid=1, launches=None, change=None, **options):
    """The proof of a kernel, or of a change of it."""
    settings = Options(**options)
    module = any_values(kernel.source, arguments, settings)
    if change is not None:
        change(module)
    return proved_launch(kernel.source, grid, arguments, settings, module, launches)


def reason_of(*given, **named):
    found = proof_of(*given, **named)
    assert not found
    assert found.reason is not None
    return found.reason.message


# Kernels that people import -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", (2, 3, 4, 8) if volume.is_full() else (3,))
@pytest.mark.parametrize("name", NAMES)
def test_collectives_are_proved_for_any_number_of_launches(name, world):
    found = proof_of(getattr(kernels, name), collective(name, world), PROGRAMS)
    assert found, found.reason
    # Memory takes turns where no later signal says that it was read.
    assert (found.launches, found.period) == (None, 1 if name == "all_reduce_two_shot" else 2)


def test_a_wait_with_a_limit_is_proved():
    found = proof_of(kernels.all_gather, {**collective("all_gather", 2), "LIMIT": 10**6}, PROGRAMS)
    assert found, found.reason
    assert "a wait with a limit never gives up" in "".join(found.lines("", ""))


def test_what_goes_where_data_says_is_not_proved():
    world, capacity, width = 2, 4, 8
    arguments = {
        "x": own(world, capacity * width), "experts": own(world, capacity, np.int32),
        "places": own(world, capacity, np.int32), "counts": own(world, world, np.int32),
        "rows": symmetric(world, world * capacity * width), "numbers": symmetric(world, world * capacity, np.int32),
        "arrived": symmetric(world, world, np.int32), "pads": pads_of(world), "assignments": capacity,
        "width": width, "capacity": capacity, "EXPERTS": 2, "CHOICES": 1, "BLOCK": 8,
    }  # fmt: skip
    found = proof_of(experts.dispatch, arguments, PROGRAMS)
    assert found.answer == "unproved"
    assert str(found.reason).splitlines()[0].startswith("tlx_xdsl/kernels/comm/experts.py:")
    assert "the address depends on data" in found.reason.message


# Changes of them ------------------------------------------------------------------------------------------------------


def moved(op, operand, by):
    """Add a number to an operand."""
    number = arith.ConstantOp(IntegerAttr(by, op.operands[operand].type))
    total = arith.AddiOp(op.operands[operand], number.result)
    number.location = total.location = op.location
    op.parent.insert_ops_before([number, total], op)
    op.operands[operand] = total.result


def changed(op, what):
    """Make a mistake of an operation that signals, waits or fences."""
    if what == "dropped":
        op.detach()
        op.erase()
    elif what == "of the next counter":
        moved(op.ptr.owner, 1, 1)
    elif what in ("one more", "one less"):
        moved(op, 1, 1 if what == "one more" else -1)
    elif what == "relaxed":
        op.properties["sem"] = IntegerAttr(MemSemantic.RELAXED.value, op.properties["sem"].type)
    elif isinstance(op, tlx_dialect.FenceOp):
        op.properties["scope"] = IntegerAttr(FenceScope.GPU.value, op.properties["scope"].type)
    else:
        op.properties["scope"] = IntegerAttr(MemSyncScope.GPU.value, op.properties["scope"].type)


def mistakes(op):
    """The mistakes that can be made of an operation."""
    if isinstance(op, tlx_dialect.FenceOp):
        return "dropped", "of one GPU"
    is_relaxed = op.sem.value.data == MemSemantic.RELAXED.value
    every = "dropped", "of the next counter", "one more", "one less", "of one GPU", "relaxed"
    return every[: len(every) - is_relaxed]


def synchronising(module):
    """The operations that signal, wait or fence across ranks."""
    return [
        op for op in module.walk()
        if isinstance(op, tlx_dialect.WaitSignalOp | tlx_dialect.FenceOp)
        or (isinstance(op, tt.AtomicRMWOp) and not op.result.uses)
    ]  # fmt: skip


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("name", NAMES if volume.is_full() else NAMES[3:])
def test_no_change_of_a_signal_or_a_wait_stays_proved(name, world):
    """Two ranks have counters for one signal each, and three add to the same ones."""
    kernel, arguments = getattr(kernels, name), collective(name, world)
    module = any_values(kernel.source, arguments, Options())
    made = 0
    for number, op in enumerate(synchronising(module)):
        for what in mistakes(op):
            made += 1
            wrong = module.clone()
            changed(synchronising(wrong)[number], what)
            found = proved_launch(kernel.source, PROGRAMS, arguments, Options(), wrong, None)
            assert not found, (number, what)
    # A fence, signals and a wait.
    assert made >= 2 + 5 * (world - 1) + 6


@pytest.mark.parametrize("name", [name for name in NAMES if name != "all_reduce_two_shot"])
def test_one_buffer_where_launches_take_turns(name):
    def without_turns(module):
        for op in [*module.walk()]:
            if isinstance(op, arith.RemSIOp):
                zero = arith.ConstantOp(IntegerAttr(0, op.result.type))
                zero.location = op.location
                op.parent.insert_op_before(zero, op)
                op.result.replace_all_uses_with(zero.result)

    found = proof_of(getattr(kernels, name), collective(name, 2), PROGRAMS, change=without_turns)
    assert "in its launch" in found.reason.message
    assert "orders it after" in found.reason.message


# Sums of several ranks' signals --------------------------------------------------------------------------------------


@tlx_xdsl.jit
def gathered_twice(x, buf, pads, out, epoch, HOW: tl.constexpr):
    """Gather; all ranks add to one counter of each in two rounds, the second of which says that all have read."""
    rank = tlx.rank(pads)
    world: tl.constexpr = tlx.world_size(pads)
    offsets = tl.arange(0, 16)
    for r in tl.static_range(world):
        tl.store(tlx.peer(buf, r) + rank * 16 + offsets, tl.load(x + offsets))
    for r in tl.static_range(world):
        tlx.signal(tlx.peer(pads, r), 0)
    missing = 1 if HOW == "one is not waited for" else 0
    tlx.wait_signal(tlx.peer(pads, rank), 0, 2 * world * epoch - world - missing)
    for i in tl.static_range(world):
        tl.store(out + i * 16 + offsets, tl.load(tlx.peer(buf, rank) + i * 16 + offsets))
    if HOW == "a second signal carries nothing":
        tl.debug_barrier()
    for r in tl.static_range(world):
        if HOW == "a second signal carries nothing":
            tl.atomic_add(tlx.peer(pads, r), 1, sem="relaxed", scope="sys")
        else:
            tlx.signal(tlx.peer(pads, r), 0, 2 if HOW == "a signal counts twice" else 1)
    tlx.wait_signal(tlx.peer(pads, rank), 0, 2 * world * epoch)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("", None),
        ("one is not waited for", "orders it after"),
        ("a signal counts twice", "the counter grows by"),
        ("a second signal carries nothing", "orders it after"),
    ],
)
@pytest.mark.parametrize("world", [2, 3, 4])
def test_a_counter_that_all_ranks_add_to(how, said, world):
    """A rank's second signal may stand for the first one of another, if it carries what its rank has waited for."""
    arguments = {
        "x": own(world, 16), "buf": symmetric(world, world * 16), "pads": symmetric(world, 1, np.int64),
        "out": own(world, world * 16), "epoch": tlx_xdsl.per_launch([1, 2]), "HOW": how,
    }  # fmt: skip
    if said is None:
        assert (found := proof_of(gathered_twice, arguments)), found.reason
    else:
        assert said in reason_of(gathered_twice, arguments)


# Fences ---------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def fenced(x, buf, pads, out, epoch, HOW: tl.constexpr):
    """Gather with one fence before all signals, and one after all waits; two buffers that take turns."""
    rank = tlx.rank(pads)
    world: tl.constexpr = tlx.world_size(pads)
    offsets = tl.arange(0, 16)
    first = (epoch % 2) * world * 16
    for r in tl.static_range(world):
        tl.store(tlx.peer(buf, r) + first + rank * 16 + offsets, tl.load(x + offsets))
    if HOW == "no barrier":
        tlx.fence("sys")
        for r in tl.static_range(world):
            tl.atomic_add(tlx.peer(pads, r) + rank, 1, sem="relaxed", scope="sys")
    else:
        if HOW == "fence of the GPU":
            tlx.fence("gpu")
        elif HOW != "no fence":
            tlx.fence("sys")
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), rank, sem="relaxed")
    if HOW == "fence before the waits":
        tlx.fence("sys")
    for r in tl.static_range(world):
        tlx.wait_signal(tlx.peer(pads, rank), r, epoch, sem="relaxed")
    if HOW == "waits fenced for the GPU":
        tlx.fence("gpu")
    elif HOW != "waits without a fence" and HOW != "fence before the waits":
        tlx.fence("sys")
    for r in tl.static_range(world):
        tl.store(out + r * 16 + offsets, tl.load(tlx.peer(buf, rank) + first + r * 16 + offsets))


def fenced_arguments(world, how):
    return {
        "x": own(world, 16), "buf": symmetric(world, 2 * world * 16), "pads": symmetric(world, world, np.int32),
        "out": own(world, world * 16), "epoch": tlx_xdsl.per_launch([1, 2]), "HOW": how,
    }  # fmt: skip


@pytest.mark.parametrize("world", [2, 3])
def test_fences_order_relaxed_signals_and_waits(world):
    found = proof_of(fenced, fenced_arguments(world, ""))
    assert found, found.reason
    assert found.launches == 2**31 - 1 - (2**31 - 1) % 2
    assert found.wraps


@pytest.mark.parametrize(
    "how",
    [
        "no barrier", "fence of the GPU", "no fence", "fence before the waits", "waits fenced for the GPU",
        "waits without a fence",
    ],
)  # fmt: skip
def test_other_fences_do_not(how):
    assert "nothing that is followed orders it after" in reason_of(fenced, fenced_arguments(2, how))


# The last program of a launch -----------------------------------------------------------------------------------------


@tlx_xdsl.jit
def counted(buf, pads, out, BUG: tl.constexpr):
    """Read a block of the rank before. The last program of a launch counts launches: counter 0, with tickets of 1."""
    rank = tlx.rank(pads)
    world: tl.constexpr = tlx.world_size(pads)
    mine, pid, offsets = tlx.peer(pads, rank), tl.program_id(0), tl.arange(0, 16)
    number = tl.load(mine) + 1
    target = tlx.peer(buf, (rank + 1) % world) + (number % 2 * 2 + pid) * 16
    tl.store(target + offsets, offsets)
    tlx.signal(tlx.peer(pads, (rank + 1) % world), 2 + pid)
    tlx.signal(tlx.peer(pads, (rank + world - 1) % world), 4 + pid)
    sem: tl.constexpr = "relaxed" if BUG == "relaxed tickets" else "acq_rel"
    last = tl.num_programs(0) - (2 if BUG == "the last but one" else 1)
    if BUG == "the first program":
        if pid == 0:
            tl.store(mine, number)
    elif tl.atomic_add(mine + 1, 1, sem=sem, scope="gpu") == last:
        if BUG != "not set back":
            tl.store(mine + 1, 0)
        tl.store(mine, number)
    if BUG == "read after the count":
        number = tl.load(mine)
    tlx.wait_signal(mine, 2 + pid, number)
    tlx.wait_signal(mine, 4 + pid, number)
    source = tlx.peer(buf, rank) + (number % 2 * 2 + pid) * 16
    tl.store(out + pid * 16 + offsets, tl.load(source + offsets))


def counting(bug):
    return {
        "buf": symmetric(3, 64, np.int32), "pads": symmetric(3, 6, np.int64), "out": own(3, 32, np.int32), "BUG": bug,
    }  # fmt: skip


def test_the_last_program_counts_launches():
    found = proof_of(counted, counting(""), 2)
    assert found, found.reason
    assert found.launches is None


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        ("relaxed tickets", "each program must draw one ticket"),
        ("the last but one", "each program must draw one ticket"),
        ("not set back", "the counter must be 0 when a launch begins"),
        ("read after the count", "the value that is waited for depends on data, or on a number that is not followed"),
        ("the first program", "what this loads may be what is stored in the same launch"),
    ],
)
def test_another_program_than_the_last_one_may_count(bug, said):
    assert said in reason_of(counted, counting(bug), 2)


# Launches -------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def meet(pads, epoch, BUG: tl.constexpr):
    """Let all ranks meet."""
    world: tl.constexpr = tlx.world_size(pads)
    for r in tl.static_range(world):
        tlx.signal(tlx.peer(pads, r), 0)
    if BUG == "first launch":
        if epoch > 1:
            tlx.wait_signal(tlx.peer(pads, tlx.rank(pads)), 0, world * epoch)
    elif BUG == "launch 1000":
        if epoch != 1000:
            tlx.wait_signal(tlx.peer(pads, tlx.rank(pads)), 0, world * epoch)
    else:
        tlx.wait_signal(tlx.peer(pads, tlx.rank(pads)), 0, world * epoch)


def meeting(epoch, start=0, bug=""):
    pads = tlx_xdsl.symmetric([np.full(1, start, np.int32) for _ in range(3)])
    return {"pads": pads, "epoch": epoch, "BUG": bug}


def test_the_number_of_the_launch_must_go_on_evenly():
    assert proof_of(meet, meeting(tlx_xdsl.per_launch([1, 2])))
    assert proof_of(meet, meeting(tlx_xdsl.per_launch([5, 6, 7]), start=12))
    assert "'epoch' does not go on evenly: 1, 2, 4" in reason_of(meet, meeting(tlx_xdsl.per_launch([1, 2, 4])))
    assert "grows by 3 in each launch" in reason_of(meet, meeting(tlx_xdsl.per_launch([1, 3])))
    assert "by 0" in reason_of(meet, meeting(1))
    # One launch needs no number that grows.
    assert proof_of(meet, meeting(1), launches=1).extent == "1 launch of each rank"
    assert "deadlock: rank 0 waits until the counter is at least 6" in reason_of(meet, meeting(2), launches=1)


def test_what_one_launch_does_otherwise_is_not_proved():
    """No run of a few launches shows what the thousandth does."""
    for bug in ("first launch", "launch 1000"):
        reason = reason_of(meet, meeting(tlx_xdsl.per_launch([1, 2]), bug=bug))
        assert "depends on data, or on a number that is not followed" in reason


def test_counters_that_wrap_around_limit_the_launches():
    found = proof_of(meet, meeting(tlx_xdsl.per_launch([1, 2])))
    assert found.launches == (2**31 - 1) // 3
    assert found.wraps
    near = 2**31 - 1 - 7
    epochs = tlx_xdsl.per_launch([near // 3 + 1, near // 3 + 2])
    assert proof_of(meet, meeting(epochs, start=near // 3 * 3)).launches == 2
    epochs = tlx_xdsl.per_launch([near // 3 + number for number in (1, 2, 3, 4)])
    assert "wraps around within 4 launches" in reason_of(meet, meeting(epochs, start=near // 3 * 3))


def test_more_programs_than_are_surely_resident_are_not_proved():
    assert "need not all be resident at once" in reason_of(meet, meeting(tlx_xdsl.per_launch([1, 2])), grid=1000)


def test_arrays_that_share_memory_are_not_followed():
    both = np.zeros(2, np.int32)
    pads = tlx_xdsl.symmetric([both, both])
    assert "may share memory" in reason_of(meet, {"pads": pads, "epoch": tlx_xdsl.per_launch([1, 2]), "BUG": ""})


def test_a_check_has_proofs_of_all_numbers_of_ranks():
    def arguments(ranks):
        pads = tlx_xdsl.symmetric([np.zeros(1, np.int32) for _ in range(ranks)])
        return {"pads": pads, "epoch": tlx_xdsl.per_launch([1, 2])}

    report = tlx_xdsl.check(meet, 1, ranks=(2, 3), arguments=arguments, BUG="", seconds=0, prove=True)
    assert [(each.sizes, each.answer) for each in report.proofs] == [({"ranks": 2}, "proved"), ({"ranks": 3}, "proved")]
    assert "the protocol of 'meet' at ranks=3 is proved for 715,827,882 launches of each rank" in str(report)
    with pytest.raises(InputTypeError):
        tlx_xdsl.check(meet, 1, ranks=(2,), arguments=lambda ranks: 1, BUG="", prove=True)


@tlx_xdsl.jit
def copied_by_tma(desc, pads):
    tile = desc.load([0, 0])
    desc.store([0, 0], tile)
    tlx.signal(tlx.peer(pads, tlx.rank(pads)), 0)


def test_descriptors_are_not_followed():
    given = [tlx_xdsl.TensorDescriptor.from_tensor(np.zeros((16, 16), np.float32), [16, 16]) for _ in range(2)]
    reason = reason_of(copied_by_tma, {"desc": given, "pads": symmetric(2, 1, np.int32)})
    assert "tensor descriptors of the host are not followed across ranks" in reason
