import numpy as np

from core.export import to_text
from core.features import Attribute, Schema
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of


def test_a_leaf_that_has_seen_nothing():
    assert to_text(table_of(schema_of(None)).model(0)) == "(nothing seen)\n"


def test_a_numeric_test():
    table = table_of(Schema.of([Attribute("length")], ["short", "long"]))
    x, label = halves(400, columns=1)
    answer(table, x[:200], label[:200])
    lines = to_text(table.model(0)).splitlines()
    assert lines[0] == "all"
    assert lines[1].startswith("  length <= 0.")
    assert ": short (" in lines[1]
    assert ": long (" in lines[2]
    assert len(lines) == 3


def test_nominal_tests():
    schema = Schema.of([Attribute("colour", "nominal", ("red", "green", "blue"))], ["no", "yes"])
    x = np.arange(200)[:, None] % 3.0
    for binary, expected in (
        (
            False,
            [
                "all",
                "  colour = red: no (67, 0)",
                "  colour = green: yes (0, 67)",
                "  colour = blue: yes (0, 66)",
            ],
        ),
        (True, ["all", "  colour = red: no (67, 0)", "  colour != red: yes (0, 133)"]),
    ):
        table = table_of(schema, spec_of(binary_splits=binary))
        answer(table, x, (x[:, 0] > 0).astype(int))
        assert to_text(table.model(0)).splitlines() == expected
