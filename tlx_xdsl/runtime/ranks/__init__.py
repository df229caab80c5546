"""Several GPUs: who allocates memory that all of them reach, and what each of them gets of a launch."""
