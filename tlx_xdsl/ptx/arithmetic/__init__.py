"""Arithmetic of the PTX machine: how bits are seen, approximate functions, products."""
