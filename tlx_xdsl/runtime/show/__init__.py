"""Pages for notebooks of modules, kernels, storage maps and runs: HTML that needs no script, font or other file.

What is shown is passed in: nothing else of the runtime is imported.
"""
