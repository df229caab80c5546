"""From kernels of `tlx_xdsl.language.ttl` to modules of the `ttl` dialect."""

from __future__ import annotations

from tlx_xdsl.frontend.ttl.compile import compile_kernel as compile_kernel
