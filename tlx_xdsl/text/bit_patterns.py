"""Float literals that are spelled as the bits of the number."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, BytesAttr, DenseIntOrFPElementsAttr


def with_bit_patterns(attribute: DenseIntOrFPElementsAttr, elements: list[int | None]) -> DenseIntOrFPElementsAttr:
    """`attribute` with the bytes of its hexadecimal float elements replaced by their bit patterns."""
    element_type = attribute.get_element_type()
    if not isinstance(element_type, AnyFloat) or all(bits is None for bits in elements):
        return attribute
    size = element_type.compile_time_size
    data = bytearray(attribute.data.data)
    for index, bits in enumerate(elements):
        if bits is not None:
            data[index * size : (index + 1) * size] = bits.to_bytes(size, "little")
    if len(elements) == 1:
        # A splat stands for all elements.
        data = data[:size] * (len(data) // size)
    return DenseIntOrFPElementsAttr(attribute.type, BytesAttr(bytes(data)))
