"""The table of docs/testing.md is current, and each feature that it lists is tested."""

import pytest

from tests import feature_map
from tests.feature_map import Feature

TABLE = {feature: columns for group in feature_map.table().values() for feature, columns in group.items()}


def test_the_table_of_the_page_is_current():
    assert feature_map.PAGE.read_text(encoding="utf-8") == feature_map.page(), "run: python -m tests.feature_map"


@pytest.mark.parametrize("feature", TABLE, ids=lambda feature: feature.key)
def test_each_feature_has_a_lit_or_a_unit_test(feature: Feature):
    assert TABLE[feature]["lit"] or TABLE[feature]["unit"]


def test_tests_say_that_they_cover_features_that_exist():
    keys = {feature.key for feature in TABLE}
    unknown = {file.shown: file.covers - keys for file in feature_map.test_files()}
    assert {file: found for file, found in unknown.items() if found} == {}
