"""The clock: how long final PTX takes on a GPU, in cycles, and the timeline of it."""
