"""Triton's cache of what our compiler made: processes side by side, a dying worker, an edited pass."""

from __future__ import annotations

import concurrent.futures
import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("triton")

import triton
from triton import knobs
from triton.runtime.cache import FileCacheManager
from triton.runtime.jit import JITFunction

import tlx_xdsl
from tests.unit.backend.backend_kernels import ABORTING
from tests.unit.runtime.jit.jit_kernels import FakeTensor, add
from tlx_xdsl.runtime.jit import triton_compile
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target

pytestmark = pytest.mark.backend

ROOT = Path(__file__).parents[4]

SCRIPT = """
import sys
from tests.unit.backend.backend_kernels import ABORTING
from tests.unit.runtime.jit.jit_kernels import FakeTensor, add
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
with assume_target("sm_90a"):
    kernel = add.warmup(*[FakeTensor(1024) for _ in range(3)], 1024, BLOCK=256, grid=(4,))
compiled = "xdsl" in sys.modules
print("compiled" if compiled else "cached", kernel.hash, len(kernel.asm["cubin"]))
"""


def start(cache: Path, package_root: Path = ROOT) -> subprocess.Popen:
    # The package of `package_root` before the one that is installed, and our tests after it.
    path = os.pathsep.join((str(package_root), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "TRITON_CACHE_DIR": str(cache)}
    return subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True, cwd="/")


def finish(process: subprocess.Popen) -> list[str]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return out.split()


def test_two_processes_compile_the_same_kernel_at_once(tmp_path):
    both = [start(tmp_path), start(tmp_path)]
    results = [finish(process) for process in both]
    assert results[0][1:] == results[1][1:]
    # A later process finds it, and loads no compiler.
    assert finish(start(tmp_path)) == ["cached", *results[0][1:]]


def test_an_edited_pass_makes_it_compile_again(tmp_path):
    package = tmp_path / "root" / "tlx_xdsl"
    shutil.copytree(ROOT / "tlx_xdsl", package, ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    first = finish(start(cache, package.parent))
    assert first[0] == "compiled"
    assert finish(start(cache, package.parent)) == ["cached", *first[1:]]
    edited = package / "transforms" / "nvidia" / "barrier_lifetimes.py"
    edited.write_text(edited.read_text() + "\n# Another thought.\n")
    second = finish(start(cache, package.parent))
    assert second[0] == "compiled"
    assert second[1] != first[1]


@pytest.fixture
def cache(tmp_path):
    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(tmp_path)
        yield tmp_path


def compiled(block: int, kernel=None):
    kernel = tlx_xdsl.jit(add.fn) if kernel is None else kernel
    return kernel.warmup(*[FakeTensor(1024) for _ in range(3)], 1024, BLOCK=block, grid=(1,))


def test_a_worker_that_dies_costs_one_launch_only(cache, monkeypatch):
    """A text over which stock Triton aborts."""
    real = triton_compile._compile_text

    def with_deadly_text(src, wanted):
        text = real(src, wanted)
        object.__setattr__(text, "ttgir", ABORTING)
        return text

    monkeypatch.setattr(triton_compile, "_compile_text", with_deadly_text)
    with pytest.raises(tlx_xdsl.CompilationError, match=r"died|aborted|killed|SIGABRT"):
        compiled(2048)
    monkeypatch.undo()
    # Not cached, neither the failure nor anything of it; and there is a worker again.
    assert compiled(2048).asm["cubin"].startswith(b"\x7fELF")


def test_what_an_edited_compiler_made_is_not_kept(cache, monkeypatch):
    monkeypatch.setattr(triton_compile, "compiler_changed", lambda: True)
    assert compiled(4096).asm["cubin"].startswith(b"\x7fELF")
    assert not list(cache.rglob("__grp__*"))


def test_only_the_binary_is_stored_when_that_is_asked_for(cache):
    with knobs.compilation.scope():
        knobs.compilation.store_binary_only = True
        kernel = compiled(128)
    assert list(kernel.asm) == ["cubin"]
    # Stages of ours are made when they are asked for.
    assert "tt.func public @add" in kernel.asm["frontend"]


# --- entries that are not as they were written ----------------------------------------------------------------------


def remove(path: Path) -> None:
    path.unlink()


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribble(path: Path) -> None:
    path.write_bytes(b"\xff\xfe junk")


def write_a_list(path: Path) -> None:
    path.write_text("[]")


@pytest.mark.parametrize("damage", [remove, halve, scribble, write_a_list])
@pytest.mark.parametrize("file", ["add.cubin", "add.ptx", "add.json", "__grp__add.json"])
def test_a_damaged_entry_is_made_again(warm_cache, file, damage):
    good = compiled(64).asm
    (path,) = warm_cache.rglob(file)
    damage(path)
    assert compiled(64).asm == good
    assert path.stat().st_size > 10


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory):
    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(tmp_path_factory.mktemp("cache"))
        yield Path(knobs.cache.dir)


def test_without_a_cache_the_kernel_is_kept_for_the_process(cache):
    (cache / "file").touch()
    knobs.cache.dir = str(cache / "file" / "below")
    with pytest.warns(RuntimeWarning, match=r"'add' can't be kept in .* for this process only: .*Not a dir"):
        kernel = compiled(64)
    assert kernel.asm["cubin"]
    assert kernel.metadata.name == "add"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_disk_that_gets_full_and_an_interrupt_keep_nothing_half(cache, monkeypatch, error):
    put = FileCacheManager.put

    def broken(self, data, filename, binary=True):
        if Path(self.cache_dir).is_relative_to(cache) and filename.endswith(".ptx"):
            half = Path(self.cache_dir) / f"tmp.pid_{os.getpid()}_x"
            half.mkdir()
            (half / filename).write_text("half")
            raise error
        return put(self, data, filename, binary)

    monkeypatch.setattr(FileCacheManager, "put", broken)
    if isinstance(error, OSError):
        with pytest.warns(RuntimeWarning, match="No space left"):
            assert compiled(64).asm["ptx"]
    else:
        with pytest.raises(KeyboardInterrupt):
            compiled(64)
    assert not list(cache.rglob("tmp.pid_*"))


def test_a_full_disk_is_reported(cache, monkeypatch):
    def put(*args, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FileCacheManager, "put", put)
    monkeypatch.setattr("warnings.warn", lambda *_, **__: None)
    with pytest.raises(tlx_xdsl.CompilationError, match=r"can't be written: .*No space left(.|\n)*TRITON_CACHE_DIR"):
        compiled(64)


# --- several at once ------------------------------------------------------------------------------------------------


def test_threads_launch_a_new_kernel_at_once(cache):
    kernel = tlx_xdsl.jit(add.fn)
    together = threading.Barrier(4)

    def launch(_):
        together.wait()
        return compiled(64, kernel).hash

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(launch, range(4)))) == 1


def test_a_thread_that_meets_a_device_leaves_the_compiler_to_the_others(cache):
    """Triton puts its own compiler over ours then."""
    kernel = tlx_xdsl.jit(add.fn)
    JITFunction.create_binder(kernel)
    assert "handoff" in compiled(64, kernel).asm


def test_triton_compiles_in_the_background(cache):
    kernel = tlx_xdsl.jit(add.fn)
    with concurrent.futures.ThreadPoolExecutor(2) as threads, triton.AsyncCompileMode(threads):
        both = [compiled(block, kernel) for block in (64, 128)]
        assert len({each.result().hash for each in both}) == 2
    assert compiled(64, kernel).hash == both[0].result().hash


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be copied here")
def test_a_forked_process_has_a_worker_of_its_own(cache):
    first = compiled(64)
    child = os.fork()
    if not child:
        os._exit(compiled(128).hash == first.hash)
    assert os.waitpid(child, 0)[1] == 0
    assert compiled(256).asm["cubin"]
