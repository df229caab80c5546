"""Passes for compute threads: from blocks of tiles as values to calls of TT-Metalium."""
