"""Passes on affine loops: copies, dependences, fusion, lowering."""
