"""Random small kernels over what the frontend supports, typed so that stock Triton accepts nearly all of them.

A program is a kernel and the functions that it calls. Expressions are made for a shape, so no operation meets blocks
that don't broadcast; of their type it is known whether it is signed, unsigned, a float or a bool, and sometimes which
one, so that an assignment in a loop or a branch keeps the type of its variable.

`python -m tests.oracle.fuzz NUMBER` shows a program and what the oracle says of it.
"""

import random
from dataclasses import dataclass, replace
from pathlib import Path
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


@dataclass
class Program:
    """A kernel with what it calls, as text, and the types of its arguments."""

    name: str
    arguments: dict[str, str | int]
    functions: list[str]
    lines: list[str]

    @property
    def text(self) -> str:
        """The source, with a decorator that makes it a case of the oracle."""
        parameters = ", ".join(f"{name}: tl.constexpr" if name == "K" else name for name in self.arguments)
        head = f"@case({self.arguments!r})\n@triton.jit\ndef {self.name}({parameters}):\n"
        return "\n\n".join([*self.functions, head + "\n".join(f"    {line}" for line in self.lines)]) + "\n"


HEADER = """\
import triton
import triton.language as tl

from tests.oracle.cases import case

GLOBAL = 5


"""


def write(path: Path, programs: list[Program]) -> None:
    """Make a kernel file of programs."""
    path.write_text(HEADER + "\n\n".join(program.text for program in programs), encoding="utf-8")


def program(number: int) -> Program:
    """Return the program of a number: always the same one."""
    return _Generator(number).program()


class _Generator:
    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self._number = number
        self._fresh = 0
        self._functions: list[str] = []
        self._variables: list[Typed] = []
        """What may be used, innermost scope last."""
        self._assignable: set[str] = set()
        self._inputs: dict[str, str] = {}
        self._outputs: dict[str, str] = {}

    def program(self) -> Program:
        pick = self._random
        arguments: dict[str, str | int] = {}
        for i in range(3):
            dtype = pick.choice(list(KINDS))
            self._inputs[f"x{i}"] = dtype
            arguments[f"x{i}"] = f"*{SPELLED[dtype]}:16"
        for i in range(2):
            dtype = pick.choice(list(KINDS))
            self._outputs[f"y{i}"] = dtype
            arguments[f"y{i}"] = f"*{SPELLED[dtype]}:16"
        scalar = pick.choice([name for name in KINDS if name != "bfloat16"])
        arguments |= {"n": "i32", "m": SPELLED[scalar], "f": "fp32", "K": pick.randint(1, 4)}
        self._variables = [
            Typed("n", "signed", "scalar", "int32"),
            Typed("m", KINDS[scalar], "scalar", scalar),
            Typed("f", "float", "scalar", "float32"),
            Typed("columns", "signed", "row", "int32"),
            Typed("index", "signed", "grid", "int32"),
        ]
        lines = [
            "columns = tl.arange(0, 32)",
            "index = tl.arange(0, 8)[:, None] * 32 + columns[None, :]",
        ]
        lines += [line for shape in ("row", pick.choice(["grid", "row"])) for line in self._load(shape)]
        for _ in range(pick.randint(3, 7)):
            lines += self._statement(depth=0)
        if pick.random() < 0.2:
            lines[4:4] = ["if n > 100:", "    return"]
        for variable in pick.sample(self._variables, min(4, len(self._variables))):
            lines += self._store(variable)
        return Program(f"program_{self._number}", arguments, self._functions, lines)

    def _name(self, letter: str) -> str:
        self._fresh += 1
        return f"{letter}{self._fresh}"

    # --- statements ----------------------------------------------------------------------------------------------

    def _statement(self, depth: int) -> list[str]:
        makers = [self._declaration, self._assignment, self._assignment, self._augmented, self._store_something]
        makers += [self._load_something, self._call, self._tuple, self._swap, self._literal]
        if depth < 2:
            makers += [lambda: self._for(depth), lambda: self._if(depth), lambda: self._while(depth)] * 2
        return self._random.choice(makers)()

    def _body(self, depth: int, extra: list[Typed] | None = None) -> list[str]:
        """Return an indented block; what it declares is not known behind it."""
        outer = list(self._variables)
        self._variables += extra or []
        lines = [line for _ in range(self._random.randint(1, 3)) for line in self._statement(depth + 1)]
        self._variables = outer
        return [f"    {line}" for line in lines]

    def _shape(self) -> Shape:
        return self._random.choice(["scalar", "row", "row", "grid"])

    def _declare(self, text: str, kind: Kind, shape: Shape, dtype: str | None) -> str:
        name = self._name("v")
        self._variables.append(Typed(name, kind, shape, dtype))
        if dtype is not None:
            self._assignable.add(name)
        return f"{name} = {text}"

    def _declaration(self) -> list[str]:
        value = self._value(self._shape(), 3)
        return [self._declare(value.text, value.kind, value.shape, value.dtype)]

    def _literal(self) -> list[str]:
        """A number becomes a run-time value when it is assigned."""
        if self._random.random() < 0.5:
            return [self._declare(str(self._random.randint(0, 9)), "signed", "scalar", "int32")]
        return [self._declare(self._random.choice(["0.0", "1.5", "-2.25"]), "float", "scalar", "float32")]

    def _target(self) -> Typed | None:
        targets = [variable for variable in self._variables if variable.text in self._assignable]
        return self._random.choice(targets) if targets else None

    def _assignment(self) -> list[str]:
        target = self._target()
        if target is None:
            return self._declaration()
        return [f"{target.text} = {self._cast(self._value(target.shape, 3), target.dtype).text}"]

    def _augmented(self) -> list[str]:
        target = self._target()
        if target is None:
            return self._declaration()
        operators = ["+=", "-=", "*="] + ([] if target.kind == "float" else ["|=", "&=", "^="])
        shape = self._random.choice(SHAPES[target.shape])
        value = self._cast(self._value(shape, 2), target.dtype)
        return [f"{target.text} {self._random.choice(operators)} {value.text}"]

    def _address(self, pointer: str, shape: Shape) -> str:
        return f"{pointer} + {INDEX[shape]}"

    def _load(self, shape: Shape) -> list[str]:
        pointer, dtype = self._random.choice(list(self._inputs.items()))
        options = ""
        if self._random.random() < 0.5:
            options = f", mask={self._truth(self._random.choice(SHAPES[shape]), 1).text}"
            if self._random.random() < 0.6:
                options += f", other={self._random.choice(['0', '1', '0.0'])}"
        text = f"tl.load({self._address(pointer, shape)}{options})"
        return [self._declare(text, KINDS[dtype], shape, dtype)]

    def _load_something(self) -> list[str]:
        return self._load(self._shape())

    def _store(self, value: Typed) -> list[str]:
        pointer = self._random.choice(list(self._outputs))
        mask = ""
        if self._random.random() < 0.4:
            mask = f", mask={self._truth(self._random.choice(SHAPES[value.shape]), 1).text}"
        return [f"tl.store({self._address(pointer, value.shape)}, {value.text}{mask})"]

    def _store_something(self) -> list[str]:
        return self._store(self._value(self._shape(), 2))

    def _for(self, depth: int) -> list[str]:
        name = self._name("i")
        pick = self._random
        if pick.random() < 0.2:
            return [f"for {name} in tl.static_range({pick.choice(['2', 'K'])}):", *self._body(depth)]
        headers = ["range(n)", "range(2, n)", "range(n, 0, -1)", "range(0, n, K)", "tl.range(0, 8, 2)", "range(K)"]
        headers += ["tl.range(0, n, num_stages=3)", "tl.range(n, loop_unroll_factor=2)"]
        header = pick.choice(headers)
        return [f"for {name} in {header}:", *self._body(depth, [Typed(name, "signed", "scalar", "int32")])]

    def _while(self, depth: int) -> list[str]:
        counter = self._name("w")
        lines = [f"{counter} = n", f"while {counter} > {self._random.randint(0, 5)}:"]
        body = self._body(depth, [Typed(counter, "signed", "scalar", "int32")])
        return [*lines, *body, f"    {counter} -= {self._random.randint(1, 3)}"]

    def _if(self, depth: int) -> list[str]:
        pick = self._random
        if pick.random() < 0.15:
            return [f"if K > {pick.randint(0, 4)}:", *self._body(depth), "else:", *self._body(depth)]
        lines = [f"if {self._condition()}:", *self._body(depth)]
        if pick.random() < 0.3:
            lines += [f"elif {self._condition()}:", *self._body(depth)]
        if pick.random() < 0.5:
            return [*lines, "else:", *self._body(depth)] if pick.random() < 0.6 else lines
        # Both branches define a name that lives on.
        shape, dtype = self._shape(), pick.choice(list(KINDS))
        first, second = (self._cast(self._value(shape, 2), dtype).text for _ in range(2))
        condition = self._condition()
        name = self._declare("", KINDS[dtype], shape, dtype).partition(" ")[0]
        return [*lines, f"if {condition}:", f"    {name} = {first}", "else:", f"    {name} = {second}"]

    def _condition(self) -> str:
        first = self._truth("scalar", 1).text
        if self._random.random() < 0.3:
            return f"{first} {self._random.choice(['and', 'or'])} {self._truth('scalar', 1).text}"
        return first if self._random.random() < 0.8 else f"not {first}"

    def _tuple(self) -> list[str]:
        first, second = self._value(self._shape(), 1), self._value(self._shape(), 1)
        name = self._name("t")
        lines = [f"{name} = ({first.text}, {second.text})"]
        if self._random.random() < 0.5:
            lines.append(self._declare(f"{name}[1]", second.kind, second.shape, second.dtype))
            return lines
        left = self._declare("", first.kind, first.shape, first.dtype).partition(" ")[0]
        right = self._declare("", second.kind, second.shape, second.dtype).partition(" ")[0]
        return [*lines, f"{left}, {right} = {name}"]

    def _swap(self) -> list[str]:
        target = self._target()
        others = [v for v in self._variables if target and v.text in self._assignable and v.text != target.text]
        others = [v for v in others if target and (v.shape, v.dtype) == (target.shape, target.dtype)]
        if target is None or not others:
            return self._declaration()
        other = self._random.choice(others)
        return [f"{target.text}, {other.text} = {other.text}, {target.text}"]

    def _call(self) -> list[str]:
        """A call of a function that is made for it: it returns a value, a tuple, or one of two values."""
        pick = self._random
        count = pick.randint(1, 3)
        given = pick.sample(self._variables, min(count, len(self._variables)))
        parameters = [replace(value, text=f"a{i}") for i, value in enumerate(given)]
        outer, self._variables = self._variables, parameters
        results: list[Typed] = []
        lines: list[str] = []
        for _ in range(pick.randint(1, 2)):
            shape = pick.choice([value.shape for value in parameters])
            value = self._value(shape, 2, inside=False)
            results.append(self._cast(value, pick.choice(list(KINDS))))
        texts = ", ".join(result.text for result in results)
        scalars = [value for value in parameters if value.shape == "scalar" and value.kind != "bool"]
        if scalars and pick.random() < 0.4:
            other = [self._cast(self._value(result.shape, 1, inside=False), result.dtype) for result in results]
            lines += [f"if {pick.choice(scalars).text} > 3:", f"    return {', '.join(o.text for o in other)}", "else:"]
            lines += [f"    return {texts}"]
        else:
            lines += [f"return {texts}"]
        self._variables = outer
        name = f"_function_{self._number}_{len(self._functions)}"
        # A function that isn't inlined takes scalars only.
        apart = all(value.shape == "scalar" for value in given) and pick.random() < 0.5
        decorator = "@triton.jit(noinline=True)" if apart else "@triton.jit"
        default = ", scale=2" if pick.random() < 0.2 else ""
        head = f"{decorator}\ndef {name}({', '.join(p.text for p in parameters)}{default}):\n"
        self._functions.append(head + "\n".join(f"    {line}" for line in lines) + "\n")
        names = [self._declare("", r.kind, r.shape, r.dtype).partition(" ")[0] for r in results]
        arguments = [value.text for value in given]
        if pick.random() < 0.3:
            arguments[-1] = f"a{len(arguments) - 1}={arguments[-1]}"
        return [f"{', '.join(names)} = {name}({', '.join(arguments)})"]

    # --- expressions ---------------------------------------------------------------------------------------------

    def _cast(self, value: Typed, dtype: str | None) -> Typed:
        assert dtype is not None
        return Typed(f"({value.text}).to(tl.{dtype})", KINDS[dtype], value.shape, dtype)

    def _leaf(self, shape: Shape, *, inside: bool = True) -> Typed:
        found = [v for v in self._variables if v.shape == shape and v.kind != "bool"]
        if found:
            return self._random.choice(found)
        if inside:
            return Typed(INDEX[shape], "signed", shape, "int32")
        dtype = self._random.choice(list(KINDS))
        return Typed(f"tl.full({SIZES[shape]}, 3, tl.{dtype})", KINDS[dtype], shape, dtype)

    def _value(self, shape: Shape, depth: int, *, inside: bool = True) -> Typed:
        """Return an expression of a shape, which is no bool; `inside` says that the kernel's index is there."""
        pick = self._random
        if depth == 0 or pick.random() < 0.15:
            return self._leaf(shape, inside=inside)
        roll = pick.random()
        if roll < 0.5:
            return self._binary(shape, depth, inside)
        value = self._value(shape, depth - 1, inside=inside)
        if roll < 0.58:
            return self._cast(value, pick.choice(list(KINDS)))
        if roll < 0.64:
            truth = self._truth(pick.choice(SHAPES[shape]), depth - 1, inside)
            other = self._value(shape, depth - 1, inside=inside)
            kind = _joined(value.kind, other.kind)
            return Typed(f"tl.where({truth.text}, {value.text}, {other.text})", kind, shape)
        if roll < 0.7:
            other = self._cast(self._value(shape, depth - 1, inside=inside), value.dtype or "float32")
            value = self._cast(value, other.dtype)
            name = pick.choice(["tl.minimum", "tl.maximum"])
            return Typed(f"{name}({value.text}, {other.text})", value.kind, shape, value.dtype)
        if roll < 0.76:
            wide = self._cast(value, pick.choice(["float32", "float64"]))
            name = pick.choice(["exp", "sqrt", "sin", "floor", "abs", "log2"])
            return replace(wide, text=f"tl.{name}({wide.text})")
        if roll < 0.82 and shape != "grid":
            larger: Shape = "row" if shape == "scalar" else "grid"
            inner = self._value(larger, depth - 1, inside=inside)
            name = pick.choice(["sum", "max", "min"])
            return Typed(f"tl.{name}({inner.text}, axis=0)", inner.kind, shape)
        if roll < 0.86 and shape == "grid":
            inner = self._value("row", depth - 1, inside=inside)
            return replace(inner, text=f"tl.broadcast_to(({inner.text})[None, :], (8, 32))", shape="grid")
        if roll < 0.9 and value.dtype is not None:
            dtype = pick.choice([name for name in KINDS if WIDTH[name] == WIDTH[value.dtype]])
            return Typed(f"({value.text}).to(tl.{dtype}, bitcast=True)", KINDS[dtype], shape, dtype)
        if roll < 0.95 and shape == "scalar":
            dtype = pick.choice(list(KINDS))
            first = self._cast(value, dtype)
            second = self._cast(self._value(shape, depth - 1, inside=inside), dtype)
            return replace(first, text=f"({first.text} if {self._truth(shape, 1, inside).text} else {second.text})")
        if value.kind == "float" or value.kind == "signed":
            return replace(value, text=f"(-({value.text}))")
        return replace(value, text=f"(~({value.text}))")

    def _binary(self, shape: Shape, depth: int, inside: bool) -> Typed:
        pick = self._random
        left = self._value(shape, depth - 1, inside=inside)
        if pick.random() < 0.3:
            return self._with_number(left)
        right = self._value(pick.choice(SHAPES[shape]), depth - 1, inside=inside)
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
        pick = self._random
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

    def _truth(self, shape: Shape, depth: int, inside: bool = True) -> Typed:
        """Return an expression of bools."""
        pick = self._random
        if depth > 0 and pick.random() < 0.3:
            left, right = self._truth(shape, depth - 1, inside), self._truth(shape, depth - 1, inside)
            return Typed(f"({left.text} {pick.choice(['&', '|', '^'])} {right.text})", "bool", shape)
        left = self._value(shape, max(depth, 0), inside=inside)
        operator = pick.choice(["<", "<=", ">", ">=", "==", "!="])
        right = self._value(shape, 0, inside=inside).text if pick.random() < 0.4 else str(pick.randint(0, 50))
        return Typed(f"({left.text} {operator} {right})", "bool", shape)


def _joined(first: Kind, second: Kind) -> Kind:
    """Return what is known of the type of two values together."""
    if "float" in (first, second):
        return "float"
    return first if first == second else "mixed"
