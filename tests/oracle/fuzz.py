"""Random small kernels over what the frontend supports, typed so that stock Triton accepts nearly all of them.

A program is a kernel and the functions that it calls. Expressions are made for a shape, so no operation meets blocks
that don't broadcast; of their type it is known whether it is signed, unsigned, a float or a bool, and sometimes which
one, so that an assignment in a loop or a branch keeps the type of its variable.

`python -m tests.oracle.fuzz NUMBER` shows a program and what the oracle says of it.
"""

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from tests.oracle.expressions import INDEX, KINDS, SHAPES, SPELLED, WIDTH, Expressions, Kind, Shape, Typed
from tests.oracle.report import verdict
from tests.oracle.stock import Stock


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

from tests.gallery.cases import case

GLOBAL = 5


"""


def write(path: Path, programs: list[Program]) -> None:
    """Make a kernel file of programs."""
    path.write_text(HEADER + "\n\n".join(program.text for program in programs), encoding="utf-8")


def program(number: int) -> Program:
    """Return the program of a number: always the same one."""
    return _Generator(number).program()


class _Generator(Expressions):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._number = number
        self._fresh = 0
        self._functions: list[str] = []
        self._assignable: set[str] = set()
        self._inputs: dict[str, str] = {}
        self._outputs: dict[str, str] = {}

    def program(self) -> Program:
        pick = self.random
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
        self.variables = [
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
        for variable in pick.sample(self.variables, min(4, len(self.variables))):
            lines += self._store(variable)
        return Program(f"program_{self._number}", arguments, self._functions, lines)

    def _name(self, letter: str) -> str:
        self._fresh += 1
        return f"{letter}{self._fresh}"

    # --- statements ----------------------------------------------------------------------------------------------

    def _statement(self, depth: int) -> list[str]:
        makers = [self._declaration, self._assignment, self._assignment, self._augmented, self._store_something]
        makers += [self._load_something, self._call, self._tuple, self._swap, self._literal, self._atomic]
        if depth < 2:
            makers += [lambda: self._for(depth), lambda: self._if(depth), lambda: self._while(depth)] * 2
        return self.random.choice(makers)()

    def _body(self, depth: int, extra: list[Typed] | None = None) -> list[str]:
        """Return an indented block; what it declares is not known after it."""
        outer = list(self.variables)
        self.variables += extra or []
        lines = [line for _ in range(self.random.randint(1, 3)) for line in self._statement(depth + 1)]
        self.variables = outer
        return [f"    {line}" for line in lines]

    def _shape(self) -> Shape:
        return self.random.choice(["scalar", "row", "row", "grid"])

    def _declare(self, text: str, kind: Kind, shape: Shape, dtype: str | None) -> str:
        name = self._name("v")
        self.variables.append(Typed(name, kind, shape, dtype))
        if dtype is not None:
            self._assignable.add(name)
        return f"{name} = {text}"

    def _declaration(self) -> list[str]:
        value = self.value(self._shape(), 3)
        return [self._declare(value.text, value.kind, value.shape, value.dtype)]

    def _literal(self) -> list[str]:
        """A number becomes a run-time value when it is assigned."""
        if self.random.random() < 0.5:
            return [self._declare(str(self.random.randint(0, 9)), "signed", "scalar", "int32")]
        return [self._declare(self.random.choice(["0.0", "1.5", "-2.25"]), "float", "scalar", "float32")]

    def _target(self) -> Typed | None:
        targets = [variable for variable in self.variables if variable.text in self._assignable]
        return self.random.choice(targets) if targets else None

    def _assignment(self) -> list[str]:
        target = self._target()
        if target is None:
            return self._declaration()
        return [f"{target.text} = {self.cast(self.value(target.shape, 3), target.dtype).text}"]

    def _augmented(self) -> list[str]:
        target = self._target()
        if target is None:
            return self._declaration()
        operators = ["+=", "-=", "*="] + ([] if target.kind == "float" else ["|=", "&=", "^="])
        shape = self.random.choice(SHAPES[target.shape])
        value = self.cast(self.value(shape, 2), target.dtype)
        return [f"{target.text} {self.random.choice(operators)} {value.text}"]

    def _address(self, pointer: str, shape: Shape) -> str:
        return f"{pointer} + {INDEX[shape]}"

    def _load(self, shape: Shape) -> list[str]:
        pointer, dtype = self.random.choice(list(self._inputs.items()))
        options = ""
        if self.random.random() < 0.5:
            options = f", mask={self.truth(self.random.choice(SHAPES[shape]), 1).text}"
            if self.random.random() < 0.6:
                options += f", other={self.random.choice(['0', '1', '0.0'])}"
        text = f"tl.load({self._address(pointer, shape)}{options})"
        return [self._declare(text, KINDS[dtype], shape, dtype)]

    def _load_something(self) -> list[str]:
        return self._load(self._shape())

    def _store(self, value: Typed) -> list[str]:
        pointer = self.random.choice(list(self._outputs))
        mask = ""
        if self.random.random() < 0.4:
            mask = f", mask={self.truth(self.random.choice(SHAPES[value.shape]), 1).text}"
        return [f"tl.store({self._address(pointer, value.shape)}, {value.text}{mask})"]

    def _store_something(self) -> list[str]:
        return self._store(self.value(self._shape(), 2))

    def _atomic(self) -> list[str]:
        """An atomic sum, whose result is used later."""
        taken = {name: dtype for name, dtype in self._outputs.items() if WIDTH[dtype] >= 32}
        if not taken:
            return self._store_something()
        pointer, dtype = self.random.choice(list(taken.items()))
        shape = self._shape()
        value = self.cast(self.value(shape, 1), dtype)
        mask = f", mask={self.truth(shape, 1).text}" if self.random.random() < 0.4 else ""
        text = f"tl.atomic_add({self._address(pointer, shape)}, {value.text}{mask})"
        return [self._declare(text, KINDS[dtype], shape, dtype)]

    def _for(self, depth: int) -> list[str]:
        name = self._name("i")
        pick = self.random
        if pick.random() < 0.2:
            return [f"for {name} in tl.static_range({pick.choice(['2', 'K'])}):", *self._body(depth)]
        headers = ["range(n)", "range(2, n)", "range(n, 0, -1)", "range(0, n, K)", "tl.range(0, 8, 2)", "range(K)"]
        headers += ["tl.range(0, n, num_stages=3)", "tl.range(n, loop_unroll_factor=2)"]
        header = pick.choice(headers)
        return [f"for {name} in {header}:", *self._body(depth, [Typed(name, "signed", "scalar", "int32")])]

    def _while(self, depth: int) -> list[str]:
        counter = self._name("w")
        lines = [f"{counter} = n", f"while {counter} > {self.random.randint(0, 5)}:"]
        body = self._body(depth, [Typed(counter, "signed", "scalar", "int32")])
        return [*lines, *body, f"    {counter} -= {self.random.randint(1, 3)}"]

    def _if(self, depth: int) -> list[str]:
        pick = self.random
        if pick.random() < 0.15:
            return [f"if K > {pick.randint(0, 4)}:", *self._body(depth), "else:", *self._body(depth)]
        lines = [f"if {self._condition()}:", *self._body(depth)]
        if pick.random() < 0.3:
            lines += [f"elif {self._condition()}:", *self._body(depth)]
        if pick.random() < 0.5:
            return [*lines, "else:", *self._body(depth)] if pick.random() < 0.6 else lines
        # Both branches define a name that lives on.
        shape, dtype = self._shape(), pick.choice(list(KINDS))
        first, second = (self.cast(self.value(shape, 2), dtype).text for _ in range(2))
        condition = self._condition()
        name = self._declare("", KINDS[dtype], shape, dtype).partition(" ")[0]
        return [*lines, f"if {condition}:", f"    {name} = {first}", "else:", f"    {name} = {second}"]

    def _condition(self) -> str:
        first = self.truth("scalar", 1).text
        if self.random.random() < 0.3:
            return f"{first} {self.random.choice(['and', 'or'])} {self.truth('scalar', 1).text}"
        return first if self.random.random() < 0.8 else f"not {first}"

    def _tuple(self) -> list[str]:
        first, second = self.value(self._shape(), 1), self.value(self._shape(), 1)
        name = self._name("t")
        lines = [f"{name} = ({first.text}, {second.text})"]
        if self.random.random() < 0.5:
            lines.append(self._declare(f"{name}[1]", second.kind, second.shape, second.dtype))
            return lines
        left = self._declare("", first.kind, first.shape, first.dtype).partition(" ")[0]
        right = self._declare("", second.kind, second.shape, second.dtype).partition(" ")[0]
        return [*lines, f"{left}, {right} = {name}"]

    def _swap(self) -> list[str]:
        target = self._target()
        others = [v for v in self.variables if target and v.text in self._assignable and v.text != target.text]
        others = [v for v in others if target and (v.shape, v.dtype) == (target.shape, target.dtype)]
        if target is None or not others:
            return self._declaration()
        other = self.random.choice(others)
        return [f"{target.text}, {other.text} = {other.text}, {target.text}"]

    def _call(self) -> list[str]:
        """A call of a function that is made for it: it returns a value, a tuple, or one of two values."""
        pick = self.random
        count = pick.randint(1, 3)
        given = pick.sample(self.variables, min(count, len(self.variables)))
        parameters = [replace(value, text=f"a{i}") for i, value in enumerate(given)]
        outer, self.variables, self.has_index = self.variables, parameters, False
        results: list[Typed] = []
        lines: list[str] = []
        for _ in range(pick.randint(1, 2)):
            shape = pick.choice([value.shape for value in parameters])
            value = self.value(shape, 2)
            results.append(self.cast(value, pick.choice(list(KINDS))))
        texts = ", ".join(result.text for result in results)
        scalars = [value for value in parameters if value.shape == "scalar" and value.kind != "bool"]
        if scalars and pick.random() < 0.4:
            other = [self.cast(self.value(result.shape, 1), result.dtype) for result in results]
            lines += [f"if {pick.choice(scalars).text} > 3:", f"    return {', '.join(o.text for o in other)}", "else:"]
            lines += [f"    return {texts}"]
        else:
            lines += [f"return {texts}"]
        self.variables, self.has_index = outer, True
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


def main() -> None:
    made = program(int(sys.argv[1]))
    stock = Stock()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "program.py"
        write(path, [made])
        reason, _, _ = verdict(stock, path, made.name, library=False)
    stock.close()
    print(made.text)
    print(reason or "equal")


if __name__ == "__main__":
    main()
