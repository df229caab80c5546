"""Results that leave through shared memory: staging buffers, the order of stores, and memory of rings that are done."""
