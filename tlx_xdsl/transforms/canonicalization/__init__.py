"""Canonicalisation rules of our dialects, one file per dialect.

The laws: a rule never makes the IR worse, goes one way, and no rule can undo another. Barriers, waits and fences are
never touched, however idle they look.
"""
