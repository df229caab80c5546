"""From the Python source of a kernel to located IR."""
