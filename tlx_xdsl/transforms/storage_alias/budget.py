"""`tlx-storage-budget`: refuse kernels whose buffers, threads or registers can't fit their target. Changes nothing.

Without it the driver would refuse the launch, and say neither why nor where. An allocation is counted as the storage
map does; clusters whose blocks share tensors are left to the driver.

Example: `kernel.py:36:15: error: 'matmul' needs 245,848 B of shared memory, sm_90a has 232,448`, and a note for each of
the largest allocations.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.launch_budget import check_launch
from tlx_xdsl.analysis.storage_budget import check_budget
from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.dialects.base import module_integer

from ..rewriting import Pass


class StorageBudgetPass(Pass):
    """Report every function that is over budget: as an error, or as a warning when stock Triton may make it fit."""

    name = "tlx-storage-budget"

    def run(self, op: ModuleOp) -> None:
        """Check the functions of a module that says for which target it is."""
        if "ttg.target" not in op.attributes:
            return
        check_launch(op)
        if (module_integer(op, "ttg.num-ctas") or 1) == 1:
            for map_ in storage_maps(op):
                check_budget(map_)
