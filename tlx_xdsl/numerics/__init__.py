"""Arithmetic on numpy arrays that several machines share: rounding in every mode, instructions of PTX. No IR."""
