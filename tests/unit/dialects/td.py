"""Reads what Triton's TableGen files say about operations, enumerations, attributes and types.

This is no TableGen: it knows the few forms that Triton's own files use.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

OP_CLASSES = {"TT_Op": "tt", "TTG_Op": "ttg", "TTNG_Op": "ttng"}
COMMENT = re.compile(r"//[^\n]*")
CODE = re.compile(r"\[\{.*?\}\]", re.DOTALL)
DEF = re.compile(r"^def\s+(\w+)\s*:\s*(\w+)\s*<", re.MULTILINE)
ENUM_CASE = re.compile(r'I32(?:Bit)?EnumAttrCase<\s*"(\w+)",\s*(\w+),\s*"([^"]+)"')
CLOSING = {"<": ">", "(": ")", "{": "}", "[": "]"}


@dataclass(frozen=True)
class Argument:
    """An operand, result, attribute or parameter: its TableGen type and its name, which may be empty."""

    type: str
    name: str

    def is_a(self, wrapper: str) -> bool:
        """Return whether the type is `wrapper<...>`, inside of `Arg<...>` too."""
        return re.match(rf"(?:Arg<\s*)?{wrapper}\s*<", self.type) is not None


@dataclass
class Definition:
    """One `def` of a file."""

    name: str
    kind: str
    """The class that it is of."""
    head: str
    """The arguments of that class."""
    body: str

    def argument_list(self, what: str) -> list[Argument]:
        """The dag `let <what> = (ins ...)`."""
        match = re.search(rf"let\s+{what}\s*=\s*\(", self.body)
        if match is None:
            return []
        text = balanced(self.body, match.end() - 1)
        text = re.sub(r"^\s*(ins|outs|region)\b", "", text)
        return [argument(part) for part in split(text) if part.strip()]

    @property
    def mnemonic(self) -> str:
        """The first string among the arguments of the class."""
        match = re.search(r'"([\w.]+)"', self.head)
        assert match is not None, self.name
        return match[1]


@dataclass
class TableGen:
    """Definitions of a directory of files."""

    definitions: list[Definition] = field(default_factory=list)

    @property
    def enums(self) -> dict[str, tuple[str, dict[str, tuple[int, str]]]]:
        """The C++ name and the cases (number and keyword by symbol) of each enumeration, by its TableGen name."""
        found = {}
        for definition in self.definitions:
            if definition.kind in ("I32EnumAttr", "I32BitEnumAttr"):
                cases = {
                    symbol: (int(number, 0), keyword) for symbol, number, keyword in ENUM_CASE.findall(definition.head)
                }
                found[definition.name] = (re.findall(r'"(\w+)"', definition.head)[0], cases)
        return found

    @property
    def operations(self) -> dict[str, Definition]:
        """The operations by their full names."""
        return {
            f"{OP_CLASSES[definition.kind]}.{definition.mnemonic}": definition
            for definition in self.definitions
            if definition.kind in OP_CLASSES
        }

    def is_attribute(self, argument: Argument) -> bool:
        """Return whether an argument of an operation is an attribute, not an operand."""
        inner = re.findall(r"\w+", argument.type)
        return any(word.endswith(("Attr", "AttrOf", "Enum")) or word in self.enums for word in inner)


def balanced(text: str, start: int) -> str:
    """Return the text between the bracket at `start` and its partner."""
    stack: list[str] = []
    in_string = False
    for position in range(start, len(text)):
        char = text[position]
        if char == '"' and text[position - 1] != "\\":
            in_string = not in_string
        elif in_string:
            continue
        elif char in CLOSING:
            stack.append(CLOSING[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                return text[start + 1 : position]
    raise ValueError(f"unbalanced {text[start]} in {text[start : start + 80]!r}")


def split(text: str) -> list[str]:
    """`text` at its outermost commas."""
    parts, depth, last, in_string = [], 0, 0, False
    for position, char in enumerate(text):
        if char == '"':
            in_string = not in_string
        elif in_string:
            continue
        elif char in CLOSING:
            depth += 1
        elif char in CLOSING.values():
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[last:position])
            last = position + 1
    return [*parts, text[last:]]


def argument(text: str) -> Argument:
    """`TYPE:$name` or `TYPE`."""
    match = re.match(r"(.*?):\s*\$(\w+)\s*$", text.strip(), re.DOTALL)
    return Argument(match[1].strip(), match[2]) if match else Argument(text.strip(), "")


def read(directory: Path) -> TableGen:
    """All definitions of the .td files of `directory`."""
    result = TableGen()
    for path in sorted(directory.rglob("*.td")):
        # Code blocks hold commas and brackets of C++; formats are in them, which nothing here reads.
        text = CODE.sub('""', COMMENT.sub("", path.read_text()))
        for match in DEF.finditer(text):
            head = balanced(text, match.end() - 1)
            rest = text[match.end() + len(head) + 1 :]
            body = ""
            brace, semicolon = rest.find("{"), rest.find(";")
            if brace != -1 and (semicolon == -1 or brace < semicolon):
                body = balanced(rest, brace)
            result.definitions.append(Definition(match[1], match[2], head, body))
    return result
