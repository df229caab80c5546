"""Abstract interpretation of integer arithmetic: one table of transfer functions, and the domains that it serves."""
