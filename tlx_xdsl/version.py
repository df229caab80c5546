"""The one place that states the version of tlx_xdsl."""

__version__ = "0.1.0"
