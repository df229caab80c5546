"""The names by which the package plugs in. Nothing is imported for them."""

from tlx_xdsl.wings import Wing

WING = Wing(passes={"exact-division": "exact_division.exact_division"})
