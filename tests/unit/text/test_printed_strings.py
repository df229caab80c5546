"""Our printer writes strings at once, and as xDSL does byte by byte."""

from io import StringIO

from hypothesis import given, strategies as st
from xdsl.printer import Printer as XDSLPrinter

from tlx_xdsl.text.printer import Printer


def printed(printer_class: type[XDSLPrinter], data: bytes, text: str) -> str:
    stream = StringIO()
    printer = printer_class(stream)
    with printer.indented():
        printer.print_bytes_literal(data)
        printer.print_string(text)
        printer.print_string("end")
    return stream.getvalue()


@given(st.binary(max_size=40), st.text(max_size=40))
def test_literals_and_lines(data: bytes, text: str):
    assert printed(Printer, data, text) == printed(XDSLPrinter, data, text)


def test_every_byte():
    every = bytes(range(256))
    assert printed(Printer, every, "") == printed(XDSLPrinter, every, "")
