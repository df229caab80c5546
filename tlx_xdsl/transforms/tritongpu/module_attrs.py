"""The module attributes by which Triton knows the launch: warps, CTAs and target."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from tlx_xdsl.text.diagnostics import error_at

NUM_WARPS = "ttg.num-warps"
NUM_CTAS = "ttg.num-ctas"
TARGET = "ttg.target"
THREADS_PER_WARP = "ttg.threads-per-warp"


def num_warps(module: ModuleOp) -> int:
    """Warps of the kernel outside of partitions.

    Raises CompilationError when the module does not say.
    """
    attribute = module.attributes.get(NUM_WARPS)
    if not isinstance(attribute, IntegerAttr):
        raise error_at(module, f"the module needs the attribute '{NUM_WARPS}'; the pass triton-tlx-fixup sets it")
    return attribute.value.data
