"""Operation classes of rows of a table, which differ in their names and constants only."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar, cast

from xdsl.irdl import IRDLOperation, irdl_op_definition

OpT = TypeVar("OpT", bound=IRDLOperation)


def operation(base: type[OpT], name: str, meaning: str, module: str, **constants: Any) -> type[OpT]:
    """The operation `name` (with its dialect) of the module `module`: a subclass of `base` with these constants."""
    words = name.partition(".")[2].split("_")
    namespace = {
        "__doc__": meaning,
        "__module__": module,
        "__annotations__": dict.fromkeys(constants, ClassVar[Any]),
        "name": name,
        **constants,
    }
    class_name = f"{''.join(word.capitalize() for word in words)}Op"
    return irdl_op_definition(cast(type[OpT], type(class_name, (base,), namespace)))
