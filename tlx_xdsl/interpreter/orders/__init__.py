"""The orders of a launch that make a difference, one run for each.

What a kernel does depends on the order of its tasks, asynchronous operations and programs only where they meet at
something that several may change at once: global memory that is accessed by atomic operations, named barriers with
more users than a phase takes, and the launch of programs that others may cancel. All other accesses are ordered by
barriers, or are races, which the clocks report in any order; and what arrives at an mbarrier, or waits there, is
known to be of one phase, or is reported.

`interpreter/touches.py` says which steps depend on each other, `reduction` which orders are left to run, and `launch`
runs one.
"""
