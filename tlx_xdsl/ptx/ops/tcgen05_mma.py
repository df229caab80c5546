"""Products of Blackwell's tensor cores (PTX ISA, "tcgen05.mma", "Instruction descriptor").

The instruction descriptor of 32 bits has the types of D (4 to 5), A (7 to 9) and B (10 to 12), signs (13, 14), whether
A (15) and B (16) are turned, N / 8 (17 to 22) and M / 16 (24 to 28). With scales of blocks there are the byte of B's
scales (4 to 5) and of A's (29 to 30), their type (23), and M / 128 (27 to 28).

Rows of D and of an A in tensor memory: one of each lane for M = 128 of a CTA; for M = 64, 16 of each 32 lanes. A pair
with M = 128 has 64 rows in each CTA, the right half of the columns in the lanes from 64 on (layout B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.element_types import PTX_TYPES, tcgen05_types
from tlx_xdsl.numerics.arrays import Array, Dtype, Integers, numpy_type
from tlx_xdsl.numerics.matmul import E2M1

from ..arithmetic.products import multiply
from ..cohort import Cohort
from ..memory.descriptors import UNIT, of_tcgen05, units
from ..memory.surroundings import Trap
from ..memory.tensor_memory import memory_of
from ..read.syntax import Address
from ..steps import Context, Step
from .memory import Mask

BYTES_OF_K = 32


@dataclass(frozen=True)
class _Kind:
    """`.kind`: the elements by their codes, and how blocks are scaled."""

    types: dict[int, Any]
    scales: int = 0
    """Scales that an instruction takes of a row; 0 for none."""
    packed: bool = False
    """True if two elements of 4 bits are in a byte."""


def _types(kind: str) -> dict[int, Any]:
    return {code: numpy_type(each) for code, each in tcgen05_types(kind).items()}


_KINDS: dict[tuple[str, ...], _Kind] = {
    (f"kind::{kind}",): _Kind(_types(kind)) for kind in ("f16", "tf32", "f8f6f4", "i8")
} | {
    ("kind::mxf8f6f4", "1"): _Kind(_types("f8f6f4"), 1),
    ("kind::mxf4", "2"): _Kind({1: np.uint8}, 2, packed=True),
    ("kind::mxf4nvf4", "2"): _Kind({1: np.uint8}, 2, packed=True),
    ("kind::mxf4nvf4", "4"): _Kind({1: np.uint8}, 4, packed=True),
}
_VECTORS = {
    "scale_vec::1X": "1", "scale_vec::2X": "2", "scale_vec::4X": "4", "block32": "", "block16": "4",
}  # fmt: skip
_RESULTS = {code: numpy_type(PTX_TYPES[name][0]) for code, name in enumerate(("f16", "f32", "s32"))}


def build_product(context: Context, kind: str, form: list[str], *, pair: bool) -> Step:
    """`tcgen05.mma`, after the group and the kind."""
    form = [part for part in form if not part.startswith("collector::")]
    is_scaled = "block_scale" in form
    rest = [part for part in form if part != "block_scale"]
    key: tuple[str, ...] = (kind,)
    if is_scaled:
        vector = next((_VECTORS[part] for part in rest if part in _VECTORS), "")
        rest = [part for part in rest if part not in _VECTORS]
        key = (kind, vector or {"kind::mxf8f6f4": "1", "kind::mxf4": "2"}.get(kind, ""))
    if rest or key not in _KINDS:
        raise context.refuse()
    found = _KINDS[key]
    context.expect(7 if is_scaled else 5)
    target, target_offset = context.address(context.operand(0), "u4")
    a = context.operand(1)
    in_tensor = isinstance(a, Address)
    left, left_offset = context.address(a, "u4") if in_tensor else (context.value(a, "u8"), 0)
    right, form_word = context.read(2, "u8"), context.read(3, "u4")
    adds = context.value(context.instruction.operands[-1], "b")
    scales = [context.address(context.operand(place), "u4") for place in ((4, 5) if is_scaled else ())]

    def effect(
        cohort: Cohort, mask: Mask, targets: Any, lefts: Any, rights: Any, forms: Any, added: Any, *scaled: Any
    ) -> None:
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            _Product(
                cohort, thread, found, int(forms[thread]), pair=pair,
                target=int(targets[thread]) + target_offset,
                left=int(lefts[thread]) + left_offset, in_tensor=in_tensor, right=int(rights[thread]),
                scales=[int(each[thread]) + offset for each, (_, offset) in zip(scaled, scales, strict=True)],
            ).run(adds=bool(added[thread]))  # fmt: skip

    return Step((target, left, right, form_word, adds, *(read for read, _ in scales)), effect=effect)


def ctas_of(cohort: Cohort, thread: int, *, pair: bool) -> list[int]:
    """The CTA of a thread, or both of its pair, which the even one issues for.

    Raises Trap for the odd one, and where there is no pair.
    """
    cta = int(cohort.ctas[thread])
    if not pair:
        return [cta]
    if cohort.wave.cluster_size % 2 or cta % cohort.wave.cluster_size % 2:
        raise Trap("the even CTA of a pair issues what is for both; here is the odd one, or no pair")
    return [cta, cta + 1]


class _Product:
    """A product that a thread issues, for its CTA or for a pair."""

    def __init__(
        self,
        cohort: Cohort,
        thread: int,
        kind: _Kind,
        form: int,
        *,
        pair: bool,
        target: int,
        left: int,
        in_tensor: bool,
        right: int,
        scales: list[int],
    ):
        self.wave, self.cohort = cohort.wave, cohort
        self.kind, self.form = kind, form
        self.ctas = ctas_of(cohort, thread, pair=pair)
        self.m, self.n = (form >> 24 & 31) * 16, (form >> 17 & 63) * 8
        self.rows = self.m // len(self.ctas)
        self.types = [self._type(form >> at & 7) for at in (7, 10)]
        self.result = np.dtype(np.float32) if kind.scales else self._result(form >> 4 & 3)
        self.target, self.left, self.in_tensor, self.right, self.scales = target, left, in_tensor, right, scales
        if (
            self.rows not in (64, 128)
            or not 8 <= self.n <= 256
            or form & 0xF
            or (pair and kind.scales and self.m != 256)
        ):
            raise Trap(f"the instruction descriptor {form:#x} has a form that is not known: M {self.m}, N {self.n}")
        self.token = self.wave.order.tensor_issue(cohort, thread, (target & 0xFFFF, self.m, self.n))

    def _type(self, code: int) -> Dtype:
        if (found := self.kind.types.get(code)) is None:
            raise Trap(f"the instruction descriptor {self.form:#x} has elements of a type that is not known, {code}")
        return np.dtype(found)

    def _result(self, code: int) -> Dtype:
        if (found := _RESULTS.get(code)) is None:
            raise Trap(f"the instruction descriptor {self.form:#x} has results of a type that is not known, {code}")
        return np.dtype(found)

    def run(self, *, adds: bool) -> None:
        """Compute it."""
        b = np.concatenate(
            [
                self._shared(cta, self.right, self.n // len(self.ctas), 1, turned=bool(self.form >> 16 & 1))
                for cta in self.ctas
            ]
        )
        negative = (self.form >> 13 & 1) != (self.form >> 14 & 1)
        for cta in self.ctas:
            a = (
                self._tensor(cta)
                if self.in_tensor
                else self._shared(cta, self.left, self.rows, 0, turned=bool(self.form >> 15 & 1))
            )
            left, right = a, b
            if self.kind.scales:
                left = self._scaled(cta, a, 0)
                right = self._scaled(cta, b, 1)
            if negative:
                left = -left.astype(np.float32)
            lanes, columns = self._home()
            memory = memory_of(self.wave)
            before = None
            self.wave.order.tensor_moves(self.token, cta, lanes, columns, True)
            if adds:
                before = self._numbers(memory.read(cta, lanes, columns, "product"))
            self.wave.machine.traffic.product(self.cohort, 1, self.rows, self.n, left.shape[1])
            product = np.ascontiguousarray(multiply(left, right.T, before, self.result, is_fifth=True))
            words = (
                product.view(np.uint16).astype(np.uint32) if product.dtype.itemsize == 2 else product.view(np.uint32)
            )
            memory.write(cta, lanes, columns, words, "product")

    def _numbers(self, words: NDArray[np.uint32]) -> Array:
        """The elements of D; those of 16 bits have a column each."""
        return (words.astype(np.uint16) if self.result.itemsize == 2 else words).view(self.result)

    def _home(self) -> tuple[Integers, Integers]:
        """The lane and the column of each element of D."""
        lane, column = self.target >> 16, self.target & 0xFFFF
        row, at = np.arange(self.rows)[:, None], np.arange(self.n)[None, :]
        if self.rows == 128:
            return row + lane, at + column
        if len(self.ctas) == 2:
            half = self.n // 2
            return row + at // half * 64 + lane, at % half + column
        return row // 16 * 32 + row % 16 + lane, at + column

    def _tensor(self, cta: int) -> Array:
        """The A in tensor memory, whose elements are packed along K."""
        lane, column = self.left >> 16, self.left & 0xFFFF
        row = np.arange(self.rows)[:, None]
        lanes = row + lane if self.rows == 128 or len(self.ctas) == 2 else row // 16 * 32 + row % 16 + lane
        columns = np.arange(BYTES_OF_K // 4)[None, :] + column
        self.wave.order.tensor_moves(self.token, cta, lanes, columns, False)
        words = memory_of(self.wave).read(cta, lanes, columns, "product")
        return self._elements(np.ascontiguousarray(words), self.types[0])

    def _shared(self, cta: int, descriptor: int, outer: int, number: int, *, turned: bool) -> Array:
        """The elements of [outer, K] of an operand in shared memory."""
        shared, dtype = self.wave.shared, self.types[number]
        matrix = of_tcgen05(descriptor)
        places = units(matrix, outer, BYTES_OF_K, k_major=not turned, size=dtype.itemsize)
        flat = (places + cta * (shared.stride // UNIT)).ravel()
        if int(flat.max()) >= len(shared.rows16):
            raise Trap("an operand lies past the end of shared memory")
        self.wave.order.reads(self.token, flat, UNIT)
        shared.check_units(flat)
        held = shared.rows16[flat]
        if turned:
            return held.view(dtype).reshape(BYTES_OF_K // dtype.itemsize, outer).T
        return self._elements(held.reshape(outer, -1), dtype)

    def _elements(self, raw: Array, dtype: Dtype) -> Array:
        if not self.kind.packed:
            return raw.view(dtype)
        codes = raw.view(np.uint8)
        return E2M1[np.stack([codes & 15, codes >> 4], -1).reshape(len(codes), -1)]

    def _scaled(self, cta: int, values: Array, number: int) -> NDArray[np.float32]:
        """The rows of an operand, each block of them times its scale."""
        address, first = self.scales[number], self.form >> (29, 4)[number] & 3
        row = np.arange(len(values))
        lanes, columns = row % 32, row // 32 + (address & 0xFFFF)
        self.wave.order.tensor_moves(self.token, cta, lanes, columns, False)
        words = memory_of(self.wave).read(cta, lanes, columns, "product")
        count = self.kind.scales
        if first + count > 4:
            raise Trap(f"the instruction descriptor {self.form:#x} takes scales from byte {first} on, {count} of 4")
        held = words.view(np.uint8).reshape(-1, 4)[:, first : first + count]
        dtype: Any = ml_dtypes.float8_e8m0fnu if self.form >> 23 & 1 else ml_dtypes.float8_e4m3fn
        factors = np.ascontiguousarray(held).view(dtype).astype(np.float32)
        return values.astype(np.float32) * np.repeat(factors, values.shape[1] // count, 1)
