"""TTL, the language of kernels for Tenstorrent's cores, down to C++ (docs/ttl.md)."""
