"""torch.distributed and its symmetric memory, where there is neither: what is asked of them is recorded.

No GPU has run what is launched with it.
"""

import types
from dataclasses import dataclass, field


@dataclass
class FakeDistributed:
    """Two ranks of one host, of which this is rank 1, and how they may be wrong."""

    make: object
    """Makes a tensor: of a shape, a type and an address."""
    rank: int = 1
    world: int = 2
    backend: str = "CUDA"
    initialized: bool = True
    access: bool = True
    mapped: bool = True
    calls: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    allocated: int = 0

    def _empty(self, sizes, *, dtype, device):
        self.allocated += 1
        # Within a larger allocation, 64 bytes after its start.
        tensor = self.make(tuple(sizes), dtype, 0x7000_0000 + 0x10_0000 * self.allocated + 64)
        tensor.zero_ = lambda: self.calls.append("zero")
        return tensor

    def _rendezvous(self, tensor, group):
        self.calls.append(("rendezvous", group))
        start = tensor.data_ptr() - 64
        ptrs = [start - 0x1000_0000 * (self.rank - rank) for rank in range(self.world)]
        return types.SimpleNamespace(rank=self.rank, buffer_ptrs=ptrs if self.mapped else [0, *ptrs[1:]])

    def _table(self, numbers, *, dtype, device):
        self.tables.append(list(numbers))
        return self.make((len(numbers),), dtype, 0x5000_0000 + 4096 * len(self.tables))

    def install(self, torch, modules):
        """Put the stand-ins into a module `torch`, and all into `modules` (`sys.modules` with monkeypatch)."""
        group = types.SimpleNamespace(group_name="everyone")
        dist = types.ModuleType("torch.distributed")
        dist.is_available = lambda: True
        dist.is_initialized = lambda: self.initialized
        dist.group = types.SimpleNamespace(WORLD=group)
        dist.get_rank = lambda group: self.rank
        dist.get_world_size = lambda group: self.world
        dist.barrier = lambda group: self.calls.append("barrier")
        memory = types.ModuleType("torch.distributed._symmetric_memory")
        memory.empty, memory.rendezvous = self._empty, self._rendezvous
        memory.get_backend = lambda device: self.backend
        dist._symmetric_memory = memory
        torch.distributed = dist
        torch.__version__ = "2.11"
        torch.tensor = self._table
        torch.device = lambda kind, index: types.SimpleNamespace(type=kind, index=index)
        torch.cuda.synchronize = lambda device: self.calls.append("synchronize")
        torch.cuda.can_device_access_peer = lambda own, other: self.access
        modules("torch", torch)
        modules("torch.distributed", dist)
        modules("torch.distributed._symmetric_memory", memory)
