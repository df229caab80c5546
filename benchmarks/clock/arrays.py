"""Arrays of problems: tensors of a GPU with random values, or arrays of the CPU that nothing touches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SPAN = 1 << 16
"""Bytes of arrays of integers whose values are kept for the clock: addresses and branches rest on them."""


class Untouched:
    """Arrays of the CPU whose memory is not used, for what looks at types and shapes only."""

    device = None

    def random(self, shape: Sequence[int], dtype: str) -> Any:
        """An array."""
        return self.empty(shape, dtype)

    def ones(self, shape: Sequence[int], dtype: str) -> Any:
        """An array of ones."""
        found = self.empty(shape, dtype)
        found[...] = 1
        return found

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """An array with anything in it."""
        import numpy as np

        from tlx_xdsl.runtime.driver.host_values import numpy_dtype

        return np.empty(tuple(shape), numpy_dtype(dtype))

    def numbers(self, values: Sequence[int], dtype: str) -> Any:
        """An array of integers."""
        found = self.empty((len(values),), dtype)
        found[:] = values
        return found

    def attend(self, q: Any, k: Any, v: Any, out: Any, lse: Any, causal: bool) -> None:
        """Leave the results of attention as they are."""

    def transposed(self, array: Any) -> Any:
        """A matrix by columns."""
        return array.T

    def joined(self, parts: Sequence[Any]) -> Any:
        """Rows under each other."""
        import numpy as np

        return np.concatenate(parts)


class OnGpu:
    """Tensors of torch with normal random values; outputs are NaN."""

    def __init__(self) -> None:
        import torch

        self.torch, self.device = torch, torch.device("cuda", 0)
        self.types = {
            "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "i32": torch.int32,
            "i64": torch.int64, "fp8e4nv": torch.float8_e4m3fn,
        }  # fmt: skip

    def random(self, shape: Sequence[int], dtype: str) -> Any:
        """A tensor of normal values."""
        kind = self.types[dtype]
        first = self.torch.float32 if dtype == "fp8e4nv" else kind
        return self.torch.randn(tuple(shape), device=self.device, dtype=first).to(kind)

    def ones(self, shape: Sequence[int], dtype: str) -> Any:
        """A tensor of ones."""
        return self.torch.ones(tuple(shape), device=self.device, dtype=self.types[dtype])

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """A tensor of NaN."""
        return self.torch.full(tuple(shape), float("nan"), device=self.device, dtype=self.types[dtype])

    def numbers(self, values: Sequence[int], dtype: str) -> Any:
        """A tensor of integers."""
        return self.torch.tensor(list(values), device=self.device, dtype=self.types[dtype])

    def attend(self, q: Any, k: Any, v: Any, out: Any, lse: Any, causal: bool) -> None:
        """Write the results of attention, which its gradients start from."""
        scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
        if causal:
            scores.masked_fill_(self.torch.ones_like(scores[0, 0], dtype=self.torch.bool).triu(1), float("-inf"))
        lse.copy_(scores.logsumexp(-1))
        out.copy_(scores.softmax(-1) @ v.float())

    def transposed(self, tensor: Any) -> Any:
        """A matrix by columns."""
        return tensor.T

    def joined(self, parts: Sequence[Any]) -> Any:
        """Rows under each other."""
        return self.torch.cat(list(parts))
