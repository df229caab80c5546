"""Passes over layouts: what operations need, what users wish, and where both meet."""
