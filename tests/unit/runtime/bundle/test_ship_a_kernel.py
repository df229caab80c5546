"""The page docs/ship-a-kernel.md: its kernel is bundled, its programs run, its messages are what is said."""

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from tests.unit.runtime.bundle.bundles import (
    compile_page_s_program,
    cuda_include,
    has_c_compiler,
    page_blocks,
    sizes_of,
)
from tlx_xdsl.runtime import BundleError, load
from tlx_xdsl.runtime.bundle import load as load_module
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver, DeviceAttribute
from tlx_xdsl.tools.tlx import main

ROOT = Path(__file__).parents[4]

pytestmark = pytest.mark.backend


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A folder in which the page's kernel stands and is compiled as the page says."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "axpy.py").write_text(page_blocks("python")[0])
    command, *listed = page_blocks("console")[0].splitlines()
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(command.removeprefix("$ tlx ").split()) == 0
    finally:
        os.chdir(before)
    assert listed[0] == "$ ls out/axpy"
    assert listed[1:] == sorted(path.name for path in (folder / "out" / "axpy").iterdir())
    return folder


@pytest.fixture
def gpu(make_cuda, shipped, monkeypatch):
    """The process's driver: a fake that knows the kernel."""
    monkeypatch.chdir(shipped)
    cuda = make_cuda(parameter_sizes=[8, 8, 8, 4, 4, 8, 8])
    cuda._cuModuleGetFunction = lambda out, module, name: out.__setitem__(0, 0xF0)
    monkeypatch.setattr(load_module, "default_driver", lambda: CudaDriver(cuda.library))
    return cuda


def test_bundling_from_python(shipped, monkeypatch):
    monkeypatch.chdir(shipped)
    monkeypatch.syspath_prepend(str(shipped))
    monkeypatch.delitem(sys.modules, "axpy", raising=False)
    exec(page_blocks("python")[1].replace('"out/"', '"again/"'), {})
    assert (shipped / "again/axpy/axpy.ptx").read_text() == (shipped / "out/axpy/axpy.ptx").read_text()


def test_launching_from_python(gpu, make_tensor, monkeypatch):
    class Tensor(make_tensor):
        def numel(self):
            return 100_000

    addresses = iter((0x1000, 0x2000, 0x3000))
    tensor = lambda *_, **__: Tensor(dtype="torch.float32", itemsize=4, address=next(addresses))  # noqa: E731
    stream = types.SimpleNamespace(cuda_stream=0)
    stand_in = types.SimpleNamespace(
        randn=tensor, empty_like=tensor, cuda=types.SimpleNamespace(current_stream=lambda: stream)
    )
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    exec(page_blocks("python")[2], {})
    assert len(gpu.launches) == 3
    assert all(launch == gpu.launches[0] for launch in gpu.launches)
    assert gpu.launches[0].grid == (98, 1, 1)
    assert [int.from_bytes(each, "little") for each in gpu.launches[0].parameters[:4]] == [4096, 8192, 12288, 100_000]


@pytest.mark.skipif(not has_c_compiler() or cuda_include() is None, reason="there is no C compiler or no cuda.h")
def test_launching_from_c(shipped, tmp_path):
    program = compile_page_s_program(shipped / "out" / "axpy", tmp_path)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("largest error: 0\n", "", 0)


def test_the_gcc_command_is_as_strict_as_the_tests():
    (command,) = (block for block in page_blocks("sh") if block.startswith("gcc"))
    assert "-std=c99 -Wall -Wextra -Werror" in command


def test_the_message_on_another_gpu(gpu):
    major = DeviceAttribute.COMPUTE_CAPABILITY_MAJOR
    gpu._cuDeviceGetAttribute = lambda out, attribute, device: out.__setitem__(0, 8 if attribute == major else 9)
    with pytest.raises(BundleError) as caught:
        load("out/")
    _, _, said = page_blocks("console")[1].partition("\n")
    assert f"{caught.value}\n" == said


def test_the_manifest_counts_the_parameters(shipped):
    manifest = load(shipped / "out", driver=CudaDriver(object())).manifest
    assert sizes_of(manifest) == [8, 8, 8, 4, 4, 8, 8]


def test_the_options_exist(capsys):
    with pytest.raises(SystemExit):
        main(["compile", "--help"])
    known = capsys.readouterr().out
    page = (ROOT / "docs" / "ship-a-kernel.md").read_text(encoding="utf-8")
    for option in set(re.findall(r"`(--[a-z-]+)", page)) - {"--no-deps"}:
        assert option in known, option
