"""Text that `nvdisasm` prints, and the message where it cannot be asked."""

from pathlib import Path

import pytest

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.sass import check
from tlx_xdsl.sass.text import disassemble, parse, sections

pytestmark = pytest.mark.quick

TEXT = """
\t.section\t.text.add,"ax",@progbits
.text.add:
\t//## File "kernels.py", line 7
        /*0000*/                   LDC R1, c[0x0][0x28] ;    /* 0x00000a00ff017b82 */
                                                             /* 0x000e620000000800 */
.L_x_1:
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10], !P1 ;  /* 0x0000100402047981 */
                                                             /* 0x002ea8000c1e1d00 */
        /*0020*/               @P0 BRA `(.L_x_1) ;           /* 0x0000001002047981 */
                                                             /* 0x000fe2000c1e1d00 */
"""


def test_instructions():
    code = parse(TEXT)["add"]
    first, second, last = code.instructions
    assert code.labels[".L_x_1"] == 0x10
    assert first.place == ("kernels.py", 7)
    assert first.releases == (1, None)
    assert second.operands == ("R4", "desc[UR4][R2.64+0x10]", "!P1")
    assert (second.name, second.modifiers, second.guard, second.negated) == ("LDG", ("E", "128"), "P0", True)
    assert (second.releases, second.waits) == ((2, None), 0b10)
    assert last.releases == (None, None)
    assert str(second) == "/*0010*/ @!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10], !P1"


def test_sections_of_other_bytes():
    assert sections(b"") == sections(b"\x7fELF\x02" + b"\xff" * 80) == {}


def test_without_nvdisasm(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check, "find_nvdisasm", lambda: None)
    with pytest.raises(CompilationError, match="there is no nvdisasm: stock Triton"):
        check.validate("", b"")
    with pytest.raises(CompilationError, match="cannot run '/nowhere/nvdisasm': No such file or directory"):
        disassemble(b"", Path("/nowhere/nvdisasm"))
