"""torch's symmetric memory as the engine, on stand-ins for it and for the CUDA driver: no GPU has run this."""

import struct
import sys

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.kernels.stand_in_torch import Device, Dtype, Tensor
from tests.unit.runtime.jit.jit_kernels import DType, FakeTensor
from tests.unit.runtime.ranks.fake_symmetric_memory import FakeDistributed
from tlx_xdsl.kernels.comm import (
    Exchange,
    all_gather_gemm,
    all_reduce,
    check_waits,
    gemm_all_reduce,
    gemm_reduce_scatter,
    launches,
)
from tlx_xdsl.runtime.ranks.simulated import SimulatedRanks
from tlx_xdsl.runtime.ranks.torch_memory import TorchRanks


@pytest.fixture
def fake(torch, monkeypatch):
    module = sys.modules["torch"]
    module.int64, module.bfloat16 = Dtype("torch.int64"), Dtype("torch.bfloat16")
    fake = FakeDistributed(lambda shape, dtype, address: Tensor(shape, address, dtype))
    fake.install(module, lambda name, value: monkeypatch.setitem(sys.modules, name, value))
    return fake


def test_addresses_of_all_ranks(fake):
    """The tensor lies 64 bytes within its allocation, on each rank."""
    ranks = TorchRanks()
    assert (ranks.rank, ranks.world_size, ranks.name) == (1, 2, "everyone")
    x = ranks.allocate((4, 8), sys.modules["torch"].bfloat16)
    assert ranks.pointers(x) == (0x6010_0040, 0x7010_0040)
    assert fake.tables == [[*ranks.pointers(x), 1]]
    peers = x.peers(1)
    assert (peers.table.address, peers.world.value, str(peers.dtype.value)) == (0x5000_1000, 2, "bf16")
    with pytest.raises(ValueError, match="rank 0 gets its argument in its own process, of rank 1"):
        x.peers(0)


def test_signals_are_zero_on_all_ranks_before_anyone_signals(fake):
    TorchRanks().signals(10)
    assert fake.calls[1:] == ["zero", "synchronize", "barrier"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"initialized": False}, "expected a process group: run under torchrun"),
        ({"backend": "NVSHMEM"}, "expected the backend CUDA .*, got NVSHMEM: .* do nothing .pytorch #191858."),
        ({"backend": None}, "got None"),
        ({"access": False}, "expected peer access between the GPUs, got none from cuda:0 to cuda:1"),
        ({"mapped": False}, "expected an address of each rank's memory, got .0, "),
    ],
)
def test_what_is_refused(fake, changes, said):
    for name, value in changes.items():
        setattr(fake, name, value)
    with pytest.raises(RuntimeError, match=said):
        TorchRanks().signals(1)


def test_the_simulated_engine_has_the_same_functions():
    ranks = SimulatedRanks(3)
    x, pads = ranks.allocate((2, 4), "bf16"), ranks.signals(5)
    assert (ranks.world_size, ranks.rank) == (3, None)
    assert (x[2].shape, pads[0].dtype.name, ranks.pointers(x)) == ((2, 4), "int64", (0, 0, 0))
    assert (x.peers(2).table[-1], x.peers(2).world.value) == (2, 3)
    ranks.barrier()


def tensor(*shape, address=0x1000):
    return Tensor(shape, address, sys.modules["torch"].bfloat16, Device(0))


def words(launch):
    """The parameters of a launch that have 8 bytes."""
    return [struct.unpack("<Q", each)[0] for each in launch.parameters if len(each) == 8]


def test_a_repeated_call_allocates_once(fake, torch):
    """A function of `kernels.comm` with tensors of the GPU: what reaches the driver."""
    ranks = TorchRanks()
    x = tensor(64, 128)
    for address in (0x1000, 0x2000):
        all_reduce(tensor(64, 128, address=address), ranks, x)
    first, second = torch.cuda.launches
    assert fake.allocated == 2
    # x, the table of the staging memory, that of the pads, and the result.
    assert [words(each)[:4] for each in (first, second)] == [
        [address, 0x5000_1000, 0x5000_2000, 0x1000] for address in (0x1000, 0x2000)
    ]
    assert first.grid == (4, 1, 1)


def test_who_waits_in_vain_is_named(fake, torch):
    """The kernel has a limit, and what it writes becomes an error."""
    ranks = TorchRanks(limit_ns=10**9)
    all_reduce(tensor(64, 128), ranks, algorithm="one_shot")
    (pads,) = [each for _, each, _ in launches._PADS[ranks]]
    written = [0, 0, 0, 0]
    pads.local.__class__.tolist = lambda self: written
    try:
        check_waits(ranks)
        written[:] = 1, 2 + 1, 7, 6
        said = "all_reduce_one_shot: rank 1 gave up waiting for rank 0: signal 3 is 6, and was expected to be 7"
        with pytest.raises(RuntimeError, match=said):
            check_waits(ranks)
    finally:
        del pads.local.__class__.tolist


def test_products_reach_the_driver(fake, torch):
    ranks = TorchRanks()
    a, b = tensor(1024, 512), tensor(512, 256)
    assert gemm_reduce_scatter(a, b, ranks).shape == (512, 256)
    assert all_gather_gemm(a, b, ranks).shape == (2048, 256)
    assert gemm_all_reduce(a, b, ranks).shape == (1024, 256)
    assert [each.grid[0] for each in torch.cuda.launches] == [16, 16, 16, 64]
    # TMA reads what others store to this rank: a tensor map of its own memory.
    gathered = fake.tables[2][1]
    maps = [struct.unpack_from("<Q", each)[0] for each in torch.cuda.launches[1].parameters if len(each) == 128]
    assert gathered in maps


def test_an_exchange_reaches_the_driver(fake, torch):
    module = sys.modules["torch"]
    module.int32 = Dtype("torch.int32")
    x, experts = tensor(16, 64), Tensor((16, 2), 0x9000, module.int32)
    exchange = Exchange(TorchRanks(), tokens=16, width=64, choices=2, experts=4, like=x)
    received = exchange.dispatch(x, experts)
    assert [each.shape for each in received] == [(2, 32, 64), (2, 32), (2,)]
    assert exchange.combine(received.rows, tensor(16, 2, address=0xA000)).shape == (16, 64)
    assert [each.grid[0] for each in torch.cuda.launches] == [1, 32, 32]


@tlx_xdsl.jit
def stores_to_the_next(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    to = (tlx.rank(x) + 1) % tlx.world_size(x)
    tl.store(tlx.peer(x, to) + offsets, tl.load(out + offsets, offsets < n), offsets < n)


@pytest.mark.backend
def test_a_kernel_of_a_user_is_launched_through_triton(fake, make_cuda, monkeypatch, tmp_path):
    """`kernel[grid](x.peers(rank), ...)`: a tuple with constants within, through Triton's specialisation."""
    from triton import knobs

    from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
    from tlx_xdsl.runtime.launch import launcher
    from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver

    library = make_cuda()
    library._cuModuleGetFunction = lambda out, module, name: out.__setitem__(0, 0xF0)
    library._cuModuleLoadData = lambda out, image: out.__setitem__(0, 0xD0)
    library.parameter_sizes = [8, 8, 4, 8, 8]
    made = CudaDriver(library.library)
    monkeypatch.setattr(launcher, "default_driver", lambda: made)
    fake.make = lambda shape, dtype, address: FakeTensor(*shape, dtype=DType(str(dtype)[6:], 2), address=address)
    x = TorchRanks().allocate(64, sys.modules["torch"].bfloat16)
    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(tmp_path)
        bound = stores_to_the_next.bind((1,), x.peers(1), FakeTensor(64, address=64), 60, BLOCK=64, num_warps=1)
        bound()
    (launch,) = library.launches
    assert launch.parameters[:2] == [struct.pack("<Q", 0x5000_1000), struct.pack("<Q", 64)]
