"""Element types: one table, a row a type, with the name that each library has for it.

The table is a module of the lowest layer, because the language imports no other; it loads neither numpy nor xDSL.
`numerics.arrays.numpy_type` gives the numpy type of a row, and `dialects.base.element_types` the type of MLIR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ElementType:
    """A type of elements; a name is None where a library has no such type."""

    name: str | None
    """Triton's name, such as `int32` or `fp16`."""
    kind: Literal["i", "u", "f"]
    """`i` for signed integers, `u` for unsigned ones and booleans, `f` for floats."""
    bits: int
    library: str | None
    """The name in numpy or `ml_dtypes`, and in torch where that has the type."""
    mlir: str
    """MLIR's spelling of the type that holds it; integers of both signs share one."""
    ptx: str | None = None
    packs: tuple[int, ...] = ()
    """Counts of elements that a packed type of PTX has, such as 2 for `f16x2`."""
    mantissa: int = 0
    """Bits of a float's mantissa."""
    bias: int = 0
    """Bias of a float's exponent."""
    c: str | None = None
    """The type of a kernel's argument in C, which has no 16-bit floats: they are passed as their bits."""
    letter: str | None = None
    """The letter of Python's `struct` module."""
    tensor_map: int | None = None
    """The number in a tensor map (PTX ISA, "tensormap.replace", table of `.elemtype`)."""
    tcgen05: tuple[str, int] | None = None
    """`.kind`, and the code in the instruction descriptor (PTX ISA, "Instruction descriptor")."""
    scaled: str | None = None
    """The name of elements of an operand in `tl.dot_scaled`."""
    libdevice: str | None = None
    runtime: str | None = None
    """Another spelling in the signatures of Triton's runtime."""
    aliases: tuple[str, ...] = ()
    """Other names of the elements of a launch's argument."""
    is_amd: bool = False
    """True for a type of Triton that only AMD's GPUs have."""

    @property
    def spelling(self) -> str:
        """Triton's spelling in signatures, such as `i32`, `u8`, `fp16`."""
        return self._triton.replace("uint", "u").replace("int", "i")

    @property
    def exported(self) -> str:
        """The name under which the language exports the type: `float32` for fp32, `bfloat16` for bf16."""
        name = self._triton
        if name.startswith("fp"):
            return "float" + name[2:]
        return "bfloat16" if name == "bf16" else name

    @property
    def _triton(self) -> str:
        assert self.name is not None, f"Triton has no {self.mlir}"
        return self.name

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory."""
        return -(-self.bits // 8)

    @property
    def numpy(self) -> str:
        """The name of the numpy type that holds the elements: unsigned integers where no library has the type."""
        return self.library or f"uint{8 * self.bytes}"

    # Of the floats of MLIR: a code is the bits without that of the sign. The spelling says which codes are no finite
    # numbers: `FN` has one NaN and no infinity, and in `FNUZ` that NaN is the code of -0.

    @property
    def overflow_code(self) -> int:
        """The code of what is larger than every finite number: infinity, or NaN."""
        codes = 1 << self.bits - 1
        if self.mlir.endswith("FNUZ"):
            return codes
        return codes - 1 if self.mlir.endswith("FN") else (codes - 1) >> self.mantissa << self.mantissa

    @property
    def nan_code(self) -> int:
        """The code of a quiet NaN."""
        has_infinity = not self.mlir.endswith(("FN", "FNUZ"))
        return self.overflow_code | (1 << self.mantissa - 1 if has_infinity else 0)

    @property
    def largest_code(self) -> int:
        """The code of the largest finite number."""
        return self.overflow_code - 1

    @property
    def largest(self) -> float:
        """The largest finite number."""
        exponent, fraction = divmod(self.largest_code, 1 << self.mantissa)
        return (1 + fraction / (1 << self.mantissa)) * 2.0 ** (exponent - self.bias)


ELEMENT_TYPES = (
    ElementType("int1", "u", 1, "bool", "i1", "pred", c="bool", letter="?", runtime="u1", aliases=("uint1",)),
    ElementType("int8", "i", 8, "int8", "i8", "s8", c="int8_t", letter="b", tcgen05=("i8", 1)),
    # Scales of blocks are plain bytes to kernels (OCP Microscaling Formats, "E8M0").
    ElementType("uint8", "u", 8, "uint8", "i8", "u8", c="uint8_t", letter="B", tensor_map=0, tcgen05=("i8", 0),
                aliases=("float8_e8m0fnu",)),
    ElementType("int16", "i", 16, "int16", "i16", "s16", (2,), c="int16_t", letter="h"),
    ElementType("uint16", "u", 16, "uint16", "i16", "u16", (2,), c="uint16_t", letter="H", tensor_map=1),
    ElementType("int32", "i", 32, "int32", "i32", "s32", c="int32_t", letter="i", tensor_map=3, libdevice="int"),
    ElementType("uint32", "u", 32, "uint32", "i32", "u32", c="uint32_t", letter="I", tensor_map=2, libdevice="uint"),
    ElementType("int64", "i", 64, "int64", "i64", "s64", c="int64_t", letter="q", tensor_map=5, libdevice="ll"),
    ElementType("uint64", "u", 64, "uint64", "i64", "u64", c="uint64_t", letter="Q", tensor_map=4, libdevice="ull"),
    # No library and no type of MLIR has this format: its bytes are integers.
    ElementType("fp8e4b15", "f", 8, None, "i8", mantissa=3, bias=15),
    ElementType("fp8e4nv", "f", 8, "float8_e4m3fn", "f8E4M3FN", "e4m3", (2, 4), 3, 7, tcgen05=("f8f6f4", 0),
                scaled="e4m3"),
    ElementType("fp8e4b8", "f", 8, "float8_e4m3fnuz", "f8E4M3FNUZ", mantissa=3, bias=8, is_amd=True),
    ElementType("fp8e5", "f", 8, "float8_e5m2", "f8E5M2", "e5m2", (2, 4), 2, 15, tcgen05=("f8f6f4", 1), scaled="e5m2"),
    ElementType("fp8e5b16", "f", 8, "float8_e5m2fnuz", "f8E5M2FNUZ", mantissa=2, bias=16, is_amd=True),
    ElementType("fp16", "f", 16, "float16", "f16", "f16", (2,), 10, 15, c="uint16_t", letter="e", tensor_map=6,
                tcgen05=("f16", 0), scaled="fp16", aliases=("f16", "half")),
    ElementType("bf16", "f", 16, "bfloat16", "bf16", "bf16", (2,), 7, 127, c="uint16_t", tensor_map=10,
                tcgen05=("f16", 1), scaled="bf16"),
    ElementType("fp32", "f", 32, "float32", "f32", "f32", (2,), 23, 127, c="float", letter="f", tensor_map=7,
                tcgen05=("tf32", 2), libdevice="float", runtime="f32", aliases=("float",)),
    ElementType("fp64", "f", 64, "float64", "f64", "f64", (), 52, 1023, c="double", letter="d", tensor_map=9,
                libdevice="double", aliases=("f64", "double")),
    # Types that Triton does not have: of MLIR, and elements of scaled products, which bytes hold.
    ElementType(None, "i", 4, "int4", "i4"),
    ElementType(None, "f", 8, "float8_e4m3", "f8E4M3", mantissa=3, bias=7),
    ElementType(None, "f", 8, "float8_e4m3b11fnuz", "f8E4M3B11FNUZ", mantissa=3, bias=11),
    ElementType(None, "f", 6, "float6_e2m3fn", "i8", mantissa=3, bias=1, scaled="e2m3"),
    ElementType(None, "f", 6, "float6_e3m2fn", "i8", mantissa=2, bias=3, scaled="e3m2"),
    ElementType(None, "f", 4, "float4_e2m1fn", "i8", mantissa=1, bias=1, scaled="e2m1"),
)  # fmt: skip

TRITON_TYPES = tuple(each for each in ELEMENT_TYPES if each.name is not None)

BY_NAME = {each.name: each for each in TRITON_TYPES if each.name is not None}
BY_SPELLING = {each.spelling: each for each in TRITON_TYPES}
BY_MLIR = {each.mlir: each for each in reversed(ELEMENT_TYPES) if each.kind != "u" or each.bits == 1}
"""The types by MLIR's names, the first row of each; integers count as signed, but for i1."""
BY_FORMAT = {each.scaled: each for each in ELEMENT_TYPES if each.scaled is not None}
"""The types by their names in `tl.dot_scaled`."""

SCALARS = {
    spelling: each
    for each in TRITON_TYPES
    if each.c is not None
    for spelling in (each.spelling, each.runtime)
    if spelling is not None
}
"""The types of numbers that a launch passes, by their spellings in signatures."""

SPELLINGS = {
    name: each.spelling
    for each in TRITON_TYPES
    if not each.is_amd
    for name in (each.spelling, each.exported, each.library, each.runtime, *each.aliases)
    if name is not None
}
"""The spelling of each type of kernels by every name that Triton, numpy and torch have for it."""

BY_TENSOR_MAP = {each.tensor_map: each for each in ELEMENT_TYPES if each.tensor_map is not None} | dict.fromkeys(
    (8, 11, 12), BY_NAME["fp32"]
)
"""The types by their numbers in tensor maps; f32 also with subnormals flushed, as tf32, and both."""


def _ptx_types() -> dict[str, tuple[ElementType, int]]:
    found: dict[str, tuple[ElementType, int]] = {}
    for each in ELEMENT_TYPES:
        if each.ptx is not None:
            found[each.ptx] = each, 1
            if each.kind == "u" and each.bits > 1:
                found[f"b{each.bits}"] = each, 1
            found |= {f"{each.ptx}x{count}": (each, count) for count in each.packs}
    # A number of 19 bits in a register of 32.
    found["tf32"] = found["f32"]
    return found


PTX_TYPES = _ptx_types()
"""The element, and the count of them, that each type of PTX has. `b128` is no number."""


def tcgen05_types(kind: str) -> dict[int, ElementType]:
    """The types of a `.kind` of `tcgen05.mma`, by their codes in the instruction descriptor."""
    return {each.tcgen05[1]: each for each in ELEMENT_TYPES if each.tcgen05 is not None and each.tcgen05[0] == kind}
