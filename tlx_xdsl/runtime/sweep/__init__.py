"""Sweeps: many configurations of kernels, compiled on any `concurrent.futures.Executor`, with a verdict for each.

`compile_many` is the entry point; docs/sweeps.md says how to use it.
"""

from .jobs import Job, sweep_jobs
from .measure import bench
from .report import JobResult, SweepReport
from .scheduler import compile_many

__all__ = ["Job", "JobResult", "SweepReport", "bench", "compile_many", "sweep_jobs"]
