"""Traces: valid, nested, complete, and showing what overlaps."""

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.gallery.synchronisation.example_runs import gemm
from tlx_xdsl.interpreter.faults import Deadlock


class Read:
    """A trace, as a viewer reads it."""

    def __init__(self, path):
        self.text = json.loads(path.read_text())
        self.events = self.text["traceEvents"]
        named = [event for event in self.events if event["name"] == "thread_name"]
        self.rows = {(event["pid"], event["tid"]): event["args"]["name"] for event in named}
        self.programs = {
            event["pid"]: event["args"]["name"] for event in self.events if event["name"] == "process_name"
        }

    def slices(self, row: str, program: int = 0):
        """Slices of the rows whose name begins with `row`, in the order of their begin."""
        return sorted(
            (
                event
                for event in self.events
                if event["ph"] == "X"
                and event["pid"] == program
                and self.rows[program, event["tid"]].startswith(row)
            ),
            key=lambda event: event["ts"],
        )  # fmt: skip


def overlap(one, other) -> bool:
    return one["ts"] < other["ts"] + other["dur"] and other["ts"] < one["ts"] + one["dur"]


@pytest.fixture(scope="module", params=["round-robin", "random", "adversarial"])
def trace(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "sub" / "gemm.json"
    gemm("hopper_gemm_ws.py", 256, 256, 512).run(trace=path, schedule=request.param, seed=1)
    return Read(path)


def test_every_event_is_well_formed(trace):
    for event in trace.events:
        assert event["ph"] in "MXi"
        if event["ph"] == "M":
            continue
        assert (event["pid"], event["tid"]) in trace.rows
        assert event["ts"] >= 0
        assert event["name"]
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert set(event["args"]) == {"op", "at"}, "nothing is unfinished"
        else:
            assert event["s"] == "t"
    assert {event["pid"] for event in trace.events} == set(trace.programs)
    assert list(trace.programs.values()) == ["matmul, program (0, 0, 0)", "matmul, program (1, 0, 0)"]


def test_slices_of_a_row_follow_each_other(trace):
    rows = defaultdict(list)
    for event in trace.events:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(rows) >= 2 * 7
    for spans in rows.values():
        assert all(end <= begin for (_, end), (begin, _) in pairwise(sorted(spans)))


def test_every_turn_is_a_slice_or_a_completion(trace):
    """Each unit of the logical time belongs to one turn of one task, or to the end of one operation."""
    kinds = ("TMA", "wgmma")
    turns = [
        event["ts"]
        for event in trace.events
        if event["ph"] == "X" and event["dur"] == 1 and not event["name"].startswith(("wait", *kinds))
    ]
    ends = [event["ts"] + event["dur"] - 1 for event in trace.events if event["name"].startswith(kinds)]
    assert sorted(turns + ends) == list(range(trace.text["otherData"]["turns"]))


def test_to_be_watched_changes_nothing(tmp_path):
    alone, watched = (gemm("hopper_gemm_ws.py", 256, 256, 200) for _ in range(2))
    turns = alone.run(schedule="random", seed=5, jobs=1).turns
    assert watched.run(schedule="random", seed=5, trace=tmp_path / "trace.json").turns == turns
    assert Read(tmp_path / "trace.json").text["otherData"]["turns"] == turns
    assert watched.arguments[2].base.tobytes() == alone.arguments[2].base.tobytes()


def test_rows_and_their_lines(trace):
    names = set(trace.rows.values())
    assert {"the default task", "partition 0", "partition 1", "wgmma of partition 0", "mbarrier full"} <= names
    loads = trace.slices("TMA load of the default task")
    assert len(loads) == 8 * 3
    assert loads[0]["name"].startswith("TMA load: tlx.async_descriptor_load(a_desc")
    assert "hopper_gemm_ws.py" in loads[0]["args"]["at"]
    assert len(trace.slices("wgmma of partition 1")) == 8
    dots = [event for event in trace.slices("partition 0") if "tlx.async_dot(" in event["name"]]
    assert len(dots) == 8
    assert all(event["args"]["op"] == "ttng.warp_group_dot" for event in dots)
    phases = [event for event in trace.events if event["ph"] == "i" and event["name"].startswith("full")]
    assert {event["name"] for event in phases} == {f"full[{k % 3}] completes phase {k // 3}" for k in range(8)}


def test_waits_are_for_a_phase(trace):
    waits = [event for event in trace.slices("partition 0") if event["name"].startswith("wait")]
    assert waits[0]["name"] == "wait full[0] phase 0"
    assert all(event["args"]["op"] == "ttng.wait_barrier" for event in waits if "full" in event["name"])


@pytest.mark.parametrize("schedule", ["random", "adversarial"])
def test_loads_overlap_dots(tmp_path, schedule):
    """The ring does what it is for: tiles are loaded while others are multiplied."""
    gemm("hopper_gemm_ws.py", 128, 256, 512).run(trace=tmp_path / "trace.json", schedule=schedule)
    trace = Read(tmp_path / "trace.json")
    assert any(overlap(load, dot) for load in trace.slices("TMA load") for dot in trace.slices("wgmma"))


def test_operations_in_flight_together_have_rows_of_their_own(tmp_path):
    gemm("hopper_gemm_ws.py", 128, 256, 192).run(trace=tmp_path / "trace.json", schedule="adversarial")
    trace = Read(tmp_path / "trace.json")
    lanes = [name for name in trace.rows.values() if name.startswith("TMA load")]
    assert lanes[:3] == [f"TMA load of the default task{lane}" for lane in ("", " (2)", " (3)")]


@tlx_xdsl.jit
def hangs(out):
    loaded = tlx.alloc_barriers(2)
    tlx.barrier_arrive(loaded[0])
    tlx.barrier_wait(loaded[0], 0)
    tlx.barrier_wait(loaded[1], 0)
    tl.store(out, 1)


def test_a_run_that_fails_leaves_its_trace(tmp_path):
    path = tmp_path / "hang.json"
    with pytest.raises(Deadlock):
        hangs.interpret(1, np.zeros(1, np.int32), trace=path)
    last = Read(path).slices("the default task")[-1]
    assert last["name"] == "wait loaded[1] phase 0"
    assert last["args"]["unfinished"]


def test_clusters_have_a_process_for_each_cta(tmp_path):
    path = tmp_path / "pair.json"
    squares.interpret(4, np.zeros(4, np.int32), cluster=(2, 1, 1), trace=path)
    programs = Read(path).programs
    assert list(programs.values()) == [
        f"squares, program ({pid}, 0, 0), CTA {pid % 2} of its cluster" for pid in range(4)
    ]


@tlx_xdsl.jit
def squares(out):
    pid = tl.program_id(0)
    tl.store(out + pid, pid * pid)
