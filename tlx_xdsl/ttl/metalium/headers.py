"""The headers of TT-Metalium that a kernel may include here; `include/metalium.h` stands for all of them.

Two versions: that of ttnn 0.81, and that of December 2025, which has `compute_kernel_api/`.
"""

from __future__ import annotations

import re

from .errors import MetaliumError

_COMPUTE = (
    "bcast.h",
    "common.h",
    "eltwise_binary.h",
    "eltwise_binary_sfpu.h",
    "matmul.h",
    "reduce.h",
    "tile_move_copy.h",
    "copy_dest_values.h",
    "binary_max_min.h",
    "pack.h",
    "eltwise_unary/eltwise_unary.h",
    "eltwise_unary/exp.h",
    "eltwise_unary/fill.h",
    "eltwise_unary/gelu.h",
    "eltwise_unary/negative.h",
    "eltwise_unary/recip.h",
    "eltwise_unary/relu.h",
    "eltwise_unary/rsqrt.h",
    "eltwise_unary/sqrt.h",
)
"""In both versions."""

HEADERS = {
    "cstdint",
    "api/dataflow/dataflow_api.h",
    "api/tensor/tensor_accessor.h",
    "dataflow_api.h",
    *(f"{folder}/{name}" for folder in ("api/compute", "compute_kernel_api") for name in _COMPUTE),
    "api/compute/compute_kernel_api.h",
    "api/compute/compute_kernel_hw_startup.h",
    "api/compute/reconfig_data_format.h",
    "api/compute/cb_api.h",
    "api/compute/reg_api.h",
    "api/compute/transpose.h",
    "compute_kernel_api.h",
    "compute_kernel_api/cb_api.h",
    "compute_kernel_api/reconfig_data_format.h",
    "compute_kernel_api/reg_api.h",
    "compute_kernel_api/transpose_wh.h",
}

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"].*$', re.MULTILINE)


def without_includes(name: str, text: str) -> str:
    """The text of a kernel with empty lines for the headers that it includes.

    Raises MetaliumError for one that the machine does not have.
    """

    def known(match: re.Match[str]) -> str:
        if match[1] not in HEADERS:
            raise MetaliumError(
                f"the machine has no header '{match[1]}'", name, text.count("\n", 0, match.start(1)) + 1
            )
        return ""

    return _INCLUDE.sub(known, text)
