"""Reading what a command line says of a kernel and its launch."""
