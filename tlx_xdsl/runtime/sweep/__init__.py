"""Sweeps: many configurations of kernels, compiled on any `concurrent.futures.Executor`, with a verdict for each.

`compile_many` is the entry point; docs/sweeps.md says how to use it.
"""

from tlx_xdsl.runtime.sweep.jobs import Job, sweep_jobs
from tlx_xdsl.runtime.sweep.measure import bench
from tlx_xdsl.runtime.sweep.report import JobResult, SweepReport
from tlx_xdsl.runtime.sweep.scheduler import compile_many

__all__ = ["Job", "JobResult", "SweepReport", "bench", "compile_many", "sweep_jobs"]
