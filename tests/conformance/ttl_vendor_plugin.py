"""A plug-in of pytest: `ttl` is our language, and `ttnn` makes tensors of PyTorch, for tests written for a device."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from tlx_xdsl.ttl import language as ttl


def _from_torch(tensor: torch.Tensor, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    return tensor.to(dtype or tensor.dtype, copy=True)


def _ttnn() -> ModuleType:
    ttnn = module_from_spec(ModuleSpec("ttnn", None))
    device = SimpleNamespace(compute_with_storage_grid_size=lambda: SimpleNamespace(x=8, y=8))
    vars(ttnn).update(
        __file__=__file__,
        from_torch=_from_torch,
        to_torch=lambda tensor: tensor,
        to_memory_config=lambda tensor, memory_config: tensor,
        open_device=lambda device_id: device,
        close_device=lambda device: None,
        bfloat16=torch.bfloat16,
        float32=torch.float32,
        TILE_LAYOUT="TILE",
        ROW_MAJOR_LAYOUT="ROW_MAJOR",
        DRAM_MEMORY_CONFIG="DRAM",
        L1_MEMORY_CONFIG="L1",
        Tensor=torch.Tensor,
    )
    return ttnn


sys.modules["ttl"] = ttl
sys.modules["ttnn"] = _ttnn()
