"""The arguments of a kernel: from a signature to values."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i32
from xdsl.ir import Attribute, Block, SSAValue

from tlx_xdsl.language.core import dtype, int32, int64

from .builder import hint
from .python.foreign import compile_time
from .python.source import Fixed, Parameter, Signature
from .types import ArgumentType, descriptor_ir_type, ir_type, parse_argument_type, split_tuple
from .values import Constexpr, Tensor, TensorDescriptor, TupleValue, Value
from .visitor import Visitor


class Arguments:
    """Adds the arguments of a kernel to its entry block."""

    def __init__(self, visitor: Visitor, block: Block):
        self.visitor = visitor
        self.block = block
        self.attributes: list[DictionaryAttr] = []
        """The attributes of each argument of the block."""

    def add(self, parameter: Parameter, signature: Mapping[str, Signature], constexprs: Mapping[str, Any]) -> Value:
        """The value of a parameter.

        Raises CompilationError at the parameter when it has no type, or one that does not exist.
        """
        name = parameter.name
        if name in constexprs:
            return _constant(constexprs[name])
        if name not in signature:
            if parameter.default is not inspect.Parameter.empty:
                return _constant(parameter.default)
            what = "a value (--constexpr)" if parameter.is_constexpr else "a type (--signature)"
            raise self.visitor.error(
                parameter.node, f"the parameter '{name}' needs {what}", (self._wanted(signature, constexprs),)
            )
        self.visitor.locate(parameter.node)
        try:
            return self._value(name, signature[name])
        except ValueError as error:
            raise self.visitor.error(parameter.node, f"the parameter '{name}': {error}") from error

    def _wanted(self, signature: Mapping[str, Signature], constexprs: Mapping[str, Any]) -> str:
        """All that is missing at once, as a command line would say it."""
        missing = [
            f"--constexpr {each.name}=VALUE" if each.is_constexpr else f"--signature {each.name}=TYPE"
            for each in self.visitor.source.parameters
            if each.name not in signature and each.name not in constexprs and each.default is inspect.Parameter.empty
        ]
        return (
            f"missing: {' '.join(missing)}, on the command line or in the file's TLX_COMPILE; a value gives its type, "
            "too: --arg NAME=randn:fp16[512,512]"
        )

    def _value(self, name: str, spelled: Signature) -> Value:
        items = split_tuple(spelled) if isinstance(spelled, str) else spelled
        if isinstance(items, Fixed):
            return _constant(items.value)
        if items is not None:
            cls = type(spelled) if hasattr(type(spelled), "_fields") else None
            return TupleValue(tuple(self._value(name, item) for item in items), cls)
        assert isinstance(spelled, str)
        return self._scalar_or_descriptor(name, parse_argument_type(spelled))

    def _scalar_or_descriptor(self, name: str, type_: ArgumentType) -> Value:
        element = type_.element
        if not type_.is_descriptor:
            return Tensor(self._argument(ir_type(element), name, type_.divisibility), element)
        assert isinstance(element, dtype)
        handle = self._argument(descriptor_ir_type(element, type_.block_shape), name)
        rank = range(len(type_.block_shape))
        # Triton's launchers pass shape and strides after every descriptor.
        shape = tuple(Tensor(self._argument(ir_type(int32), f"{name}.shape.{dim}"), int32) for dim in rank)
        strides = tuple(Tensor(self._argument(ir_type(int64), f"{name}.stride.{dim}"), int64) for dim in rank)
        return TensorDescriptor(handle, element, type_.block_shape, shape, strides)

    def _argument(self, type_: Attribute, name: str, divisibility: int = 1) -> SSAValue:
        argument = self.block.insert_arg(type_, len(self.block.args), self.visitor.builder.location)
        hint(argument, name)
        attributes = {"tt.divisibility": IntegerAttr(divisibility, i32)} if divisibility > 1 else {}
        self.attributes.append(DictionaryAttr(attributes))
        return argument


def _constant(value: Any) -> Constexpr:
    return Constexpr(compile_time(value))
