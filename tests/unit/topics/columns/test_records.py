"""Records as columns, reasons and exceptions."""

import numpy as np
import pytest

from topics.codecs import Limits
from topics.columns.records import Features, Malformed, Predictions, RawRecords
from topics.errors import CatalogueError, CodecError, DatasetError, Reason, TopicsError


def test_features_of_are_contiguous_float64_rows_in_order() -> None:
    columns = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(3, 2))
    features = Features.of(["a", "b"], columns, {1: ["x", None, "y"]})
    assert features.names == ("a", "b")
    assert features.rows.tolist() == [0, 1, 2]
    assert features.values.dtype == np.float64
    assert features.values.flags.c_contiguous
    assert features.strings == {1: ["x", None, "y"]}
    assert len(features) == 3


def test_lengths() -> None:
    raw = RawRecords("t", 0, [7, 9], [0, 0], [None, b"k"], [b"", None], [(), ()])
    assert len(raw) == 2
    predictions = Predictions(
        ("a",),
        ["i"],
        np.zeros(1, dtype=np.int32),
        np.ones((1, 1)),
        np.zeros(1, dtype=np.int64),
    )
    assert len(predictions) == 1


def test_malformed_compare_by_content_and_reasons_are_plain_strings() -> None:
    assert Malformed(1, Reason.NOT_JSON, "d") == Malformed(1, Reason.NOT_JSON, "d")
    assert Reason.NOT_JSON == "not-json"  # type: ignore[comparison-overlap]
    assert f"{Reason.TOO_MANY_ROWS}" == "too-many-rows"


def test_slugs_are_lower_case_words_with_hyphens() -> None:
    for reason in Reason:
        assert reason.value == reason.name.lower().replace("_", "-")


def test_exceptions_have_one_base_and_a_data_set_error_names_its_place() -> None:
    assert issubclass(CodecError, TopicsError)
    assert issubclass(CatalogueError, TopicsError)
    assert str(DatasetError("class missing", "a.arff", 12)) == "a.arff:12: class missing"
    assert str(DatasetError("class missing")) == "class missing"


@pytest.mark.parametrize("name", ["record_max_bytes", "block_max_rows"])
def test_limits_below_one_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=0 must be at least 1"):
        Limits(**{name: 0})
