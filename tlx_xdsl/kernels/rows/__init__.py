"""Kernels of rows: softmax, norms, cross-entropy, and elementwise ones."""
