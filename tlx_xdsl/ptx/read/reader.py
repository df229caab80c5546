"""Reader of PTX modules (PTX ISA, "Syntax", "State Spaces, Types, and Variables", "Directives").

What stock Triton emits is read: directives, kernels and functions, predicates, vectors, labels, blocks with registers
of their own (as inline assembly has them), and `.loc`. Debug sections are skipped. What is not known is an error at
its line.
"""

from __future__ import annotations

from .body import read_body
from .faults import PtxError
from .syntax import SIZES, Function, Module, Parameter
from .tokens import Token, Tokens, tokens_of
from .variables import LARGEST, SPACES, read_variables

_NUMBERED = (
    ".reqntid", ".maxntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster", ".maxclusterrank",
)  # fmt: skip
_PLAIN = (".explicitcluster", ".noreturn", ".blocksareclusters")


def read(text: str, filename: str = "<ptx>") -> Module:
    """Read a file of PTX.

    Raises PtxError for what is not known, at its line.
    """
    module = Module(filename, text.split("\n"))
    try:
        _Reader(module, Tokens(module, tokens_of(text, module))).module()
    except RecursionError:
        raise PtxError("the PTX is nested too deeply") from None
    return module


class _Reader:
    """One pass over the tokens."""

    def __init__(self, module: Module, tokens: Tokens):
        self._module = module
        self._tokens = tokens

    # The file --------------------------------------------------------------------------------------------------------

    def module(self) -> None:
        """Read all of it."""
        while self._tokens.next.kind != "end":
            token = self._tokens.next
            if token.kind == "asm":
                self._tokens.take()
                continue
            if token.kind != "word" or not token.text.startswith("."):
                raise self._tokens.error(f"expected a directive, found '{token.text}'")
            self._directive(self._tokens.take())
        if not self._module.version:
            raise self._tokens.error("this is no PTX: it has no '.version'", 1)

    def _directive(self, token: Token) -> None:
        module = self._module
        match token.text:
            case ".version":
                module.version = self._tokens.take().text
            case ".target":
                self._target()
            case ".address_size":
                self._check_address_size(token.line)
            case ".file":
                self._file()
            case ".section":
                self._section()
            case ".visible" | ".extern" | ".weak" | ".common":
                pass
            case ".entry":
                self._function(token.line, is_entry=True)
            case ".func":
                self._function(token.line, is_entry=False)
            case text if text.removeprefix(".") in SPACES:
                for variable in read_variables(self._tokens, text.removeprefix("."), token.line):
                    module.variables[variable.name] = variable
            case text:
                raise self._tokens.error(f"the directive '{text}' is not known", token.line)

    def _check_address_size(self, line: int) -> None:
        if self._tokens.integer() != 64:
            raise self._tokens.error("only addresses of 64 bits are known", line)

    def _target(self) -> None:
        self._module.target = self._tokens.word()
        while self._tokens.accept(","):
            self._tokens.word()

    def _file(self) -> None:
        number = self._tokens.integer()
        if self._tokens.next.kind != "string":
            raise self._tokens.error(f"expected a path, found '{self._tokens.next.text}'")
        self._module.files[number] = self._tokens.take().text[1:-1]
        while self._tokens.accept(","):
            self._tokens.integer()

    def _section(self) -> None:
        """Skip a debug section."""
        self._tokens.word()
        self._tokens.expect("{")
        depth = 1
        while depth:
            token = self._tokens.take()
            if token.kind == "end":
                raise self._tokens.error("a section has no end")
            depth += {"{": 1, "}": -1}.get(token.text, 0)

    # Functions -------------------------------------------------------------------------------------------------------

    def _parameters(self) -> list[Parameter]:
        found: list[Parameter] = []
        self._tokens.expect("(")
        while not self._tokens.accept(")"):
            line = self._tokens.next.line
            kind = self._tokens.word()
            if kind not in (".param", ".reg"):
                raise self._tokens.error(f"expected a parameter, found '{kind}'", line)
            alignment = 0
            type_ = "b8"
            while self._tokens.next.text.startswith(".") and self._tokens.next.kind == "word":
                word = self._tokens.word()
                if word == ".align":
                    alignment = self._tokens.integer()
                elif word.removeprefix(".") in SIZES:
                    type_ = word.removeprefix(".")
                elif word not in (".ptr", ".global", ".shared", ".const", ".local", ".noalias"):
                    raise self._tokens.error(f"'{word}' of a parameter is not known", line)
            name, size = self._tokens.word(), SIZES[type_]
            if self._tokens.accept("["):
                size *= self._tokens.integer()
                self._tokens.expect("]")
            if not 0 <= size <= LARGEST:
                raise self._tokens.error(f"'{name}' has {size} bytes, which is too many", line)
            found.append(Parameter(name, size, max(alignment, SIZES[type_]), type_))
            if not self._tokens.accept(",") and self._tokens.next.text != ")":
                raise self._tokens.error(f"expected ',', found '{self._tokens.next.text}'")
        return found

    def _function(self, line: int, *, is_entry: bool) -> None:
        results = self._parameters() if self._tokens.next.text == "(" else []
        function = Function(self._tokens.word(), is_entry, line, results=results)
        if self._tokens.next.text == "(":
            function.parameters = self._parameters()
        while self._tokens.next.text in (*_NUMBERED, *_PLAIN):
            name = self._tokens.word()
            numbers = [] if name in _PLAIN else [self._tokens.integer()]
            while name not in _PLAIN and self._tokens.accept(","):
                numbers.append(self._tokens.integer())
            function.directives[name.removeprefix(".")] = tuple(numbers)
        if self._tokens.accept(";"):
            function.has_body = False
            self._module.functions.setdefault(function.name, function)
            return
        read_body(self._tokens, function)
        self._module.functions[function.name] = function
