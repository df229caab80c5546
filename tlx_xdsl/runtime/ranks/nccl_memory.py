"""The engine of ranks whose memory NCCL maps, by its symmetric windows and nccl4py. No GPU of ours has run it.

    communicator = nccl.core.Communicator.init(nranks=..., rank=..., unique_id=...)
    ranks = tlx_xdsl.NcclRanks(communicator)
    x = ranks.allocate((1024,), torch.bfloat16)

Only addresses are taken of NCCL (`ncclCommWindowRegister`, `ncclGetPeerDevicePointer`): kernels load, store and signal
as with any other engine, so all ranks must be in one load/store team (LSA): of one host, or joined by NVLink. What its
device API has for other hosts (GIN) is not used.

Written to the functions of nccl4py 0.6.0 (`nccl/core`).
"""

# torch and nccl4py are no dependencies: what comes from them is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from .device_tensor import DeviceRanks, SymmetricTensor, element_of, sizes_of, symmetric_tensor


class NcclRanks(DeviceRanks):
    """The engine (`engine.Ranks`) of the ranks of a communicator of nccl4py.

    limit_ns: nanoseconds after which kernels of `tlx_xdsl.kernels.comm` stop waiting for another rank; None for never.

    Raises RuntimeError without nccl4py, for one without peers' addresses, and for a communicator that is not valid.
    """

    def __init__(self, communicator: Any, *, limit_ns: int | None = None):
        try:
            core: Any = importlib.import_module("nccl.core")
        except ImportError as error:
            raise RuntimeError("NcclRanks: expected nccl4py, got none: pip install nccl4py[cu12]") from error
        if not hasattr(core.RegisteredWindowHandle, "get_peer_device_pointer"):
            raise RuntimeError(f"NcclRanks: expected nccl4py 0.6 or later, got {core.__version__}")
        if not communicator.is_valid:
            raise RuntimeError("NcclRanks: expected an initialised communicator, got one that is not valid")
        self._core, self._communicator = core, communicator
        self._torch: Any = importlib.import_module("torch")
        self.limit_ns = limit_ns
        self._token: Any = None

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return int(self._communicator.nranks)

    @property
    def rank(self) -> int:
        """The rank of this process in the communicator."""
        return int(self._communicator.rank)

    def allocate(self, shape: int | Sequence[int], dtype: Any) -> SymmetricTensor:
        """Allocate memory that all ranks reach; `dtype` is torch's. All ranks call this, in one order.

        Raises TypeError for a type that kernels do not have, RuntimeError where a rank's memory has no address here.
        """
        element, core = element_of("NcclRanks", dtype), self._core
        local = core.torch.empty(sizes_of(shape), dtype=dtype)
        # As bytes: NCCL has no type for some that kernels have.
        window = self._communicator.register_window(local.view(self._torch.uint8), core.WindowFlag.COLL_SYMMETRIC)
        # The own memory has one address: two would need fences for aliases (PTX ISA, `fence.proxy.alias`).
        addresses = [
            int(local.data_ptr()) if rank == self.rank else window.get_peer_device_pointer(rank)
            for rank in range(self.world_size)
        ]
        return symmetric_tensor("NcclRanks", local, addresses, self.rank, local.device, window, element)

    def barrier(self) -> None:
        """Wait on the host until all ranks have come here, and what their GPUs were given before has ended.

        NCCL has no barrier of its own: the sum of one number of each rank is one.
        """
        torch = self._torch
        if self._token is None:
            self._token = torch.zeros(1, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()
        stream = int(torch.cuda.current_stream().cuda_stream)
        self._communicator.allreduce(self._token, self._token, self._core.SUM, stream=stream)
        torch.cuda.synchronize()
