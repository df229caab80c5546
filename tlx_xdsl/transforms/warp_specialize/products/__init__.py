"""Products of the consumers in the tensor cores: asynchronous, pipelined over turns, and by turns of two consumers."""
