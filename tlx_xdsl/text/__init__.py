"""The edges of the compiler: reading and writing IR text, and errors with a place."""
