"""A machine that runs kernels of TT-Metalium on this computer, and checks them more strictly than hardware does."""
