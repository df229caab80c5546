"""Random kernels with a mistake: the error says on which line."""

import pytest

from tests.oracle import mistakes


@pytest.mark.parametrize("number", range(100))
def test_a_mistake_is_found_on_its_line(number, tmp_path):
    made = mistakes.mistake(number)
    found = mistakes.judge(made, tmp_path / f"mistake_{number}.py")
    assert found is None, f"{made.what}: {found}"
