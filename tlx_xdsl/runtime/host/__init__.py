"""Launches on arrays in this process's memory: the kernel, the options of a launch, tuning. A wing runs them."""
