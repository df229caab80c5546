"""The text of a module without what says nothing: two equal ones are equal modules, and need not be read."""

import re

_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf"{_STRING}|%[\w$.#-]+")
_LOCATION = re.compile(rf"({_STRING})| loc\((?:#\w+|unknown|{_STRING}(?:\(#\w+\)|:\d+:\d+))\)")
_CONSTANT = re.compile(r" *(%[\w$.#-]+) = (arith\.constant .*)")
_LAUNCH = re.compile(r'^module attributes \{(?:"?ttg\.[\w-]+"? = [^{},]+(?:, )?)+\} \{')


def normalised(text: str) -> str:
    """Return a text without locations, with values named in their order: equal texts are equal modules.

    The constants at the start of a function, whose order says nothing, stand where they are used.
    """
    names: dict[str, str] = {}
    constants: dict[str, str] = {}
    at_start = False
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("#loc"):
            continue
        line = _LAUNCH.sub("module {", _LOCATION.sub(lambda match: match[1] or "", line))
        if line.lstrip().startswith("tt.func "):
            constants.clear()
            at_start = True
        elif at_start and (constant := _CONSTANT.fullmatch(line)):
            constants[constant[1]] = f"<{constant[2]}>"
            continue
        else:
            at_start = False
        lines.append(_TOKEN.sub(lambda token: _name(token[0], names, constants), line))
    return "\n".join(lines)


def _name(token: str, names: dict[str, str], constants: dict[str, str]) -> str:
    if token[0] == '"':
        return token
    return constants.get(token) or names.setdefault(token, f"%{len(names)}")
