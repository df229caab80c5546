"""The engine of ranks whose memory NVSHMEM maps, by nvshmem4py. No GPU of ours has run it.

    nvshmem.core.init(device=..., uid=..., rank=..., nranks=..., initializer_method="uid")
    ranks = tlx_xdsl.NvshmemRanks()
    x = ranks.allocate((1024,), torch.bfloat16)

Only addresses are taken of NVSHMEM (`nvshmem_ptr`): kernels load, store and signal as with any other engine, so all
ranks must be those of one host, or joined by NVLink. Its puts and signals, which go to other hosts, are not used.

Written to the functions of nvshmem4py 0.4.1 (wheel `nvshmem4py-cu12`, `nvshmem/core`).
"""

# torch and nvshmem4py are no dependencies: what comes from them is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from .device_tensor import DeviceRanks, SymmetricTensor, element_of, sizes_of, symmetric_tensor


class NvshmemRanks(DeviceRanks):
    """The engine (`engine.Ranks`) of all processing elements of NVSHMEM, which has been initialised.

    limit_ns: nanoseconds after which kernels of `tlx_xdsl.kernels.comm` stop waiting for another rank; None for never.

    Raises RuntimeError without nvshmem4py, and before `nvshmem.core.init`.
    """

    def __init__(self, *, limit_ns: int | None = None):
        try:
            core: Any = importlib.import_module("nvshmem.core")
        except ImportError as error:
            raise RuntimeError("NvshmemRanks: expected nvshmem4py, got none: pip install nvshmem4py-cu12") from error
        status = core.init_status()
        if status.name not in ("STATUS_IS_INITIALIZED", "STATUS_LIMITED_MPG", "STATUS_FULL_MPG"):
            raise RuntimeError(
                f"NvshmemRanks: expected NVSHMEM to be initialised (nvshmem.core.init), got {status.name}"
            )
        self._core = core
        self._torch: Any = importlib.import_module("torch")
        self.limit_ns = limit_ns

    @property
    def world_size(self) -> int:
        """The number of processing elements."""
        return int(self._core.n_pes())

    @property
    def rank(self) -> int:
        """The number of this one."""
        return int(self._core.my_pe())

    def allocate(self, shape: int | Sequence[int], dtype: Any) -> SymmetricTensor:
        """Allocate memory that all ranks reach; `dtype` is torch's. All ranks call this, in one order.

        Raises TypeError for a type that kernels do not have, RuntimeError where a rank's memory has no address here.
        """
        element = element_of("NvshmemRanks", dtype)
        local = self._core.tensor(tuple(sizes_of(shape)), dtype=dtype)
        others = [local if rank == self.rank else self._peer(local, rank) for rank in range(self.world_size)]
        addresses = [None if each is None else int(each.data_ptr()) for each in others]
        return symmetric_tensor("NvshmemRanks", local, addresses, self.rank, local.device, others, element)

    def _peer(self, local: Any, rank: int) -> Any:
        try:
            return self._core.get_peer_tensor(local, rank)
        except self._core.NvshmemError:  # what is said where nvshmem_ptr has none
            return None

    def barrier(self) -> None:
        """Wait on the host until all ranks have come here, and what their GPUs were given before has ended."""
        cuda = self._torch.cuda
        cuda.synchronize()
        self._core.barrier_all(stream=self._core.NvshmemStream(cuda.current_stream()))
        cuda.synchronize()
