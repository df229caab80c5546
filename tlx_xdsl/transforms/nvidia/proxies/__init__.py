"""Order between threads and what TMA and the tensor cores do for them."""
