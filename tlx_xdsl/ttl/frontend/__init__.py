"""Frontend of TTL: kernels of `tlx_xdsl.ttl.language` become modules of the `ttl` dialect."""

from __future__ import annotations

from .compile import compile_kernel as compile_kernel
