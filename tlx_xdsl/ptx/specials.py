"""Special registers (PTX ISA, "Special Registers"), with their sizes in bytes."""

from __future__ import annotations

SPECIALS = {
    **{f"%{name}.{axis}": 4 for name in (
        "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"
    ) for axis in "xyz"},
    "%laneid": 4, "%warpid": 4, "%nwarpid": 4, "%smid": 4, "%nsmid": 4, "%gridid": 8, "%clock": 4, "%clock64": 8,
    "%globaltimer": 8, "%globaltimer_lo": 4, "%globaltimer_hi": 4, "%cluster_ctarank": 4, "%cluster_nctarank": 4,
    "%lanemask_eq": 4, "%lanemask_lt": 4, "%lanemask_le": 4, "%lanemask_gt": 4, "%lanemask_ge": 4,
    "%dynamic_smem_size": 4, "%total_smem_size": 4, "%is_explicit_cluster": 4, "WARP_SZ": 4,
}  # fmt: skip
"""The registers that are known."""
