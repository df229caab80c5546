"""Timelines for people and other programs: a page, a short text, a trace, a picture of a ring."""
