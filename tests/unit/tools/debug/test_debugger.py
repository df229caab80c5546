"""The debugger's recordings: what they cost, that a replay is the same run, and that answers are what memory says."""

import itertools
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.gallery.synchronisation import cluster_runs
from tests.gallery.synchronisation.example_runs import CASES
from tests.unit import volume
from tests.unit.docs.test_debugger_pages import kernel_of, sections
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.grid import grid_of
from tlx_xdsl.runtime.driver.host_values import bound
from tlx_xdsl.runtime.simulate.interpret import Options, interpret_source, source_of_kernel
from tlx_xdsl.tools.debug.commands import COMMANDS, Commands
from tlx_xdsl.tools.debug.recording import Diverged, Kind, Recorder
from tlx_xdsl.tools.debug.session import Session
from tlx_xdsl.tools.tlx import main


def session_of(kernel, grid, *arguments, options=None, **named):
    source = source_of_kernel(kernel)
    values = bound(source, arguments, named)
    return Session.of(source, grid_of(grid, values), values, lambda: Options(**{"jobs": 1, **(options or {})}))


def recorded(name, **options):
    """An example of `examples/`, recorded, and its case."""
    case = CASES[name]()
    options = {**case.options, **options}
    return session_of(case.kernel, case.grid, *case.arguments, options=options, **case.constexprs), case


def is_right(case):
    return all(
        np.linalg.norm(found.astype(np.float64) - expected) < case.tolerance * np.linalg.norm(expected)
        for found, expected in case.results()
    )


RUNS = ("ws-gemm", "pipelined-attention", "blackwell-gemm")


@pytest.mark.parametrize("name", CASES if volume.is_full() else RUNS)
def test_a_replay_is_the_same_run(name):
    """A replay compares each event with the recording; its results are those of the example."""
    session, case = recorded(name)
    assert session.fault is None
    assert is_right(case)
    for found, _ in case.results():
        found.fill(0)
    session.go(len(session))
    session.show()
    assert is_right(case)


@pytest.mark.parametrize("options", [{"schedule": "random", "seed": 3}, {"stage": "ttgir"}])
def test_in_other_orders_and_at_other_stages(options):
    session, case = recorded("ws-gemm", **options)
    session.go(len(session) // 2)
    session.show()
    session.go(len(session))
    session.show()
    assert is_right(case)
    assert Kind.DONE in {session.recorder.code(event).kind for event in range(len(session))}


@tlx_xdsl.jit
def copies(src, dst, TILES: tl.constexpr):
    tiles = tlx.local_alloc((16, 16), tl.float32, 2)
    full, empty = tlx.alloc_barriers(2), tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                tlx.barrier_wait(empty[t % 2], (t // 2) & 1 ^ 1)
                tlx.barrier_expect_bytes(full[t % 2], 16 * 16 * 4)
                tlx.async_descriptor_load(src, tiles[t % 2], [t * 16, 0], full[t % 2])
        with tlx.async_task(num_warps=4):
            for t in range(TILES):
                tlx.barrier_wait(full[t % 2], (t // 2) & 1)
                value = tlx.local_load(tiles[t % 2])
                dst.store([t * 16, 0], value + value)
                tlx.barrier_arrive(empty[t % 2])


@pytest.fixture
def run():
    arrays = [np.arange(4 * 256, dtype=np.float32).reshape(64, 16), np.zeros((64, 16), np.float32)]
    tiles = [tlx_xdsl.TensorDescriptor.from_tensor(each, [16, 16]) for each in arrays]
    return session_of(copies, 1, *tiles, TILES=4)


@pytest.mark.parametrize("place", ["tiles[1][3, 4]", "dst[50, 3]", "full[0]"])
def test_who_wrote_it_agrees_with_what_memory_holds(run, place):
    """A place holds what the first of two writes has written until the second one: looked at event by event."""
    run.go(len(run) - 1)
    found = run.place(place)
    hits = run.history(found)
    assert hits
    written = {hit.event: hit for hit in hits}
    state = None
    for event in range(len(run)):
        run.go(event)
        run.show()
        now = found.state(run.recorder)
        if state is not None and now != state:
            # The last event but completions of phases, which happen within one.
            before = next(each for each in range(event - 1, -1, -1) if run.recorder.code(each).kind < Kind.BLOCKED)
            assert before in written
            assert (written[before].before, written[before].after) == (state, now)
        state = now


def test_another_cta_of_a_cluster_is_named():
    """A multicast load of one CTA writes the buffers of the others; what is over with a cluster is no change."""
    case = cluster_runs.CASES["multicast"]()
    session = session_of(case.kernel, case.grid, *case.arguments, options=case.options, **case.constexprs)
    commands = Commands(session)
    first = [number for number, who in enumerate(session.recorder.tasks) if who.cluster == 0 and who.rank == 1]
    session.go(next(event for event in range(len(session)) if session.recorder.who[event] == first[-1]) + 40)
    session.select(first[-1])
    writers = commands.run("history b[0]")
    assert {re.search(r"of CTA \d", line)[0] for line in writers} == {"of CTA 0", "of CTA 1"}
    assert {line.partition(" by ")[2].partition(" of")[0] for line in writers} == {"the TMA load"}
    changes = commands.run("history full[0]")
    assert all(" -> phase " in line for line in changes)
    assert "2 of 2" in commands.run("history empty[0]")[-1] or "-> phase 2" in commands.run("history empty[0]")[-1]


def test_the_tasks_that_write_are_named(run):
    commands = Commands(run)
    commands.run("end")
    (who, line) = commands.run("who tiles[0][0, 0]")
    assert "the TMA load of the default task" in who
    assert "(0 -> 512)" in who
    assert line.endswith("tlx.async_descriptor_load(src, tiles[t % 2], [t * 16, 0], full[t % 2])")
    assert "by partition 0 (0 -> 2)" in commands.run("who dst[0, 1]")[0]
    # `goto` leads to where it was started: its operands are those of that turn.
    commands.run("who tiles[0][0, 0]")
    commands.run("goto")
    assert commands.run("print t") == ["t = 2"]
    commands.run("start")
    assert "nothing has written dst[0, 1]" in commands.run("who dst[0, 1]")[0]


def test_each_way_back_is_the_way_there(run):
    commands = Commands(run)
    for there, back in (("step", "back"), ("next", "previous"), ("into", "previous")):
        commands.run("start")
        events = [run.at]
        for _ in range(40):
            commands.run(there)
            events.append(run.at)
        assert len(set(events)) > 10
        returned = [run.at]
        while run.at and len(returned) <= 40:
            commands.run(back)
            returned.append(run.at)
        assert returned == [*dict.fromkeys(reversed(events))][: len(returned)]


def test_breakpoints_and_what_is_watched_stop_in_both_directions(run):
    commands = Commands(run)
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "dst.store(" in text)
    assert commands.run(f"break {line}") == [f"1: line {line}, hit 4 times in this run"]
    assert commands.run(f"break {line} if t == 3") == [f"2: line {line} if t == 3, hit 1 time in this run"]
    commands.run("start")
    seen = []
    while run.go_on(1) is not None:
        seen.append(run.at)
    assert len(seen) == 4
    commands.run("delete 1")
    commands.run("reverse")
    assert run.at == seen[3]
    assert commands.run("print value[0, 0]") == [f"value[0, 0] = {3 * 256.0}"]
    commands.run("delete")
    assert commands.run("break") == []
    commands.run("watch full[1]")
    commands.run("start")
    stopped = commands.run("continue")
    assert stopped[0] == "stopped by 1: watch full[1] (nothing -> phase 0, 0 of 1 arrivals)"
    with pytest.raises(CompilationError, match="no code of the kernel is of line 1"):
        commands.run("break 1")


def test_tasks_are_chosen_by_name_number_and_warp(run):
    commands = Commands(run)
    commands.run("start")
    run.go(next(event for event in range(len(run)) if run.recorder.who[event] == 1))
    for text, number in (
        ("task default", 0),
        ("task partition 0", 1),
        ("task 0", 0),
        ("task warp 5", 1),
        ("task warp 2", 0),
    ):
        commands.run(text)
        assert run.task == number
    assert len(commands.run("tasks")) >= 2
    with pytest.raises(CompilationError, match="no task 'warp 9'"):
        commands.run("task warp 9")


def test_what_means_nothing_is_said_in_a_line(run):
    commands = Commands(run)
    for text, said in (
        ("nxt", "there is no command 'nxt', did you mean 'next'"),
        ("goto there", "expected a number"),
        ("who tiles + 1", "expected a buffer, a barrier or an array"),
        ("who absent", "'absent' is no buffer"),
        ("who dst[99, 0]", "has the shape"),
        ("arrived dst", "is no barrier"),
        ("print absent", "no name 'absent'"),
        ("print __import__", "no name"),
    ):
        with pytest.raises(CompilationError, match=said):
            commands.run(text)


def test_help_lists_all_commands(run):
    said = Commands(run).run("help")
    assert len(said) == len(COMMANDS)
    assert all(line.rstrip().endswith((".", ":")) or "`" in line for line in said)
    assert Commands(run).run("help who")[0].startswith("who")


@tlx_xdsl.jit
def half(x):
    return x * 0.5


@tlx_xdsl.jit(noinline=True)
def twice(x):
    x = x + x
    return x * 1.0


@tlx_xdsl.jit
def calls(x, out):
    offsets = tl.arange(0, 16)
    value = tl.load(x + offsets)
    value = half(value)
    value = twice(value)
    tl.store(out + offsets, value)


def test_calls_are_stepped_over_or_into():
    session = session_of(calls, 1, np.ones(16, np.float32), np.zeros(16, np.float32))
    commands = Commands(session)
    texts = Path(__file__).read_text().splitlines()

    def lines(command):
        commands.run("start")
        found = []
        while session.at < len(session):
            code = session.code_of(session.task)
            found.append(texts[code.place.line - 1].strip())
            before = session.at
            commands.run(command)
            if session.at == before:
                break
        return found

    inside = ["return x * 0.5", "x = x + x"]
    assert not set(inside) & set(lines("next"))
    assert set(inside) <= set(lines("into"))
    commands.run(f"break {texts.index('    x = x + x') + 1}")
    commands.run("start")
    commands.run("continue")
    where = commands.run("where")
    assert "value = twice(value)" in texts[int(where[-1].rpartition(":")[2]) - 1]
    assert commands.run("print x[0]") == ["x[0] = 0.5"]
    assert "tl.store" in commands.run("up")[-1] or "value = twice" in commands.run("where")[1]


@tlx_xdsl.jit
def prints(x):
    tl.device_print("the number is", tl.load(x))


def test_what_a_kernel_prints_is_printed_once(capsys):
    session = session_of(prints, 1, np.ones(1, np.float32))
    session.go(len(session))
    session.show()
    assert capsys.readouterr().out.count("the number is") == 1


def test_a_run_that_is_another_one_each_time_is_refused():
    numbers = itertools.count()
    array = np.zeros(1, np.int32)
    source = source_of_kernel(branches)

    def execute(recorder: Recorder):
        array[0] = next(numbers)
        return interpret_source(source, (1, 1, 1), bound(source, [array], {}), Options(), debugger=recorder)

    session = Session(execute, {"x": array}, {})
    session.go(len(session))
    with pytest.raises(Diverged, match="another one than when it was recorded"):
        session.show()


@tlx_xdsl.jit
def branches(x):
    number = tl.load(x)
    if number > 0:
        tl.store(x, number + 1)
    tl.store(x, number)


# Costs ----------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def scalars(x, out, n):
    total = 0.0
    for i in range(n):
        total += tl.load(x + i) * 2.0 + i % 3
    tl.store(out, total)


def test_recording_costs_at_most_three_times_a_run():
    """Record a kernel of numbers, the worst case: each event is an operation on one number."""
    source = source_of_kernel(scalars)
    arguments = bound(source, [np.ones(2000, np.float32), np.zeros(1, np.float32), 2000], {})

    def execute(recorder=None):
        return interpret_source(source, (1, 1, 1), arguments, Options(jobs=1), debugger=recorder)

    recorder = Recorder(execute)
    recorder.record()
    assert len(recorder) > 10_000
    seconds = {False: [], True: []}
    for _ in range(3):
        for is_recorded in (False, True):
            recorder.who = type(recorder.who)("i")
            recorder.what = type(recorder.what)("i")
            recorder.tasks.clear()
            began = time.perf_counter()
            recorder.record() if is_recorded else execute()
            seconds[is_recorded].append(time.perf_counter() - began)
    assert min(seconds[True]) < 3 * min(seconds[False]), seconds


@pytest.mark.skipif(not volume.is_full(), reason="a process of its own takes seconds")
def test_a_gemm_of_256_fits_in_500_mb(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, source = kernel_of(sections()["Wrong numbers: a wrong index"])
    Path(name).write_text(source)
    arrays = [f"{each}_desc={fill}[256,256]" for each, fill in (("a", "randn"), ("b", "randn"), ("c", "nan"))]
    launch = ["--grid", "4,4", *(part for each in arrays for part in ("--arg", each)), "--arg", "K=256"]
    code = (
        "import resource, sys\nfrom tlx_xdsl.tools.tlx import main\nmain(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    command = [sys.executable, "-c", code, "debug", f"{name}:gemm", *launch, "-c", "end; who c_desc[255, 255]"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "written last" in found.stdout
    assert int(found.stdout.split()[-1]) < 500 * 1024


# The command line -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["smooth.py:smooth"], "needs FILE.py:KERNEL and --grid"),
        (["smooth.mlir", "--grid", "1"], "takes a kernel as FILE.py:KERNEL"),
        (["smooth.py:smooth", "--grid", "1", "--stage", "ptx"], "the debugger is of the interpreter"),
        (["smooth.py:smooth", "--grid", "1", "--ranks", "2"], "of one GPU"),
        (["smooth.py:smooth", "--grid", "1", "--arg", "x=ones[4]"], "out"),
    ],
)
def test_wrong_command_lines(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    name, source = kernel_of(sections()["Wrong numbers: a stale buffer"])
    Path(name).write_text(source)
    assert main(["debug", *arguments]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_commands_of_a_script(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name, source = kernel_of(sections()["Wrong numbers: a stale buffer"])
    Path(name).write_text(source)
    Path("commands").write_text("# look\nbreak 16 if row == 2\ncontinue\nprint here[0]\nprnt\nquit\nprint row\n")
    launch = ["--grid", "1", "--arg", "x=arange[4,64]", "--arg", "out=nan[4,64]"]
    assert main(["debug", f"{name}:smooth", *launch, "--script", "commands"]) == 0
    said = capsys.readouterr().out
    assert "(tlx) print here[0]\nhere[0] = 128.0\n" in said
    assert "did you mean 'print'" in said
    assert "row = " not in said
