# `tl.constexpr` as `language/__init__.py` shows it to type checkers: a class that can be called, and stands for the
# protocol in annotations. pyright does what the decorator's type says; mypy takes no notice of it, and gets Any.

from tlx_xdsl.language import compile_time_types

MYPY = False
"""True for mypy, which knows the name."""

if MYPY:
    from tlx_xdsl.language.annotations_mypy import constexpr as constexpr
else:
    def _callable(cls: object, /) -> type[compile_time_types.constexpr]: ...
    @_callable
    class constexpr: ...
