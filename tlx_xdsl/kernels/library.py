"""The functions of this package as operators of torch: `torch.ops.tlx_xdsl.gemm`, `softmax` and so on, and
`<name>_out`, which writes to tensors that are given.

Importing this module imports torch and makes the operators of the functions whose modules are imported; those of
modules that are imported later are made then. A call of `gemm(a, b)` does it by itself where torch has to see the call
(`planned_function`). Then the call is a node of the graph that torch.compile or torch.export makes, with the gradient
that is written down with the operator (`operators`), and what it returns
is known without running it.

What the outputs are like: contiguous, on the device of the first tensor, of the types that the functions say. Inputs
have the strides that they have in the program: torch's compiler keeps those of the inputs of operators like these.

Why these are opaque to torch's compiler, and not made by `torch.library.triton_op`: that one hands Triton kernels to
the compiler, which compiles their source again with stock Triton. Stock Triton does not read these kernels, nor does
torch's code make tensor maps for their arguments. What a compiler could gain by looking into a product is fusion with
what follows; that is an epilogue here.
"""

from .operators import define_all

# An import, and no function to be called: torch.compile, as it reads a program, runs imports and nothing else.
define_all()
