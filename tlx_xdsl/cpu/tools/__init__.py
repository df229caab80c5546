"""The parts of the command lines about the CPU: compile targets, and findings of `tlx doctor`."""
