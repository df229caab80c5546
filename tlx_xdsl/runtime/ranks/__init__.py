"""Several GPUs: memory that all of them reach, and the arguments of a launch on each."""
