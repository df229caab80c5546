"""The engines over NVSHMEM and NCCL, on stand-ins with the libraries' signatures: no GPU has run this."""

import struct
import sys

import pytest

import tlx_xdsl
from tests.unit.kernels.stand_in_torch import Device, Tensor
from tests.unit.runtime.ranks.fake_device_libraries import InitStatus, Libraries, WindowFlag
from tlx_xdsl.kernels.comm import all_reduce

ENGINES = ("NvshmemRanks", "NcclRanks")


@pytest.fixture
def engine(torch, monkeypatch):
    """Return what makes an engine with libraries that are wrong in some way."""

    def make(name, **wrong):
        libraries = Libraries(**wrong)

        def modules(name, value):
            monkeypatch.setitem(sys.modules, name, value)

        libraries.install_torch(sys.modules["torch"], modules)
        if name == "NvshmemRanks":
            libraries.install_nvshmem(modules)
            return libraries, tlx_xdsl.NvshmemRanks()
        return libraries, tlx_xdsl.NcclRanks(libraries.install_nccl(modules))

    return make


@pytest.mark.parametrize("name", ENGINES)
def test_addresses_of_all_ranks(engine, name):
    libraries, ranks = engine(name)
    assert (ranks.rank, ranks.world_size) == (1, 2)
    x = ranks.allocate((4, 8), sys.modules["torch"].bfloat16)
    assert ranks.pointers(x) == (0x6010_0000, 0x7010_0000)
    assert libraries.tables == [[0x6010_0000, 0x7010_0000, 1]]
    assert (x.local.shape, x.peers(1).world.value, str(x.peers(1).dtype.value)) == ((4, 8), 2, "bf16")
    with pytest.raises(ValueError, match="rank 0 gets its argument in its own process, of rank 1"):
        x.peers(0)


@pytest.mark.parametrize("name", ENGINES)
def test_signals_are_zero_on_all_ranks_before_anyone_signals(engine, name):
    libraries, ranks = engine(name)
    pads = ranks.signals(10)
    assert pads.element == "int64"
    waited = ("barrier_all", (0, 0x77)) if name == "NvshmemRanks" else ("allreduce", 0x9000, "sum", 0x77)
    assert libraries.calls[-4:] == ["zero", "synchronize", waited, "synchronize"]
    if name == "NcclRanks":
        assert libraries.calls[0] == ("register_window", "torch.uint8", WindowFlag.COLL_SYMMETRIC)


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("NvshmemRanks", {"status": InitStatus.STATUS_NOT_INITIALIZED}, "to be initialised .*, got STATUS_NOT_INITI"),
        ("NvshmemRanks", {"mapped": False}, "expected an address of each rank's memory, got none of rank 0"),
        ("NcclRanks", {"mapped": False}, "expected an address of each rank's memory, got none of rank 0"),
        ("NcclRanks", {"valid": False}, "expected an initialised communicator"),
        ("NcclRanks", {"has_peers": False}, "expected nccl4py 0.6 or later, got 0.3.1"),
    ],
)
def test_what_is_refused(engine, name, wrong, said):
    with pytest.raises(RuntimeError, match=said):
        engine(name, **wrong)[1].signals(1)


@pytest.mark.parametrize("name", ENGINES)
def test_a_type_that_kernels_do_not_have_is_refused(engine, name):
    _, ranks = engine(name)
    with pytest.raises(TypeError, match=f"{name}.allocate: argument 'dtype': expected a type that kernels have"):
        ranks.allocate(4, "torch.complex64")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (tlx_xdsl.NvshmemRanks, "expected nvshmem4py, got none: pip install nvshmem4py-cu12"),
        (lambda: tlx_xdsl.NcclRanks(None), "expected nccl4py, got none: pip install nccl4py"),
    ],
)
def test_without_the_library_it_is_refused_in_a_line(monkeypatch, make, said):
    for name in ("nvshmem", "nvshmem.core", "nccl", "nccl.core"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RuntimeError, match=said):
        make()


@pytest.mark.parametrize("name", ENGINES)
def test_kernels_get_the_tables(engine, torch, name):
    """A function of `kernels.comm` with tensors of the GPU: what reaches the driver."""
    _, ranks = engine(name)
    x = Tensor((64, 128), 0x1000, sys.modules["torch"].bfloat16, Device(0))
    all_reduce(x, ranks, x, algorithm="one_shot")
    (launch,) = torch.cuda.launches
    words = [struct.unpack("<Q", each)[0] for each in launch.parameters if len(each) == 8]
    assert words[:4] == [0x1000, 0x5000_1000, 0x5000_2000, 0x1000]
