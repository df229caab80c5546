"""Each feature of the package is tested, and the feature map finds its tests."""

import re
import sys

import pytest

from tests import feature_map
from tests.feature_map import Feature

TABLE = {feature: columns for group in feature_map.table().values() for feature, columns in group.items()}


def test_every_place_of_features_is_read():
    """A folder that has moved would have none."""
    prefixes = {feature.key.partition(".")[0] for feature in TABLE if re.fullmatch(r"\w+\.\w+", feature.key)}
    assert prefixes == {"tl", "tlx", "ttl", "tt", "ttg", "ttng", "ttkernel", "target"}
    assert all(feature_map.table().values())


@pytest.mark.parametrize("feature", TABLE, ids=lambda feature: feature.key)
def test_each_feature_has_a_lit_or_a_unit_test(feature: Feature):
    assert TABLE[feature]["lit"] or TABLE[feature]["unit"]


def test_tests_say_that_they_cover_features_that_exist():
    keys = {feature.key for feature in TABLE}
    unknown = {file.shown: file.covers - keys for file in feature_map.test_files()}
    assert {file: found for file, found in unknown.items() if found} == {}


def test_the_page_has_every_feature():
    shown = re.findall(r"^\| `([^`]+)`", feature_map.page(), re.MULTILINE)
    assert shown == [feature.key for feature in TABLE]


def test_a_person_asks_for_a_feature(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def printed(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["feature_map", *arguments])
        assert feature_map.main() == 0
        return capsys.readouterr().out

    lines = printed("tlx-insert-proxy-fences").splitlines()
    assert lines[0] == "tlx-insert-proxy-fences"
    assert "  lit         tests/filecheck/nvidia/proxy_fences.mlir" in lines
    assert {"ttng.tma: ", "ttng.tmem: "} <= set(re.findall(r"^[\w.]+: ", printed("ttng.t"), re.MULTILINE))
    assert {"tl.math", "tlx run", "ttng.tma"} <= {line.partition(":")[0] for line in printed().splitlines()}


def test_an_unknown_feature_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", ["feature_map", "ttng.nothing"])
    assert feature_map.main() == 2
    assert capsys.readouterr().err == (
        "error: expected a feature's key or a part of one, found 'ttng.nothing'; without a key all are listed\n"
    )
