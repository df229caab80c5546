"""Machine code for CPUs: a module of linalg on memrefs as LLVM IR, and as an object file through llvmlite."""
