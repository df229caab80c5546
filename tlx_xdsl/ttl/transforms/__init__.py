"""The passes of TTL: from the frontend's kernel to C++ for TT-Metalium (docs/ttl.md)."""
