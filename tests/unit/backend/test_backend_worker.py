"""The worker process: its life, and what it does not do to its parent."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backend_kernels import VECTOR_ADD, needs_triton

import tlx_xdsl
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendError, BackendOptions, client, compile_ttgir, start_worker, stop_worker

HOPPER = BackendOptions(target="sm_90a")
REPOSITORY = Path(next(iter(tlx_xdsl.__path__))).parent


def worker_pid() -> int:
    return client.CLIENT.workers[0].process.pid


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process, elsewhere and without PYTHONPATH."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n{code}", *arguments],
        env=environment,
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_importing_the_package_imports_neither_triton_nor_xdsl():
    done = run_python(
        "import tlx_xdsl.backend\n"
        "print([m for m in ('triton', 'xdsl', 'numpy', 'tlx_xdsl.backend.stages') if m in sys.modules])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


class TestLife:
    pytestmark = needs_triton

    def test_it_is_kept_between_compiles(self):
        compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir")
        first = worker_pid()
        compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir")
        assert worker_pid() == first

    def test_the_parent_with_a_worker_never_imports_triton(self, tmp_path: Path):
        kernel = tmp_path / "add.ttgir"
        kernel.write_text(VECTOR_ADD)
        done = run_python(
            "from tlx_xdsl.backend import *\n"
            "from tlx_xdsl.backend.client import CLIENT\n"
            "result = compile_ttgir(open(sys.argv[1]).read(), BackendOptions())\n"
            "print(len(result.cubin) > 0, 'triton' in sys.modules)\n"
            "print(CLIENT.workers[0].process.pid, CLIENT.workers[0].directory)",
            str(kernel),
        )
        assert done.stderr == ""
        products, process = done.stdout.splitlines()
        assert products == "True False"
        pid, directory = process.split()
        # The end of the parent is the end of the worker and of its files.
        assert not Path("/proc", pid).exists()
        assert not Path(directory).exists()

    def test_a_parent_without_standard_streams_has_one(self, tmp_path: Path):
        kernel, answer = tmp_path / "add.ttgir", tmp_path / "answer"
        kernel.write_text(VECTOR_ADD)
        run_python(
            "import os\n"
            "from tlx_xdsl.backend import *\n"
            "for number in (0, 1, 2): os.close(number)\n"
            "result = compile_ttgir(open(sys.argv[1]).read(), BackendOptions(), stages='ttgir')\n"
            "open(sys.argv[2], 'x').write(result.ttgir)",
            str(kernel),
            str(answer),
        )
        assert "tt.store" in answer.read_text()

    def test_one_that_died_while_idle_is_replaced(self):
        start_worker()
        first = worker_pid()
        os.kill(first, signal.SIGKILL)
        client.CLIENT.workers[0].process.wait()
        assert compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir").ttgir
        assert worker_pid() != first

    @pytest.mark.parametrize("times", [1, 2])
    def test_one_that_is_killed_at_work_gets_one_successor(self, times: int):
        killed: list[int] = []

        def kill(stage: str) -> None:
            if stage == "ptx" and len(killed) < times:
                killed.append(worker_pid())
                os.kill(killed[-1], signal.SIGKILL)

        if times == 1:
            assert compile_ttgir(VECTOR_ADD, HOPPER, on_stage=kill).cubin
            assert worker_pid() != killed[0]
        else:
            with pytest.raises(BackendError, match="died of SIGKILL"):
                compile_ttgir(VECTOR_ADD, HOPPER, on_stage=kill, locate=False)
            assert len(set(killed)) == times

    def test_stopping_it_is_harmless(self):
        start_worker()
        first = worker_pid()
        stop_worker()
        stop_worker()
        assert not Path("/proc", str(first)).exists()
        assert compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir").ttgir

    def test_a_changed_setting_of_triton_reaches_it(self, monkeypatch: pytest.MonkeyPatch):
        assert ".loc" in compile_ttgir(VECTOR_ADD, HOPPER, stages="ptx").ptx
        monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
        assert ".loc" not in compile_ttgir(VECTOR_ADD, HOPPER, stages="ptx").ptx

    def test_threads_share_it(self):
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(compile_ttgir, VECTOR_ADD, HOPPER) for _ in range(4)]
            cubins = {job.result().cubin for job in jobs}
        assert len(cubins) == 1

    def test_a_forked_child_gets_its_own(self):
        compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir")
        first = worker_pid()
        child = multiprocessing.get_context("fork").Process(target=_compile_in_child, args=(first,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir").triton_version == INSTALLED
        assert worker_pid() == first


def _compile_in_child(pid_of_the_parent_s_worker: int) -> None:
    assert compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir").ttgir
    assert worker_pid() != pid_of_the_parent_s_worker
    stop_worker()
