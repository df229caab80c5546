# `tl.constexpr` as editors and pyright see it.
#
# A parameter `BLOCK: tl.constexpr` is given 128, a dtype, a text, a function or nothing; in the kernel it stands for
# that value: it is passed where the value may be, and operators work on it. So the annotation is a protocol without
# members of its own, which everything has; what its bases define is there for whoever uses it. As a base, Any says
# that one may be assigned to anything, and has attributes that only the value knows.
# pyright: reportGeneralTypeIssues=false, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from collections.abc import Iterator
from typing import Any, Protocol, overload

from tlx_xdsl.language import compile_time
from tlx_xdsl.language.objects import mask, tensor

class _Operators(compile_time.constexpr, Any):
    @overload
    def _binary(self, other: compile_time.constexpr | complex | str | tuple[Any, ...], /) -> _Value: ...
    @overload
    def _binary(self, other: tensor, /) -> tensor: ...
    @overload
    def _comparison(self, other: tensor, /) -> mask: ...
    @overload
    def _comparison(self, other: object, /) -> _Value: ...
    def _unary(self) -> _Value: ...
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _binary
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _binary
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _binary
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _binary
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _comparison
    __neg__ = __pos__ = __invert__ = _unary
    def __hash__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __index__(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class constexpr(_Operators, Protocol): ...  # type: ignore[misc]

_Value = constexpr
