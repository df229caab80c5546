"""Passes over layouts: requirements of operations, choices of users, and conversions between them."""
