"""Random expressions of the language, for random kernels: each for a shape, with what is known of its type."""

import random
from dataclasses import dataclass, replace
from typing import Literal

Shape = Literal["scalar", "row", "grid"]
Kind = Literal["signed", "unsigned", "mixed", "float", "bool"]

SHAPES: dict[Shape, list[Shape]] = {"scalar": ["scalar"], "row": ["scalar", "row"], "grid": ["scalar", "row", "grid"]}
"""What may meet a value of a shape without making it larger."""

SIZES: dict[Shape, str] = {"scalar": "()", "row": "(32,)", "grid": "(8, 32)"}
INDEX: dict[Shape, str] = {"scalar": "n", "row": "columns", "grid": "index"}

KINDS: dict[str, Kind] = {
    "int8": "signed", "int16": "signed", "int32": "signed", "int64": "signed",
    "uint8": "unsigned", "uint16": "unsigned", "uint32": "unsigned", "uint64": "unsigned",
    "float16": "float", "bfloat16": "float", "float32": "float", "float64": "float",
}  # fmt: skip
SPELLED = {
    **{name: name.replace("uint", "u").replace("int", "i") for name in KINDS},
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
}  # fmt: skip
WIDTH = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "float16": 16, "bfloat16": 16, "int32": 32, "uint32": 32,
         "float32": 32, "int64": 64, "uint64": 64, "float64": 64}  # fmt: skip


@dataclass(frozen=True)
class Typed:
    """The text of a value, and what is known of its type."""

    text: str
    kind: Kind
    shape: Shape
    dtype: str | None = None


class Expressions:
    """Makes expressions of variables."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(number)
        self.variables: list[Typed] = []
        """What may be used, innermost scope last."""
        self.has_index = True
        """Whether `n`, `columns` and `index` are there: not in a function that the kernel calls."""

    def cast(self, value: Typed, dtype: str | None) -> Typed:
        assert dtype is not None
        return Typed(f"({value.text}).to(tl.{dtype})", KINDS[dtype], value.shape, dtype)

    def leaf(self, shape: Shape) -> Typed:
        found = [v for v in self.variables if v.shape == shape and v.kind != "bool"]
        if found:
            return self.random.choice(found)
        if self.has_index:
            return Typed(INDEX[shape], "signed", shape, "int32")
        dtype = self.random.choice(list(KINDS))
        return Typed(f"tl.full({SIZES[shape]}, 3, tl.{dtype})", KINDS[dtype], shape, dtype)

    def value(self, shape: Shape, depth: int) -> Typed:
        """Return an expression of a shape, which is no bool."""
        if depth == 0 or self.random.random() < 0.15:
            return self.leaf(shape)
        if self.random.random() < 0.55:
            return self._binary(shape, depth)
        makers = [self._converted, self._chosen, self._extreme, self._function, self._bits, self._opposite]
        if shape != "grid":
            makers.append(self._reduced)
        if shape != "scalar":
            makers.append(self._reordered)
        return self.random.choice(makers)(self.value(shape, depth - 1), depth - 1)

    def _converted(self, value: Typed, depth: int) -> Typed:
        return self.cast(value, self.random.choice(list(KINDS)))

    def _chosen(self, value: Typed, depth: int) -> Typed:
        """Return this value or another one: by `where`, or for a scalar by a conditional expression."""
        shape = value.shape
        if shape == "scalar" and self.random.random() < 0.5:
            dtype = self.random.choice(list(KINDS))
            first, second = self.cast(value, dtype), self.cast(self.value(shape, depth), dtype)
            return replace(first, text=f"({first.text} if {self.truth(shape, 1).text} else {second.text})")
        truth = self.truth(self.random.choice(SHAPES[shape]), depth)
        other = self.value(shape, depth)
        text = f"tl.where({truth.text}, {value.text}, {other.text})"
        return Typed(text, _joined(value.kind, other.kind), shape)

    def _extreme(self, value: Typed, depth: int) -> Typed:
        dtype = value.dtype or "float32"
        first, second = self.cast(value, dtype), self.cast(self.value(value.shape, depth), dtype)
        name = self.random.choice(["tl.minimum", "tl.maximum"])
        return replace(first, text=f"{name}({first.text}, {second.text})")

    def _function(self, value: Typed, depth: int) -> Typed:
        wide = self.cast(value, self.random.choice(["float32", "float64"]))
        name = self.random.choice(["exp", "sqrt", "sin", "floor", "abs", "log2"])
        return replace(wide, text=f"tl.{name}({wide.text})")

    def _bits(self, value: Typed, depth: int) -> Typed:
        if value.dtype is None:
            return self._opposite(value, depth)
        dtype = self.random.choice([name for name in KINDS if WIDTH[name] == WIDTH[value.dtype]])
        return Typed(f"({value.text}).to(tl.{dtype}, bitcast=True)", KINDS[dtype], value.shape, dtype)

    def _opposite(self, value: Typed, depth: int) -> Typed:
        sign = "-" if value.kind in ("float", "signed") else "~"
        return replace(value, text=f"({sign}({value.text}))")

    def _reduced(self, value: Typed, depth: int) -> Typed:
        """Return what is left of a larger block, instead of this value."""
        inner = self.value("row" if value.shape == "scalar" else "grid", depth)
        name = self.random.choice(["sum", "max", "min"])
        return Typed(f"tl.{name}({inner.text}, axis=0)", _widened(inner.kind), value.shape)

    def _reordered(self, value: Typed, depth: int) -> Typed:
        """Return a scan of a block, or a block of the same shape with its elements elsewhere."""
        if self.random.random() < 0.4:
            return Typed(f"tl.cumsum({value.text}, axis=0)", _widened(value.kind), value.shape)
        if value.shape == "row":
            return replace(value, text=f"tl.reshape(tl.expand_dims({value.text}, 1), (32,))")
        if self.random.random() < 0.5:
            return replace(value, text=f"tl.trans(tl.reshape({value.text}, (32, 8)))")
        row = self.value("row", depth)
        return replace(row, text=f"tl.broadcast_to(({row.text})[None, :], (8, 32))", shape="grid")

    def _binary(self, shape: Shape, depth: int) -> Typed:
        pick = self.random
        left = self.value(shape, depth - 1)
        if pick.random() < 0.3:
            return self._with_number(left)
        right = self.value(pick.choice(SHAPES[shape]), depth - 1)
        if shape == "grid" and right.shape == "row" and pick.random() < 0.5:
            right = replace(right, text=f"({right.text})[None, :]")
        operators = ["+", "-", "*"]
        floats = "float" in (left.kind, right.kind)
        if not floats:
            operators += ["&", "|", "^"]
        if left.kind == right.kind and left.kind in ("signed", "unsigned"):
            operators += ["//", "%"]
        if floats or left.kind == right.kind != "mixed":
            operators += ["/"]
        operator = pick.choice(operators)
        kind = "float" if operator == "/" else _joined(left.kind, right.kind)
        dtype = left.dtype if left.dtype == right.dtype and operator not in ("/", "//", "%") else None
        if pick.random() < 0.5:
            left, right = right, left
        return Typed(f"({left.text} {operator} {right.text})", kind, shape, dtype)

    def _with_number(self, value: Typed) -> Typed:
        pick = self.random
        if value.kind == "float":
            text = f"{pick.choice(['2', '0.5', '3.0', '1'])}"
            operator = pick.choice(["+", "-", "*", "/"])
        else:
            text = pick.choice(["1", "2", "3", "7", "100"])
            operator = pick.choice(["+", "-", "*", "<<", ">>", "&", "//", "%"])
            if operator in ("<<", ">>"):
                text = pick.choice(["1", "2", "3"])
            elif value.kind == "mixed" and operator in ("//", "%"):
                operator = "+"
        dtype = value.dtype if operator != "/" else None
        if operator in ("+", "-", "*") and pick.random() < 0.4:
            return replace(value, text=f"({text} {operator} {value.text})", dtype=dtype)
        return replace(value, text=f"({value.text} {operator} {text})", dtype=dtype)

    def truth(self, shape: Shape, depth: int) -> Typed:
        """Return an expression of bools."""
        pick = self.random
        if depth > 0 and pick.random() < 0.3:
            left, right = self.truth(shape, depth - 1), self.truth(shape, depth - 1)
            return Typed(f"({left.text} {pick.choice(['&', '|', '^'])} {right.text})", "bool", shape)
        left = self.value(shape, max(depth, 0))
        operator = pick.choice(["<", "<=", ">", ">=", "==", "!="])
        right = self.value(shape, 0).text if pick.random() < 0.4 else str(pick.randint(0, 50))
        return Typed(f"({left.text} {operator} {right})", "bool", shape)


def _joined(first: Kind, second: Kind) -> Kind:
    """Return what is known of the type of two values together."""
    if "float" in (first, second):
        return "float"
    return first if first == second else "mixed"


def _widened(kind: Kind) -> Kind:
    """Return what is known of the type of a reduction: of small unsigned integers it is signed."""
    return "mixed" if kind == "unsigned" else kind
