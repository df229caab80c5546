"""A corpus of texts that stock Triton prints: the ground truth of our parser and printer.

`cases` says what a kernel of the corpus is, `kernels` holds them by topic, `generate` has the installed Triton
compile them to TTIR and TTGIR, and `stock` has it read and print a text again. None of it needs a GPU.
"""
