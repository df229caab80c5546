"""nvshmem4py and nccl4py where there is neither: functions with their signatures, which record what is asked of them.

The signatures are those of nvshmem4py-cu12 0.4.1 (`nvshmem/core`) and nccl4py 0.6.0 (`nccl/core`). No GPU has run what
is launched with them.
"""

import enum
import types
from dataclasses import dataclass, field

from tests.unit.kernels.stand_in_torch import Device, Dtype, Tensor

OTHER = 0x1000_0000
"""The distance from the memory of a rank to that of the one before, as it is mapped here."""


class InitStatus(enum.IntEnum):
    STATUS_NOT_INITIALIZED = 0
    STATUS_IS_INITIALIZED = 2


class WindowFlag(enum.IntFlag):
    DEFAULT = 0
    COLL_SYMMETRIC = 1


class NvshmemError(Exception):
    pass


@dataclass
class Libraries:
    """Two ranks, of which this is rank 1, and how they may be wrong."""

    rank: int = 1
    world: int = 2
    status: InitStatus = InitStatus.STATUS_IS_INITIALIZED
    mapped: bool = True
    valid: bool = True
    has_peers: bool = True
    calls: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    allocated: int = 0

    def _tensor(self, shape, dtype):
        self.allocated += 1
        made = Tensor(tuple(shape), 0x7000_0000 + 0x10_0000 * self.allocated, dtype, Device(0))
        made.zero_ = lambda: self.calls.append("zero")
        return made

    def _table(self, numbers, *, dtype, device):
        self.tables.append(list(numbers))
        return Tensor((len(numbers),), 0x5000_0000 + 4096 * len(self.tables), dtype, Device(0))

    def install_torch(self, torch, modules):
        """Put what engines need of torch into a module."""
        torch.tensor, torch.uint8, torch.int32 = self._table, Dtype("torch.uint8"), Dtype("torch.int32")
        torch.int64, torch.bfloat16 = Dtype("torch.int64"), Dtype("torch.bfloat16")
        torch.zeros = lambda count, *, dtype, device: Tensor((count,), 0x9000, dtype, Device(0))
        torch.cuda.synchronize = lambda: self.calls.append("synchronize")
        torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=0x77)
        modules("torch", torch)

    # nvshmem.core ----------------------------------------------------------------------------------------------------

    def install_nvshmem(self, modules):
        """Put a module `nvshmem.core` into `modules`."""
        core = types.ModuleType("nvshmem.core")

        def tensor(shape, dtype=None, release=False, morder="C", except_on_del=True):
            return self._tensor(shape, dtype)

        def get_peer_tensor(tensor, peer_pe=None):
            if not self.mapped:
                raise NvshmemError("Failed to retrieve peer buffer")
            return types.SimpleNamespace(data_ptr=lambda: tensor.data_ptr() + OTHER * (peer_pe - self.rank))

        def barrier_all(stream=None):
            self.calls.append(("barrier_all", stream.__cuda_stream__()))

        class NvshmemStream:
            def __init__(self, pt_stream):
                self.handle = pt_stream.cuda_stream

            def __cuda_stream__(self):
                return (0, self.handle)

        core.tensor, core.get_peer_tensor, core.barrier_all = tensor, get_peer_tensor, barrier_all
        core.NvshmemStream, core.NvshmemError = NvshmemStream, NvshmemError
        core.my_pe, core.n_pes, core.init_status = lambda: self.rank, lambda: self.world, lambda: self.status
        modules("nvshmem", types.ModuleType("nvshmem"))
        modules("nvshmem.core", core)

    # nccl.core -------------------------------------------------------------------------------------------------------

    def install_nccl(self, modules):
        """Put a module `nccl.core` into `modules`; gives a communicator."""
        libraries, core = self, types.ModuleType("nccl.core")

        class RegisteredWindowHandle:
            def __init__(self, start):
                self.start = start

            def get_peer_device_pointer(self, peer, offset=0):
                assert peer != libraries.rank, "the own memory would have two addresses"
                return self.start + OTHER * (peer - libraries.rank) + offset if libraries.mapped else None

        class Communicator:
            nranks, rank = property(lambda _: libraries.world), property(lambda _: libraries.rank)
            is_valid = property(lambda _: libraries.valid)

            def register_window(self, buffer, flags=None):
                libraries.calls.append(("register_window", str(buffer.dtype), flags))
                return RegisteredWindowHandle(buffer.data_ptr())

            def allreduce(self, sendbuf, recvbuf, op, *, stream=None, config=None):
                libraries.calls.append(("allreduce", sendbuf.data_ptr(), op, stream))

        def empty(*size, dtype=None, device=None, morder="C"):
            return self._tensor(size[0] if isinstance(size[0], (tuple, list)) else size, dtype)

        core.torch = types.SimpleNamespace(empty=empty)
        core.WindowFlag, core.SUM, core.__version__ = WindowFlag, "sum", "0.6.0" if self.has_peers else "0.3.1"
        core.RegisteredWindowHandle = RegisteredWindowHandle if self.has_peers else type("Handle", (), {})
        modules("nccl", types.ModuleType("nccl"))
        modules("nccl.core", core)
        return Communicator()
