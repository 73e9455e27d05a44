import struct
import tracemalloc
import zlib

import numpy as np
import pytest

from core.errors import OtherReleaseSnapshotError, SnapshotError
from core.kernels import jit
from core.kernels.records import offset
from core.layout.model import ModelHeader
from core.layout.tree import Tree
from core.model import snapshot, validate
from core.model.model import Model
from core.state_version import READABLE, STATE_VERSION
from tests.unit.core.builders import answer, halves, schema_of, spec_of, table_of

SCHEMA = schema_of(None, 3, None, classes="abc")
SIZES = {
    offset(Tree, "words"),
    offset(Tree, "node_capacity"),
    offset(Tree, "slot_capacity"),
    offset(Tree, "node_stride"),
    offset(Tree, "leaf_stride"),
    offset(Tree, "leaves_at"),
    offset(Tree, "nominal_at"),
}


@pytest.fixture(scope="module")
def data():
    table = table_of(SCHEMA, spec_of("nba", drift="ddm", grace_period=50, delta=0.01))
    x, label = halves(1500)
    x[:, 1] = np.floor(3 * x[:, 1])
    answer(table, x, label)
    assert table.model(0).summary().splits > 0
    return table.model(0).snapshot()


def test_restoring_gives_the_same_bytes(data):
    model = Model.restore(data)
    validate.check(model)
    assert model.snapshot() == data
    assert Model.restore(model.snapshot()).snapshot() == data


def test_a_model_keeps_nothing_of_the_bytes_that_it_was_in(data):
    lent = bytearray(data)
    model = Model.restore(memoryview(lent))
    lent[:] = bytes(len(lent))
    assert model.snapshot() == data


def test_models_of_the_same_texts_share_a_plan(data):
    models = [Model.restore(data) for _ in range(3)]
    assert len({id(model.plan) for model in models}) == 1


def test_long_texts_are_not_kept(data):
    """A snapshot may come from anybody, and a spec may have any number of blanks."""
    fixed = snapshot._FIXED.unpack_from(data)
    start, size = snapshot._FIXED.size, 1 << 20
    tag, texts = data[start : start + fixed[3]], data[start + fixed[3] : start + sum(fixed[3:6])]
    spec = snapshot.describe(data).spec
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for blanks in range(size, size + 8):
        head = snapshot._FIXED.pack(*fixed[:4], fixed[4] + blanks, *fixed[5:])
        assert snapshot.describe(head + tag + b" " * blanks + texts).spec == spec
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept - before < size


@pytest.mark.parametrize("word", sorted(SIZES))
def test_a_tree_of_another_size_than_its_plan_has_is_refused(data, word):
    plan, ints = snapshot.read(data)
    ints[ints[offset(ModelHeader, "first")] + word] += 1
    with pytest.raises(SnapshotError, match="must fit its spec and schema"):
        snapshot.check_words(plan, ints)


def test_a_snapshot_has_no_room_to_spare():
    table = table_of(schema_of(None, None, None), spec_of(grace_period=20, delta=0.1))
    answer(table, *halves())
    model = table.model(0)
    restored = Model.restore(model.snapshot())
    assert restored.nbytes < model.nbytes
    assert restored.summary() == model.summary()


def test_the_header_says_what_it_is(data):
    header = snapshot.describe(data)
    assert header.schema is SCHEMA
    assert header.spec.drift.name == "ddm"
    assert "numba-" in header.platform
    assert header.platform.endswith(f" cpu-{jit.cpu_features()}"), "C libraries choose their functions by it"
    assert header.words * 8 < len(data) < header.words * 8 + 2000


@pytest.mark.parametrize(
    ("features", "said"),
    [({}, "plain"), ({"avx2": False, "sse2": True}, "plain"), ({"fma": True, "avx2": True}, "avx2+fma")],
)
def test_processors_whose_last_bits_may_differ_have_names_of_their_own(monkeypatch, features, said):
    monkeypatch.setattr(jit.llvm, "get_host_cpu_features", lambda: features)
    assert "+".join(sorted(jit.cpu_features().split("+"))) == said


@pytest.mark.parametrize("length", [0, 1, 7, 8, 30, 43, 44, 100, 1000, -9, -4, -1])
def test_a_truncated_snapshot_is_refused(data, length):
    with pytest.raises(SnapshotError):
        Model.restore(data[:length])


def test_something_appended_is_refused(data):
    with pytest.raises(SnapshotError, match="cut off, or too long"):
        Model.restore(data + b"\0")


def test_every_altered_byte_is_noticed(data):
    step = max(1, len(data) // 400)
    for position in range(0, len(data), step):
        altered = bytearray(data)
        altered[position] ^= 0x10
        with pytest.raises(SnapshotError):
            Model.restore(bytes(altered))


def test_other_versions_are_refused(data):
    for position in (8, 12):
        altered = bytearray(data)
        altered[position] = STATE_VERSION + 1
        with pytest.raises(
            OtherReleaseSnapshotError,
            match=rf"this build reads format 1 and state versions {', '.join(map(str, READABLE))}$",
        ):
            Model.restore(bytes(altered))


def sealed(body):
    return bytes(body) + struct.pack("<I", zlib.crc32(body))


def test_words_that_do_not_fit_the_spec_are_refused(data):
    """A right checksum is no proof of sizes that a kernel could trust."""
    start = len(data) - 4 - snapshot.describe(data).words * 8
    for word in (0, 1):
        body = bytearray(data[:-4])
        body[start + 8 * word : start + 8 * word + 8] = struct.pack("<q", 10**9)
        with pytest.raises(SnapshotError, match="words must fit"):
            Model.restore(sealed(body))


def test_plug_ins_of_another_build_are_refused(data):
    body = data[:-4].replace(b'"name":"ddm"', b'"name":"mdd"')
    with pytest.raises(SnapshotError, match="unknown drift detector 'mdd'"):
        Model.restore(sealed(body))


def test_other_bytes_are_refused():
    with pytest.raises(SnapshotError, match="must begin with"):
        Model.restore(b"something else altogether, long enough for a header")
