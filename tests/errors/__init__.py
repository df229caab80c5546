"""Wrong kernels, one mistake each: what docs/errors.md shows, and what the frontend must say about them."""
