"""Alias of `tlx_xdsl.addresses`: the name under which the documentation showed it until 2026."""

from tlx_xdsl.addresses import *  # noqa: F403
