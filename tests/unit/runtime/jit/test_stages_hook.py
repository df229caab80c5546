"""Triton's hook on the stages of a compile is called here, and changes what is made."""

import warnings

import pytest
from triton import knobs

from tests.unit.runtime.jit import jit_kernels
from tlx_xdsl import TensorDescriptor
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.runtime.jit.triton_compile import CompilationWarning

pytestmark = pytest.mark.backend


class Hook:
    """Puts a line before the PTX, and keeps the stages that it was shown."""

    def __init__(self, version: str):
        self.version = version
        self.stages: list[str] = []

    def __call__(self, backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return self.version, self.version
        self.stages = sorted(stages)
        make_ptx = stages["ptx"]
        stages["ptx"] = lambda source, metadata: f"// by {self.version}\n{make_ptx(source, metadata)}"
        return None


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Compile a kernel with a hook or none; gives its PTX and what was warned of."""

    def compile_with(hook, kernel, *args, **options):
        monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", hook)
        with warnings.catch_warnings(record=True) as caught, assume_target("sm_90a"):
            warnings.simplefilter("always", CompilationWarning)
            # In this process a launch finds what was compiled before by another key.
            kernel.device_caches.clear()
            ptx = kernel.warmup(*args, grid=(1,), **options).asm["ptx"]
        return ptx, [str(each.message) for each in caught if each.category is CompilationWarning]

    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield compile_with


def test_it_is_called_and_a_part_of_the_key(compiled):
    tensors = [jit_kernels.FakeTensor(1024) for _ in range(3)]
    plain, _ = compiled(None, jit_kernels.add, *tensors, 1024, BLOCK=256)
    first, second = Hook("one"), Hook("two")
    for hook in (first, second):
        ptx, said = compiled(hook, jit_kernels.add, *tensors, 1024, BLOCK=256)
        assert ptx.startswith(f"// by {hook.version}\n")
        assert hook.stages == ["cubin", "llir", "ptx", "ttgir", "ttir"]
        # Plain Triton goes through all of them.
        assert said == []
    again, _ = compiled(None, jit_kernels.add, *tensors, 1024, BLOCK=256)
    assert again == plain


def test_a_warning_says_which_stages_are_not_there(compiled):
    hook = Hook("three")
    source, target = (TensorDescriptor(jit_kernels.FakeTensor(64, 64), [64, 64], [64, 1], [16, 16]) for _ in range(2))
    ptx, said = compiled(hook, jit_kernels.copy_tile, source, target, ROWS=16, COLUMNS=16)
    assert ptx.startswith("// by three\n")
    assert said == [
        "kernel 'copy_tile': add_stages_inspection_hook has llir, ptx and cubin to change, but no ttir and ttgir: "
        "tlx_xdsl makes both"
    ]
