"""The debugger of kernels: a run is recorded once, and looked at forwards and backwards."""
