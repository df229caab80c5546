"""Sweeps in processes of their own: scripts, Ctrl-C, and dask."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import sweep_kernels as kernels

from tests.unit.volume import is_full
from tlx_xdsl.runtime import compile_many, sweep_jobs
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.runtime.sweep import pool

pytestmark = pytest.mark.backend

ROOT = Path(__file__).parents[4]
PATIENCE_S = 120.0
BASE = Specialization({"x": "*i32"})

SCRIPT = """\
import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.runtime import compile_many, sweep_jobs
from tlx_xdsl.runtime.driver.compilation import Specialization


@tlx_xdsl.jit
def fill(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1)


def main():
    jobs = sweep_jobs(fill, Specialization({{"x": "*i32"}}), {{"BLOCK": {blocks}}})
    report = compile_many(jobs, workers=2, progress={progress})
    print([result.kind for result in report], report.notes)


{call}
"""


def started(path, **holes) -> subprocess.Popen:
    path.write_text(SCRIPT.format(**holes))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, path.name],
        cwd=path.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What runs in a shell's background ignores interrupts, and so does all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.skipif(not is_full(), reason="full volume only: docs/sweeps.md has such a script, which is run")
def test_a_script_sweeps_its_own_kernel(tmp_path):
    guarded = "if __name__ == '__main__':\n    main()"
    script = started(tmp_path / "tune.py", blocks="(32, 100, 64)", progress=True, call=guarded)
    out, err = script.communicate(timeout=PATIENCE_S)
    assert out == "['fits', 'error', 'fits'] ()\n"
    assert ("configurations |" in err) == (find_spec("tqdm") is not None)
    assert script.returncode == 0


def test_a_script_without_a_guard_is_reported(tmp_path):
    script = started(tmp_path / "tune.py", blocks="(32,)", progress=False, call="main()")
    out, err = script.communicate(timeout=PATIENCE_S)
    assert out == ""
    said = err[err.index("tune.py:18:1: error:") :].splitlines()
    assert said[0].endswith("""which run this file again: put this under 'if __name__ == "__main__":'""")
    assert said[1:3] == ["    main()", "    ^"]


def children_of(session: int) -> list[int]:
    """The processes of a session, and those that say in their environment that they were started from it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"SWEEP_OF={session}" in (entry / "environ").read_text(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, *([signal.SIGKILL] if is_full() else [])])
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_nothing_is_left_of_an_interrupted_sweep(tmp_path, how):
    # The mark is inherited by all processes, those in sessions of their own, too.
    call = "if __name__ == '__main__':\n    import os\n    os.environ['SWEEP_OF'] = str(os.getpid())\n    main()"
    progress = "lambda done, total, result: print(done, flush=True)"
    script = started(tmp_path / "tune.py", blocks="[2**i for i in range(5, 11)] * 500", progress=progress, call=call)
    assert script.stdout.readline() == "1\n"
    # The first result needs one process; both, each with its worker, are to be there when the signal comes.
    deadline = time.monotonic() + PATIENCE_S
    while len(children_of(script.pid)) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # A terminal's Ctrl-C goes to the whole group, a kill to one process.
    (os.killpg if how == signal.SIGINT else os.kill)(script.pid, how)
    _, err = script.communicate(timeout=PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while (left := children_of(script.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    if how == signal.SIGINT:
        # The parent's own, and no others.
        assert err.count("Traceback") == 1
        assert err.rstrip().endswith("KeyboardInterrupt")


def test_a_sweep_on_a_cluster_of_dask_s():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    full = is_full()
    settings = {"n_workers": 2 if full else 1, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        jobs = [
            *sweep_jobs(kernels.add_one, BASE, {"BLOCK": (64, 100, 128) if full else (64, 100), "UNUSED": (1, 2)}),
            *sweep_jobs(kernels.assembly, BASE, {"TEXT": ("mov.b32 $0, $7;", "mov.b32 $0, $1;")}),
            *sweep_jobs(kernels.staged, BASE, {"ROWS": (64,), "ARRAYS": (16,)}),
        ]
        with client.get_executor() as executor:
            report = compile_many(jobs, executor)
    assert [result.kind for result in report] == [
        *["fits"] * 2,
        *["error"] * 2,
        *["fits"] * (2 if full else 0),
        "died",
        "fits",
        "pruned",
    ]
    assert report.notes == ()
    assert sum(result.same_as is not None for result in report) == (2 if full else 1)


def test_the_command_fails_when_nothing_can_be_launched(tmp_path, capsys):
    from tlx_xdsl.tools.tlx import main

    path = tmp_path / "kernel.py"
    path.write_text(SCRIPT.split("def main")[0])
    arguments = ["sweep", f"{path}:fill", "--signature", "x=*i32", "-j", "1", "--set", "num_warps=4,8"]
    assert main([*arguments, "--set", "BLOCK=100", "--json"]) == 1
    captured = capsys.readouterr()
    found = json.loads(captured.out)["configurations"]
    assert [each["settings"] for each in found] == [{"num_warps": 4, "BLOCK": 100}, {"num_warps": 8, "BLOCK": 100}]
    assert {each["verdict"] for each in found} == {"error"}
    assert captured.err == "error: no configuration can be launched, of 2\n"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("BLOCK=", "--set: expected NAME=VALUE, found 'BLOCK='"),
        ("BLOCK=1,,2", "--set: expected BLOCK=VALUE,VALUE, found 'BLOCK=1,,2'"),
        ("BLOCK=x", "--set: 'BLOCK' needs a Python literal"),
        ("BLOKC=1", "'BLOKC' can't be chosen: expected a compile-time argument (BLOCK) or one of num_warps"),
    ],
)
def test_choices_that_can_t_be(tmp_path, capsys, argument, message):
    from tlx_xdsl.tools.tlx import main

    path = tmp_path / "kernel.py"
    path.write_text(SCRIPT.split("def main")[0])
    assert main(["sweep", f"{path}:fill", "--signature", "x=*i32", "--set", argument]) == 1
    assert message in capsys.readouterr().err


def test_threads_compile_where_processes_have_no_semaphores(monkeypatch):
    """A sandbox without /dev/shm has no semaphores."""

    def refused(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(pool, "ProcessPoolExecutor", refused)
    report = compile_many(sweep_jobs(kernels.add_one, BASE, {"BLOCK": [16, 32], "UNUSED": [0]}), workers=2)
    assert [result.kind for result in report] == ["fits", "fits"]
    assert any("Read-only file system" in note for note in report.notes)
