"""The engine of ranks that torchrun starts: torch's symmetric memory, with its CUDA backend.

    torch.distributed.init_process_group("nccl")
    ranks = tlx_xdsl.TorchRanks()
    x = ranks.allocate((1024,), torch.bfloat16)
    kernel[grid](x.peers(ranks.rank), ...)

Only addresses are taken of torch: no NVLink multicast, no signal pads of its, no barriers of its on the GPU.
"""

# torch is no dependency: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from .device_tensor import DeviceRanks, SymmetricTensor, element_of, sizes_of, symmetric_tensor


class TorchRanks(DeviceRanks):
    """The engine (`engine.Ranks`) of the ranks of a process group of torch's, by default of all.

    limit_ns: nanoseconds after which kernels of `tlx_xdsl.kernels.comm` stop waiting for another rank; None for never.

    Raises RuntimeError without torch's symmetric memory (torch 2.9), without a process group, with another backend
    than CUDA, and where the GPU can't reach the memory of another one of this host.
    """

    def __init__(self, group: Any = None, *, limit_ns: int | None = None):
        torch: Any = importlib.import_module("torch")
        dist: Any = importlib.import_module("torch.distributed")

        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError("TorchRanks: expected a process group: run under torchrun, and init_process_group first")
        try:
            memory: Any = importlib.import_module("torch.distributed._symmetric_memory")
        except ImportError as error:
            raise RuntimeError(f"TorchRanks: expected torch 2.9 or later, got {torch.__version__}") from error
        self._torch, self._dist, self._memory = torch, dist, memory
        self.limit_ns = limit_ns
        self.group: Any = dist.group.WORLD if group is None else group
        self.device: Any = torch.device("cuda", torch.cuda.current_device())
        self._check_backend()
        self._check_access()

    def _check_backend(self) -> None:
        get = getattr(self._memory, "get_backend", None)
        found = None if get is None else get(self.device)
        if found != "CUDA":
            why = (
                ": with NVSHMEM's, barriers and signals of torch's handles do nothing (pytorch #191858)"
                if found == "NVSHMEM"
                else ""
            )
            raise RuntimeError(
                f"TorchRanks: expected the backend CUDA of torch's symmetric memory, got {found}{why}; call "
                "torch.distributed._symmetric_memory.set_backend('CUDA') before anything is allocated there"
            )

    def _check_access(self) -> None:
        cuda, own = self._torch.cuda, self.device.index
        for other in range(cuda.device_count()):
            if other != own and not cuda.can_device_access_peer(own, other):
                raise RuntimeError(
                    f"TorchRanks: expected peer access between the GPUs, got none from cuda:{own} to cuda:{other}: "
                    "make only GPUs visible (CUDA_VISIBLE_DEVICES) that NVLink or PCIe joins"
                )

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return int(self._dist.get_world_size(self.group))

    @property
    def rank(self) -> int:
        """The rank of this process in the group."""
        return int(self._dist.get_rank(self.group))

    @property
    def name(self) -> str:
        """The name of the group, by which torch finds it."""
        return str(self.group.group_name)

    def allocate(self, shape: int | Sequence[int], dtype: Any) -> SymmetricTensor:
        """Allocate memory that all ranks reach; `dtype` is torch's. All ranks call this, in one order.

        Raises TypeError for a type that kernels do not have, RuntimeError where a rank's memory has no address here.
        """
        element = element_of("TorchRanks", dtype)
        local = self._memory.empty(sizes_of(shape), dtype=dtype, device=self.device)
        handle = self._memory.rendezvous(local, self.group)
        starts = [int(address) for address in handle.buffer_ptrs]
        # torch may place a tensor within a larger allocation, at the same distance on each rank.
        distance = int(local.data_ptr()) - starts[self.rank]
        if not all(starts) or distance < 0:
            raise RuntimeError(f"TorchRanks.allocate: expected an address of each rank's memory, got {starts}")
        addresses = [start + distance for start in starts]
        return symmetric_tensor("TorchRanks", local, addresses, self.rank, self.device, handle, element)

    def barrier(self) -> None:
        """Wait on the host until all ranks have come here, and what their GPUs were given before has ended."""
        self._torch.cuda.synchronize(self.device)
        self._dist.barrier(self.group)
