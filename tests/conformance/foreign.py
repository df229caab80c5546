"""Run TLX kernels of other projects, as they are, on small shapes, each against torch.

    python -m tests.conformance.foreign MIRRORS --target sm_100a --cubin --json out.json

MIRRORS is a folder with git directories (`git clone --mirror`, as pull requests are among the commits): `triton` of
facebookexperimental, `generative-recommenders` of meta-recsys, `triton-runner` of toyaix. `foreign_cases.py` names the
commit and the file of each case. torch must be importable. Nothing of these projects is kept here.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tests.conformance import tutorials
from tests.conformance.harvest import check_out

if TYPE_CHECKING:
    from tests.conformance.tutorial_cases import Case


def load(mirrors: Path, place: str) -> ModuleType:
    """Import a file of a commit: `suite@commit:folder//file`, of which the folder is checked out."""
    suite, _, rest = place.partition("@")
    commit, _, path = rest.partition(":")
    folder, _, file = path.partition("//")
    scratch = tempfile.TemporaryDirectory()
    atexit.register(scratch.cleanup)
    root = Path(scratch.name) / suite
    check_out(mirrors / suite, commit, [folder], root)
    sys.path.insert(0, str(root))
    return tutorials.import_file(root / folder / file)


def _cases() -> Mapping[str, Case]:
    from tests.conformance.foreign_cases import CASES

    return CASES


FOREIGN = tutorials.Collection("tests.conformance.foreign", __doc__, _cases, load)

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    raise SystemExit(tutorials.main(None, FOREIGN))
