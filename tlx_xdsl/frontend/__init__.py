"""Frontend: the Python source of a kernel becomes located IR."""
