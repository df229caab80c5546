"""What the passes for compute threads consist of: from blocks of tiles as values to calls of TT-Metalium."""
