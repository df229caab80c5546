"""`tlx mcp`: a server of the Model Context Protocol, whose tools are commands of `tlx`."""

from __future__ import annotations

import argparse

from tlx_xdsl.errors import CompilationError

_EPILOG = """\
The server reads requests from standard input and writes answers to standard output (docs/agents.md). A client that
starts it runs the kernels' files that it names, as this user.

example, in a client's configuration:
  {"mcpServers": {"tlx": {"command": "tlx", "args": ["mcp", "--seconds", "60"]}}}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("--seconds", type=float, default=120.0, help="time of a call, after which it is ended (120)")
    parser.add_argument("--bytes", type=int, default=100_000, help="size of a result, which is cut to it (100000)")


def run(args: argparse.Namespace) -> None:
    """Serve until standard input ends. Raises CompilationError where the package `mcp` is not installed."""
    try:
        from .mcp_server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "pydantic"):
            raise
        raise CompilationError("tlx mcp needs the package mcp: pip install 'tlx-xdsl[mcp]'") from error
    serve(args.seconds, args.bytes)
