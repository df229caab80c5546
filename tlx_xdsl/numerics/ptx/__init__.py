"""The arithmetic of PTX instructions on numpy arrays, with an element for each thread."""
