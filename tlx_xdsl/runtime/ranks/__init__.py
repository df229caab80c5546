"""Several GPUs: who allocates memory that all of them reach, and how a launch on all of them is told apart."""
