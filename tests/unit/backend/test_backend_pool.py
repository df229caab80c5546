"""Several workers at a time: who gets one, in which order, and what happens when one dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backend_kernels import VECTOR_ADD, elementwise, needs_triton

import tlx_xdsl
from tlx_xdsl.backend import BackendError, BackendOptions, BackendResult, client, compile_ttgir
from tlx_xdsl.backend.client import WorkerClient

pytestmark = pytest.mark.quick

HOPPER = BackendOptions(target="sm_90a")
REPOSITORY = Path(next(iter(tlx_xdsl.__path__))).parent
PATIENCE_S = 30.0


class FakeWorker:
    """Stands for a worker process in the tests of who gets one."""

    def __init__(self, toolchain: object = None):
        self.directory = Path("nowhere")
        self.alive = True

    def usable(self):
        return self.alive

    def was_killed(self):
        return False

    def end(self):
        self.alive = False

    def abandon(self):
        self.alive = False

    def close_pipes(self):
        pass

    def wait_until_gone(self):
        pass


class Conversations:
    """Holds every conversation with a worker until the test lets it go on, and notes the order of the sources."""

    def __init__(self):
        self.running = {}
        self.order = []
        self._changed = threading.Condition()

    def __call__(self, worker, request, text, timeout_s, on_stage=None):
        release = threading.Event()
        with self._changed:
            self.running[text] = (worker, release)
            self.order.append(text)
            self._changed.notify_all()
        assert release.wait(PATIENCE_S)
        with self._changed:
            del self.running[text]
        if not worker.alive:
            raise BackendError("died")
        return BackendResult("cubin", "0.0", text)

    def wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.order) >= count, PATIENCE_S)

    def finish(self, text):
        self.running[text][1].set()


@pytest.fixture
def conversations(monkeypatch: pytest.MonkeyPatch):
    talks = Conversations()
    monkeypatch.setattr(client, "WorkerProcess", FakeWorker)
    monkeypatch.setattr(client, "converse", talks)
    return talks


@pytest.fixture
def threads():
    with ThreadPoolExecutor(8) as pool:
        yield pool


def submit(threads, pool: WorkerClient, text: str):
    return threads.submit(pool.compile, text, HOPPER, "cubin", "k.ttgir", None)


def wait_until_queued(pool: WorkerClient, count: int):
    deadline = time.monotonic() + PATIENCE_S
    while len(pool._queue) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_two_compiles_have_two_workers_and_a_third_waits(conversations, threads):
    pool = WorkerClient(2)
    jobs = [submit(threads, pool, text) for text in "ab"]
    conversations.wait_for(2)
    third = submit(threads, pool, "c")
    wait_until_queued(pool, 1)
    assert len(pool.workers) == 2
    first = conversations.running["a"][0]
    conversations.finish("a")
    conversations.wait_for(3)
    assert conversations.running["c"][0] is first, "an idle worker is used before a new one is started"
    for text in "bc":
        conversations.finish(text)
    assert [job.result(PATIENCE_S).ttgir for job in (*jobs, third)] == ["a", "b", "c"]
    assert len(pool.workers) == 2


def test_those_who_wait_are_served_in_order(conversations, threads):
    pool = WorkerClient(1)
    jobs = [submit(threads, pool, "first")]
    conversations.wait_for(1)
    for count, text in enumerate("bacd", 1):
        jobs.append(submit(threads, pool, text))
        wait_until_queued(pool, count)
    for count, text in enumerate(("first", *"bacd"), 1):
        conversations.wait_for(count)
        conversations.finish(text)
    for job in jobs:
        job.result(PATIENCE_S)
    assert conversations.order == ["first", *"bacd"]


def test_the_death_of_one_worker_concerns_its_own_compile_alone(conversations, threads):
    pool = WorkerClient(2)
    doomed, healthy = submit(threads, pool, "doomed"), submit(threads, pool, "healthy")
    conversations.wait_for(2)
    conversations.running["doomed"][0].alive = False
    for text in ("doomed", "healthy"):
        conversations.finish(text)
    assert healthy.result(PATIENCE_S).ttgir == "healthy"
    with pytest.raises(BackendError, match="died"):
        doomed.result(PATIENCE_S)
    assert len(pool.workers) == 1
    again = submit(threads, pool, "again")
    conversations.wait_for(3)
    conversations.finish("again")
    assert again.result(PATIENCE_S).ttgir == "again"


def test_an_interrupted_wait_gives_its_turn_back(conversations, threads, monkeypatch: pytest.MonkeyPatch):
    pool = WorkerClient(1)
    job = submit(threads, pool, "first")
    conversations.wait_for(1)
    waiting, wait = threading.get_ident(), threading.Event.wait

    def interrupted(event, timeout=None):
        # The thread of the first compile may not have begun to wait yet.
        if threading.get_ident() == waiting:
            raise KeyboardInterrupt
        return wait(event, timeout)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Event, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.compile("never", HOPPER, "cubin", "k.ttgir", None)
    assert not pool._queue
    conversations.finish("first")
    job.result(PATIENCE_S)
    assert pool._slots_taken == 0


def test_a_lower_limit_ends_idle_workers(conversations):
    pool = WorkerClient(3)
    pool.start(5)
    started = pool.workers
    assert len(started) == 3
    pool.limit(1)
    assert len(pool.workers) == 1
    assert sum(worker.alive for worker in started) == 1
    with pytest.raises(ValueError, match="expected at least 1, got 0"):
        pool.limit(0)


def test_stopping_ends_busy_workers_too(conversations, threads):
    pool = WorkerClient(2)
    pool.start(2)
    job = submit(threads, pool, "cut")
    conversations.wait_for(1)
    pool.stop()
    conversations.finish("cut")
    with pytest.raises(BackendError):
        job.result(PATIENCE_S)
    assert not pool.workers


@needs_triton
def test_threads_compile_different_kernels_at_the_same_time(threads):
    """Each product of real workers belongs to its own text, whichever worker made it."""
    pool = WorkerClient(2)
    names = ["sin", "cos", "exp", "log"]
    texts = {name: elementwise(f"%sum = math.{name} %vx : tensor<128xf32, #block>") for name in names}
    try:
        jobs = {name: submit(threads, pool, text) for name, text in texts.items()}
        for name, job in jobs.items():
            assert f"math.{name}" in job.result().ttgir
        assert len({worker.process.pid for worker in pool.workers}) == 2
    finally:
        pool.stop()


@needs_triton
def test_a_worker_whose_parent_was_killed_ends_and_leaves_no_files():
    code = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
        "from tlx_xdsl.backend import *\n"
        "from tlx_xdsl.backend.client import CLIENT\n"
        "compile_ttgir(sys.stdin.read(), BackendOptions(), stages='ttgir')\n"
        "print(CLIENT.workers[0].process.pid, CLIENT.workers[0].directory, flush=True)\n"
        "import time; time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(VECTOR_ADD)
        parent.stdin.close()
        pid, directory = parent.stdout.readline().split()
        os.kill(parent.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    # Without anybody to wait for it, the process itself may stay in the table of processes.
    while Path(directory).exists():
        assert time.monotonic() < deadline, f"process {pid} left its files"
        time.sleep(0.01)


PTXAS_THAT_NEVER_ENDS = """#!/bin/sh
case "$*" in *--version*) echo "Cuda compilation tools, release 12.8, V12.8.93"; exit;; esac
echo $$ > "$STARTED.part" && mv "$STARTED.part" "$STARTED"
exec sleep 60
"""


@needs_triton
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_parent_that_dies_during_ptxas_takes_the_worker_and_ptxas_along(how, tmp_path: Path):
    tool, started, kernel = tmp_path / "ptxas", tmp_path / "started", tmp_path / "add.ttgir"
    tool.write_text(PTXAS_THAT_NEVER_ENDS)
    tool.chmod(0o755)
    kernel.write_text(VECTOR_ADD)
    code = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
        "from tlx_xdsl.backend import *\n"
        f"compile_ttgir(open({str(kernel)!r}).read(), BackendOptions())"
    )
    tools = {"TRITON_PTXAS_PATH": str(tool), "TRITON_PTXAS_BLACKWELL_PATH": str(tool)}
    environment = {**os.environ, **tools, "STARTED": str(started), "TMPDIR": str(tmp_path)}
    deadline = time.monotonic() + PATIENCE_S
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as parent:
        while not started.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        parent.send_signal(how)
    while list(tmp_path.glob("tlx-xdsl-*")) or _runs(int(started.read_text())):
        assert time.monotonic() < deadline, "something still runs"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    status = Path("/proc", str(pid), "stat")
    # Without anything to wait for it, an ended process may stay in the table.
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@needs_triton
def test_a_death_in_one_thread_leaves_the_other_s_compile_alone(threads):
    from backend_kernels import ABORTING

    good = [threads.submit(compile_ttgir, VECTOR_ADD, HOPPER) for _ in range(2)]
    bad = threads.submit(compile_ttgir, ABORTING, HOPPER)
    assert all(job.result().cubin for job in good)
    assert isinstance(bad.exception(), BackendError)
