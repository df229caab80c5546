"""Sweeps: many configurations of kernels, compiled on any `concurrent.futures.Executor`, with a verdict for each.

`compile_many` is the door; docs/sweeps.md says how to use it.
"""

from tlx_xdsl.runtime.sweep.compile_many import compile_many
from tlx_xdsl.runtime.sweep.jobs import Job, sweep_jobs
from tlx_xdsl.runtime.sweep.report import JobResult, SweepReport

__all__ = ["Job", "JobResult", "SweepReport", "compile_many", "sweep_jobs"]
