"""The bytes that each program of a launch touches.

`walk.py` computes the addresses of all programs of a grid at once (`values.py`, `vector_domain.py`, `touches.py`),
`runs.py` asks which programs overlap, `coverage.py` what that means for a launch, and `map.py` makes a grid of it to
look at. Of launches that are not known, `addresses` says what holds for all of them.
"""
