"""Facts about programs that change nothing: where aliased buffers lie."""
