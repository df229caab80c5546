"""What notebooks show of modules, kernels, storage maps and runs: HTML that needs no script, font or other file."""
