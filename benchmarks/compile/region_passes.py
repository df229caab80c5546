"""The CPU time of the two stock passes that follow which bytes of shared memory each view of a buffer may touch.

They are at the beginning of stock Triton's lowering to LLVM IR, after the passes that allocate. Here they run on
their own, on the TTGIR that stock lowers.
"""

import resource
import tempfile
from pathlib import Path

from tlx_xdsl.backend import BackendOptions, installed_triton_version
from tlx_xdsl.backend.stock_passes import StockPass, allocating_passes
from tlx_xdsl.backend.triton_api import StockModule

CAPABILITY = 90


def cpu_ms():
    """CPU time of this process and of the children that it waited for."""
    usage = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in usage) * 1e3


def region_times(ttgir):
    """Return the CPU time in ms of each pass, by its name; before 3.9 the second one is part of a conversion."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ttgir"
        path.write_text(ttgir)
        module = StockModule(path, BackendOptions())
    ptx_version = 80  # Of no concern to these passes.
    module.run_passes(allocating_passes(CAPABILITY, ptx_version, installed_triton_version()))
    passes = (
        StockPass("nvidia.ttnvgpuir", "proxy_fence_insertion", "fences between the proxies", (CAPABILITY,)),
        StockPass("nvidia.ttgpuir", "membar", "barriers", (CAPABILITY, ptx_version), optional=True),
    )
    times = {}
    for stock_pass in passes:
        start = cpu_ms()
        module.run_passes([stock_pass])
        times[stock_pass.name] = cpu_ms() - start
    return times
