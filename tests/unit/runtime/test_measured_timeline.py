"""`kernel.profile(..., timeline=True)`, whose GPU is played: the PTX machine makes the records."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("triton")

from triton import knobs

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.runtime.jit.jit_kernels import DType, FakeTensor
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ptx import run_ptx
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.runtime.launch import cuda_driver, launcher
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver
from tlx_xdsl.runtime.measure import measured_timeline

pytestmark = pytest.mark.backend

ADDRESS = 0x7000_0000
N = 512


@tlx_xdsl.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))


class OnGpu(FakeTensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True
    device = SimpleNamespace(index=0, type="cuda")
    ndim = 1


class Memory:
    """Stand-in for torch's memory on a GPU, with what a launch of the probed PTX has left there."""

    def __init__(self, texts: list[str], words: int):
        self._texts, self._words = texts, words

    def data_ptr(self):
        return ADDRESS

    def cpu(self):
        return self

    def numpy(self):
        words, out = np.zeros(self._words, np.int32), np.zeros(4, np.float16)
        run_ptx(self._texts[-1], 4, [np.ones(N, np.float16), out, N, None, words])
        assert (out == N).all()
        return words


@pytest.fixture
def gpu(make_cuda, monkeypatch, tmp_path):
    """A driver that records launches; what is assembled with probes is in `texts`."""
    library, texts = make_cuda(), []
    library.probed = 2.05
    library._cuModuleGetFunction = lambda out, module, name: out.__setitem__(0, 0xF0)
    library._cuModuleLoadData = lambda out, image: out.__setitem__(0, 0xD0)
    library.parameter_sizes = [8, 8, 4, 8, 8]
    made = CudaDriver(library.library)
    monkeypatch.setattr(made, "device_name", lambda ordinal: "NVIDIA H200")
    monkeypatch.setattr(made, "multiprocessor_count", lambda: 132)
    monkeypatch.setattr(measured_timeline, "default_driver", lambda: made)
    monkeypatch.setattr(launcher, "default_driver", lambda: made)
    monkeypatch.setattr(cuda_driver, "default_driver", lambda: made)
    torch = SimpleNamespace(int32="int32", zeros=lambda count, dtype, device: Memory(texts, count))
    monkeypatch.setattr(measured_timeline, "import_module", lambda name: torch)
    assembled = measured_timeline.assembled

    def assemble(text, tool, target, **options):
        texts.append(text)
        return assembled(text, tool, target, **options)

    def timed(launch, seconds):
        before = len(library.launches)
        launch()
        # The launcher of the kernel itself may be that of an earlier test, with another library.
        last = library.launches[-1].parameters[-1] if len(library.launches) > before else bytes(8)
        return (library.probed if int.from_bytes(last, "little") == ADDRESS else 2.0,)

    monkeypatch.setattr(measured_timeline, "assembled", assemble)
    monkeypatch.setattr(measured_timeline, "timed_launches", timed)
    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(tmp_path)
        yield library


def tensors():
    kind = DType()
    return OnGpu(N, dtype=kind), OnGpu(4, dtype=kind, address=8192)


def test_the_kernel_and_its_twin_with_probes_take_turns(gpu):
    found = total.profile((4,), *tensors(), N, BLOCK=N, num_warps=4, timeline=True)
    last = [int.from_bytes(launch.parameters[-1], "little") for launch in gpu.launches]
    assert last == [0, ADDRESS] * 3
    assert [launch.parameters[:-1] for launch in gpu.launches[:1]] == [gpu.launches[1].parameters[:-1]]
    timeline = found.timeline
    assert (timeline.origin, timeline.chip, timeline.kernel) == ("measured", "H200", "total")
    # All CTAs run at once: the last one is shown.
    assert [(each.group, each.name) for each in timeline.tracks] == [("kernel", f"warp {warp}") for warp in range(4)]
    assert {span.name for span in timeline.spans if span.kind == "wait"} == {"wait barrier 0"}
    assert timeline.notes[0].startswith("probes: 2000.0 us without, 2050.0 us with them (+2.5%), medians of 3 and 3")
    assert found.median == pytest.approx(2.0)
    assert "4 warps; probes: 2000.0 us without" in str(found)


def test_a_launch_that_gets_too_slow_has_fewer_probes(gpu):
    """Launches with probes take 10 % longer; the barrier of the sum then has none."""
    gpu.probed = 2.2
    found = total.profile((4,), *tensors(), N, BLOCK=N, num_warps=4, timeline=True)
    assert {span.name for span in found.timeline.spans if span.kind == "wait"} == set(), found.timeline.notes
    assert "probes of barriers and issues, too, would make it 10.0% slower" in found.timeline.notes[1]


def test_without_a_timeline_no_probes_are_made(gpu, monkeypatch):
    from tlx_xdsl.runtime import profile

    monkeypatch.setattr(profile, "timed_launches", lambda launch, seconds: (1.0,))
    found = total.profile((4,), *tensors(), N, BLOCK=N, num_warps=4)
    assert found.timeline is None


def test_without_a_gpu_it_says_what_predicts_one():
    with pytest.raises(ValueError, match=r"needs tensors of a GPU; kernel\.timeline predicts one"):
        total.profile((4,), np.ones(N, np.float32), np.zeros(4, np.float32), N, BLOCK=N, timeline=True)


def test_an_assembler_that_is_gone_is_an_error():
    with pytest.raises(CompilationError, match=r"ptxas 1\.2\.3 \(somewhere\) made this kernel's binary"):
        measured_timeline.own_assembler("sm_90a", "3.9.0", "ptxas 1.2.3 (somewhere)")


@pytest.mark.parametrize(
    ("ctas", "cluster", "shown"),
    [
        (1, 1, (0,)), (132, 1, (131,)), (132, 2, (130, 131)), (16, 16, tuple(range(8))),
        (133, 1, (0, 66)), (264, 2, (0, 1, 132, 133)), (320, 16, (*range(8), *range(160, 168))),
    ],
)  # fmt: skip
def test_the_first_cluster_and_one_in_the_middle_are_shown_or_the_last_of_those_that_run_at_once(ctas, cluster, shown):
    assert measured_timeline.ctas_to_show(ctas, cluster, 132) == shown
