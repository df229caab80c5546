"""Kernels to import: what a program calls, with its tensors, and what a reader can start from.

- `gemm.gemm(a, b)`: products in half precision, by rows or by columns, on Hopper
- `attention.attention_forward(q, k, v)`: attention, with or without a causal mask, of any length, on Hopper
- `attention_backward.attention_backward(q, k, v, out, lse, dout)`: its gradients, which torch's autograd computes by it
- `softmax.softmax(x)`, `layernorm.layer_norm(x, weight, bias)`: rows, in plain `tl`

Each takes torch's tensors on a GPU, and arrays of the CPU for the interpreter. `*_launch` prepares one call that is
repeated. `docs/kernels.md` shows them at work.
"""
