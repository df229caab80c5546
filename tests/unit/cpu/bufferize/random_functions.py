"""Functions on tensors at random, as text: elementwise operations, boxes, views, loops, branches, calls and stores.

Every tensor is 2x2, so that transposed operands are read in another order than results are written.
"""

from __future__ import annotations

import random
from collections.abc import Callable

TENSOR, ROW, MEMORY = "tensor<2x2xf32>", "tensor<2xf32>", "memref<2x2xf32>"
VIEW = "memref<2x2xf32, strided<[2, 1], offset: ?>>"
STORES = 24
"""Results that a function stores at most."""
_SAME, _TURNED = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (j, i)>"


class Generator:
    """Writes one function; every tensor has several users, in any order."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.stores = 0
        self.is_callee = False

    def text(self) -> str:
        """A module with a kernel that loads two tensors and stores some, and functions that it calls."""
        body = ["%zero = arith.constant 0 : index", "%one = arith.constant 1 : index"]
        body += ["%three = arith.constant 3 : index", "%number = arith.constant 1.5 : f32"]
        self.lines = [*body]
        scope = [self._load("x", 0), self._load("x", 4), self._load("x", 8)]
        self._block(scope, 8, 0)
        for value in scope[-3:]:
            self._store(value)
        kernel = "func.func @kernel(%x: memref<*xf32>, %out: memref<*xf32>) {"
        callee = _function("turned", *self._callee(False))
        early = _function("early", *self._callee(True))
        return "\n".join([kernel, *self.lines, "func.return", "}", callee, early])

    def _callee(self, is_early: bool) -> tuple[list[str], str, str]:
        outer, self.lines, self.is_callee = self.lines, [], True
        scope = ["%first", "%second"]
        self._block(scope, 3, 2)
        first, second = self._any(scope), self._any(scope)
        lines, self.lines = self.lines, outer
        if is_early:
            one, other = self._any(scope), self._any(scope)
            types = f"{TENSOR}, {TENSOR}"
            lines += [
                f"cf.cond_br %yes, ^bb1({first}, {second} : {types}), ^bb2",
                f"^bb1(%p: {TENSOR}, %q: {TENSOR}):",
                f"func.return %q, %p : {types}",
                "^bb2:",
            ]
            first, second = one, other
        return lines, first, second

    # --- operations ----------------------------------------------------------------------------------------------

    def _name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def _any(self, scope: list[str]) -> str:
        """A tensor, more often one of the last, so that others are not used any more."""
        return self.random.choice(scope[-3:] if self.random.random() < 0.7 else scope)

    def _add(self, operation: str) -> str:
        name = self._name()
        self.lines.append(f"{name} = {operation}")
        return name

    def _load(self, array: str, offset: int) -> str:
        memory = self._add(f"memref.alloc() : {MEMORY}")
        view = self._view(array, offset)
        self.lines.append(f"memref.copy {view}, {memory} : {VIEW} to {MEMORY}")
        return self._add(f"bufferization.to_tensor {memory} restrict writable : {MEMORY} to {TENSOR}")

    def _load_again(self, scope: list[str], _depth: int) -> None:
        # What was stored may be read, too.
        scope.append(self._load(self.random.choice(["x", "out"]), 4 * self.random.randrange(3)))

    def _view(self, array: str, offset: int) -> str:
        number = self._add(f"arith.constant {offset} : index")
        cast = f"memref.reinterpret_cast %{array} to offset: [{number}], sizes: [2, 2], strides: [2, 1]"
        return self._add(f"{cast} : memref<*xf32> to {VIEW}")

    def _store(self, value: str) -> None:
        if self.stores < STORES:
            view = self._view("out", 4 * self.stores)
            self.stores += 1
            self.lines.append(
                f"bufferization.materialize_in_destination {value} in writable {view} : ({TENSOR}, {VIEW}) -> ()"
            )

    def _block(self, scope: list[str], count: int, depth: int) -> None:
        """Write operations, whose results the scope has after."""
        choices: list[Callable[[list[str], int], None]] = [
            self._generic, self._generic, self._generic, self._accumulate, self._fill, self._insert, self._row,
            self._copy_of_view, self._element, self._reduce,
        ]  # fmt: skip
        if not self.is_callee:
            choices.append(self._load_again)
        if depth < 3:
            choices += [self._for, self._for, self._if, self._while, self._call] if depth < 2 else [self._if]
        for _ in range(count):
            self.random.choice(choices)(scope, depth)
            if depth == 0 and self.random.random() < 0.2:
                self._store(self._any(scope))

    def _body(self, maps: list[str], inputs: list[str], out: str, lines: list[str], result: str) -> str:
        arguments = ", ".join(f"%{name}: f32" for name in "abcdef"[: len(inputs)])
        types = ", ".join([TENSOR] * len(inputs))
        ins = f"ins({', '.join(inputs)} : {types}) " if inputs else ""
        attributes = f'indexing_maps = [{", ".join([*maps, _SAME])}], iterator_types = ["parallel", "parallel"]'
        body = "\n".join([f"^bb0({', '.join(filter(None, [arguments, '%o: f32']))}):", *lines])
        return self._add(
            f"linalg.generic {{{attributes}}} {ins}outs({out} : {TENSOR}) {{\n{body}\n"
            f"linalg.yield {result} : f32\n}} -> {TENSOR}"
        )

    def _empty(self) -> str:
        return self._add(f"tensor.empty() : {TENSOR}")

    def _generic(self, scope: list[str], _depth: int) -> None:
        inputs = [self._any(scope) for _ in range(2)]
        maps = [self.random.choice([_SAME, _SAME, _TURNED]) for _ in inputs]
        # An output that is not read may be any tensor.
        out = self._empty() if self.random.random() < 0.7 else self._any(scope)
        kind = self.random.choice(["arith.subf", "arith.addf", "arith.maximumf"])
        scope.append(self._body(maps, inputs, out, [f"%r = {kind} %a, %b : f32"], "%r"))

    def _accumulate(self, scope: list[str], _depth: int) -> None:
        inputs, map_ = [self._any(scope)], self.random.choice([_SAME, _TURNED])
        out = self._any(scope)
        scope.append(self._body([map_], inputs, out, ["%r = arith.subf %o, %a : f32"], "%r"))

    def _fill(self, scope: list[str], _depth: int) -> None:
        out = self._empty() if self.random.random() < 0.7 else self._any(scope)
        scope.append(self._add(f"linalg.fill ins(%number : f32) outs({out} : {TENSOR}) -> {TENSOR}"))

    def _insert(self, scope: list[str], _depth: int) -> None:
        place = self.random.choice(["%zero, %one", "%one, %one"])
        scope.append(self._add(f"tensor.insert %number into {self._any(scope)}[{place}] : {TENSOR}"))

    def _row(self, scope: list[str], _depth: int) -> None:
        source, target = self._any(scope), self._any(scope)
        row, to = self.random.randrange(2), self.random.choice(["0", "1", "%one"])
        part = self._add(f"tensor.extract_slice {source}[{row}, 0] [1, 2] [1, 1] : {TENSOR} to {ROW}")
        scope.append(
            self._add(f"tensor.insert_slice {part} into {target}[{to}, 0] [1, 2] [1, 1] : {ROW} into {TENSOR}")
        )

    def _copy_of_view(self, scope: list[str], _depth: int) -> None:
        flat = self._add(f"tensor.collapse_shape {self._any(scope)} [[0, 1]] : {TENSOR} into tensor<4xf32>")
        if self.random.random() < 0.5:
            flat = self._add(f"tensor.insert %number into {flat}[%three] : tensor<4xf32>")
        shape = f"tensor.expand_shape {flat} [[0, 1]] output_shape [2, 2] : tensor<4xf32> into {TENSOR}"
        scope.append(self._add(shape))

    def _element(self, scope: list[str], _depth: int) -> None:
        number = self._add(f"tensor.extract {self._any(scope)}[%one, %zero] : {TENSOR}")
        out = self._empty()
        if self.random.random() < 0.5:
            scope.append(self._add(f"linalg.fill ins({number} : f32) outs({out} : {TENSOR}) -> {TENSOR}"))
            return
        # A body that takes an element of a tensor from outside.
        taken, turned = self._any(scope), "%i = linalg.index 0 : index\n%j = linalg.index 1 : index"
        lines = [turned, f"%t = tensor.extract {taken}[%j, %i] : {TENSOR}", f"%r = arith.addf %t, {number} : f32"]
        out = out if self.random.random() < 0.5 else self._any(scope)
        scope.append(self._body([], [], out, lines, "%r"))

    def _reduce(self, scope: list[str], _depth: int) -> None:
        dim = self.random.randrange(2)
        empty = self._add(f"tensor.empty() : {ROW}")
        start = self._add(f"linalg.fill ins(%number : f32) outs({empty} : {ROW}) -> {ROW}")
        total = self._add(
            f"linalg.reduce ins({self._any(scope)} : {TENSOR}) outs({start} : {ROW}) dimensions = [{dim}] "
            "(%e: f32, %s: f32) {\n%t = arith.addf %e, %s : f32\nlinalg.yield %t : f32\n}"
        )
        spread = f"linalg.broadcast ins({total} : {ROW}) outs({self._empty()} : {TENSOR}) dimensions = [{dim}]"
        scope.append(self._add(spread))

    # --- control flow --------------------------------------------------------------------------------------------

    def _condition(self) -> str:
        return self._add(f"arith.constant {self.random.randrange(2)} : i1")

    def _for(self, scope: list[str], depth: int) -> None:
        starts = [self._any(scope) for _ in range(self.random.randint(1, 3))]
        carried, results = [self._name() for _ in starts], [self._name() for _ in starts]
        pairs = ", ".join(f"{inner} = {start}" for inner, start in zip(carried, starts, strict=True))
        types = ", ".join([TENSOR] * len(starts))
        head = f"scf.for {self._name()} = %zero to %three step %one iter_args({pairs}) -> ({types}) {{"
        self.lines.append(f"{', '.join(results)} = {head}")
        inner = [*scope[-2:], *carried]
        self._block(inner, self.random.randint(1, 5), depth + 1)
        ends = [self._any(inner[2:]) for _ in starts]
        self.lines.append(f"scf.yield {', '.join(ends)} : {types}\n}}")
        scope += results

    def _if(self, scope: list[str], depth: int) -> None:
        condition, count = self._condition(), self.random.randint(1, 2)
        results, types = [self._name() for _ in range(count)], ", ".join([TENSOR] * count)
        self.lines.append(f"{', '.join(results)} = scf.if {condition} -> ({types}) {{")
        for end in ("} else {", "}"):
            inner = list(scope[-4:])
            self._block(inner, self.random.randint(0, 3), depth + 1)
            chosen = ", ".join(self._any(inner) for _ in range(count))
            self.lines.append(f"scf.yield {chosen} : {types}\n{end}")
        scope += results

    def _while(self, scope: list[str], depth: int) -> None:
        start, other = self._any(scope), self._any(scope)
        a, b, count, more, result, second, last = (self._name() for _ in range(7))
        types = f"{TENSOR}, {TENSOR}, index"
        head = f"scf.while ({a} = {start}, {b} = {other}, {count} = %zero) : ({types}) -> ({types}) {{"
        self.lines.append(f"{result}, {second}, {last} = {head}")
        before = [a, b]
        self._block(before, self.random.randint(0, 1), depth + 1)
        self.lines.append(f"{more} = arith.cmpi slt, {count}, %three : index")
        chosen = f"{self._any(before)}, {self._any(before)}"
        c, d, number, following = (self._name() for _ in range(4))
        self.lines.append(f"scf.condition({more}) {chosen}, {count} : {types}\n}} do {{")
        self.lines.append(f"^bb0({c}: {TENSOR}, {d}: {TENSOR}, {number}: index):")
        after = [*scope[-1:], c, d]
        self._block(after, self.random.randint(1, 3), depth + 1)
        self.lines.append(f"{following} = arith.addi {number}, %one : index")
        ends = f"{self._any(after)}, {self._any(after)}"
        self.lines.append(f"scf.yield {ends}, {following} : {types}\n}}")
        scope += [result, second]

    def _call(self, scope: list[str], _depth: int) -> None:
        name, condition = self.random.choice(["turned", "early"]), self._condition()
        operands = f"{self._any(scope)}, {self._any(scope)}, {condition}"
        first, second = self._name(), self._name()
        types = f"({TENSOR}, {TENSOR}, i1) -> ({TENSOR}, {TENSOR})"
        self.lines.append(f"{first}, {second} = func.call @{name}({operands}) : {types}")
        scope += [first, second]


def _function(name: str, lines: list[str], first: str, second: str) -> str:
    head = f"func.func private @{name}(%first: {TENSOR}, %second: {TENSOR}, %yes: i1) -> ({TENSOR}, {TENSOR}) {{"
    constants = ["%zero = arith.constant 0 : index", "%one = arith.constant 1 : index"]
    constants += ["%three = arith.constant 3 : index", "%number = arith.constant 2.5 : f32"]
    return "\n".join([head, *constants, *lines, f"func.return {first}, {second} : {TENSOR}, {TENSOR}", "}"])
