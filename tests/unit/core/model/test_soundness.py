"""Words that no kernel may see are refused at every door, and the sentence says which they are."""

import importlib
import struct
import zlib

import numpy as np
import pytest

from core import problems, registry
from core.active.queries import rate
from core.drift import adwin, hddm_a, kswin, rddm, seed, stepd
from core.errors import SnapshotError
from core.kernels.records import offset
from core.layout.curve import MOST_INTERVALS, LearningCurve
from core.layout.model import EVALUATION_ROWS, EvaluationCounters, ModelHeader
from core.layout.plan import PlanRecord
from core.layout.tree import ABSENT, LEAF_FIELDS, TREE_HEADER, Leaf, Node, Tree
from core.learners import dispatch as learners
from core.learners.hoeffding.schedules._imac import state as candidates
from core.model import file as model_file
from core.model import snapshot, soundness
from core.model.model import Model
from core.model_table import ModelTable
from core.state_version import STATE_VERSION
from core.tree import allocation
from tests.fuzz import models, mutate
from tests.unit.core.builders import answer

FAR = 1 << 40


def section(name):
    """Return where a section of a model begins, by the name of its position in the plan."""
    return lambda model, words: int(getattr(model.plan.record, name))


def tree(word):
    """Return a word of the main tree's header."""
    return lambda model, words: int(ModelHeader.over(words).first) + word


def root(word):
    return tree(TREE_HEADER + word)


def record(word):
    """Return a word of the leaf record of the last node."""

    def place(model, words):
        t = int(ModelHeader.over(words).first)
        last = (
            t
            + TREE_HEADER
            + int(words[t + offset(Tree, "nodes")] - 1) * int(words[t + offset(Tree, "node_stride")])
        )
        leaf = t + int(words[t + offset(Tree, "leaves_at")])
        return (
            leaf
            + int(words[last + offset(Node, "slot")]) * int(words[t + offset(Tree, "leaf_stride")])
            + word
        )

    return place


def beyond(place, words):
    """Return the word so many behind another one."""
    return lambda model, given: place(model, given) + words


def bits(number):
    return int(np.float64(number).view(np.int64))


def candidate(row):
    """Return a word of the first candidate of the first leaf record that has one."""

    def place(model, words):
        t, plan = int(ModelHeader.over(words).first), model.plan.record
        room = candidates.most_candidates(int(plan.attributes))
        for slot in range(int(words[t + offset(Tree, "slots")])):
            state = (
                t
                + int(words[t + offset(Tree, "leaves_at")])
                + slot * int(words[t + offset(Tree, "leaf_stride")])
            )
            state += int(plan.schedule_state)
            if words[state + offset(candidates.ImacState, "count")] > 0:
                rows = state + candidates.HEADER + 2 * int(plan.attributes)
                return state if row is None else rows + row * room
        raise AssertionError("no leaf has candidates")

    return place


def nominal_count(model, words):
    """Return the first count of a value in the leaf record of the last node."""
    t = int(ModelHeader.over(words).first)
    return record(0)(model, words) + int(words[t + offset(Tree, "nominal_at")])


NEXT, BY_CODE = offset(rate.RateState, "next"), rate.FIXED_WORDS - rate.CODES
ROWS_USED, WIDTH = (offset(adwin.AdwinState, name) for name in ("rows_used", "width"))
EVALUATION, DETECTOR = section("evaluation"), section("detector_state")


def counter(name):
    """Return a word of the evaluation section by its name."""
    return beyond(EVALUATION, offset(EvaluationCounters, name))


CASES = [
    ("numeric", lambda m, w: offset(ModelHeader, "records"), -1, "counters must be"),
    ("numeric", lambda m, w: offset(ModelHeader, "classes"), 3, "classes must be"),
    ("numeric", lambda m, w: offset(ModelHeader, "level"), 3, "level must be"),
    ("numeric", lambda m, w: offset(ModelHeader, "background_stale"), 2, "stale"),
    ("halves", section("values_seen"), 1, "values seen must be"),
    ("numeric", counter("next"), FAR, "position in the window"),
    ("numeric", counter("count"), -1, "evaluated predictions"),
    ("numeric", counter("importance"), bits(np.nan), "sums over sampled"),
    ("numeric", beyond(EVALUATION, EvaluationCounters.SIZE + EVALUATION_ROWS * 2), -1, "window counts"),
    (
        "curve",
        beyond(section("curve"), offset(LearningCurve, "intervals")),
        MOST_INTERVALS,
        "learning curve",
    ),
    ("curve", beyond(section("curve"), offset(LearningCurve, "step")), FAR, "learning curve"),
    ("curve", beyond(section("curve"), LearningCurve.SIZE), bits(np.nan), "learning curve"),
    ("curve", lambda m, w: offset(ModelHeader, "interval_end"), 5, "learning curve"),
    ("drift=adwin", beyond(DETECTOR, ROWS_USED), bits(1e12), "adwin: rows in use must be"),
    ("drift=adwin", beyond(DETECTOR, adwin.FIRST_ROW), bits(1e12), "adwin: buckets of a row must be"),
    ("drift=adwin", beyond(DETECTOR, WIDTH), bits(7.5), "adwin: inputs in the window must be"),
    ("drift=ddm", DETECTOR, bits(0.0), "ddm: inputs plus one must be"),
    ("drift=eddm", beyond(DETECTOR, 6), bits(9.0), "eddm: level must be"),
    ("drift=page_hinkley", DETECTOR, bits(np.nan), "page_hinkley: inputs must be"),
    ("drift=cusum", DETECTOR, bits(-1.0), "cusum: inputs must be"),
    ("drift=hddm_a", DETECTOR, bits(np.inf), "hddm_a: inputs must be"),
    (
        "drift=hddm_a",
        beyond(DETECTOR, offset(hddm_a.HddmAState, "low_n")),
        bits(1e9),
        "hddm_a: inputs before a cut",
    ),
    ("drift=hddm_w", beyond(DETECTOR, 1), bits(2.0), "hddm_w: sums of squared weights"),
    (
        "drift=kswin",
        beyond(DETECTOR, offset(kswin.KswinState, "n")),
        bits(1e9),
        "kswin: inputs in the window",
    ),
    ("drift=kswin", beyond(DETECTOR, offset(kswin.KswinState, "oldest")), bits(100.0), "kswin: the place of"),
    (
        "drift=kswin",
        beyond(DETECTOR, offset(kswin.KswinState, "older_errors")),
        bits(-1.0),
        "kswin: errors must",
    ),
    ("drift=kswin", DETECTOR, bits(0.5), "kswin: inputs must be a whole"),
    ("drift=rddm", beyond(DETECTOR, offset(rddm.RddmState, "kept")), bits(7001.0), "rddm: kept inputs must"),
    ("drift=rddm", beyond(DETECTOR, offset(rddm.RddmState, "first")), bits(7000.0), "rddm: the places of"),
    ("drift=rddm", beyond(DETECTOR, offset(rddm.RddmState, "warned_at")), bits(0.5), "rddm: the places of"),
    ("drift=rddm", DETECTOR, bits(0.0), "rddm: inputs plus one"),
    ("drift=seed", beyond(DETECTOR, offset(seed.SeedState, "blocks")), bits(257.0), "seed: blocks must be"),
    (
        "drift=seed",
        beyond(DETECTOR, offset(seed.SeedState, "width")),
        bits(0.5),
        "seed: inputs in the window",
    ),
    ("drift=seed", DETECTOR, bits(np.nan), "seed: inputs must be"),
    (
        "drift=stepd",
        beyond(DETECTOR, offset(stepd.StepdState, "recent_n")),
        bits(31.0),
        "stepd: recent inputs",
    ),
    ("drift=stepd", beyond(DETECTOR, offset(stepd.StepdState, "next")), bits(-1.0), "stepd: the place of"),
    ("drift=stepd", DETECTOR, bits(-1.0), "stepd: earlier inputs"),
    ("query=variable_uncertainty", section("query_state"), bits(np.nan), "the threshold must be"),
    ("query=rate", beyond(section("query_state"), NEXT), FAR, "rate: records held must be"),
    ("query=rate", beyond(section("query_state"), BY_CODE), 7, "rate: counts of codes must equal"),
    ("budget=window", section("budget_state"), bits(-1.0), "window: recent requests"),
    ("leaf_model=nb", nominal_count, bits(np.nan), "nominal: counts of values must be finite"),
    ("leaf_model=nb", nominal_count, bits(-np.inf), "nominal: counts of values must be finite"),
    ("leaf_model=nb", nominal_count, bits(-1.0), "nominal: counts of values must be finite"),
    ("numeric_observer=exact", record(LEAF_FIELDS + 2), bits(99.0), "exact: the number of values"),
    ("numeric_observer=exact", record(LEAF_FIELDS + 4 + 16), bits(5.0), "exact: classes of the values"),
    ("numeric_observer=histogram", section("shared"), bits(1e9), "histogram: first values"),
    ("imac-waits", candidate(None), FAR, "imac: the number of candidates"),
    ("imac-waits", candidate(candidates.ATTRIBUTE), FAR, "imac: each candidate must be"),
    ("imac-waits", candidate(candidates.TEST), ABSENT, "imac: tests of candidates"),
    ("numeric", tree(offset(Tree, "nodes")), 0, "nodes must be from 1 to node_capacity"),
    ("numeric", tree(offset(Tree, "paths")), 2, "main tree: paths must be from 0 to 1"),
    ("numeric", tree(offset(Tree, "free")), FAR, "each leaf record must belong to one node, or be free"),
    ("numeric", tree(offset(Tree, "free")), 0, "each leaf record must belong to one node, or be free"),
    ("numeric", tree(offset(Tree, "leaves")), 99, "leaves, splits and depth"),
    ("numeric", root(offset(Node, "kind")), 7, "main tree: node 0: kind must be from 0 to 4"),
    ("numeric", root(offset(Node, "attribute")), FAR, "node 0: an attribute must be"),
    ("numeric", root(offset(Node, "attribute")), -1, "node 0: an attribute must be"),
    ("numeric", root(offset(Node, "child")), 1 << 36, "node 0: children must lie after"),
    ("numeric", root(offset(Node, "child")), 0, "node 0: children must lie after"),
    ("numeric", root(offset(Node, "children")), 3, "node 0: children must lie after"),
    ("numeric", root(offset(Node, "parent")), 1, "node 0 must be the root"),
    ("numeric", root(offset(Node, "reach")), FAR, "classes of a node must be"),
    ("numeric", record(offset(Leaf, "node")), 0, "leaf record must be the node's own"),
    ("numeric", record(offset(Leaf, "observed")), bits(np.inf), "observed must be a number of at least 0"),
]


@pytest.fixture(scope="module")
def made():
    """Return the models of the combinations, made once."""
    found: dict[str, Model] = {}

    def of(name):
        if name not in found:
            found[name] = models.make(name)
            assert found[name].summary().splits > 0 or "waits" in name
        return found[name]

    return of


@pytest.mark.parametrize(
    ("name", "place", "value", "sentence"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_word_that_kernels_trust_is_refused_by_name(made, name, place, value, sentence):
    model = made(name)
    words = mutate.words_of(model)
    word = place(model, words)
    assert words[word] != value
    crafted = mutate.wrapped(model, mutate.apply(words, [(word, value)]))
    with pytest.raises(SnapshotError, match=sentence):
        Model.restore(crafted)


def test_a_candidate_named_twice_is_refused_at_every_door(made):
    model = made("imac-waits")
    words = mutate.words_of(model)
    assert words[candidate(None)(model, words)] > 1
    first = candidate(candidates.ATTRIBUTE)(model, words)
    crafted = mutate.apply(words, [(first + 1, int(words[first]))])
    with pytest.raises(SnapshotError, match="each candidate must be another attribute"):
        Model.restore(mutate.wrapped(model, crafted))


@pytest.mark.parametrize(("inputs", "is_sound"), [(0, True), (64, True), (7, False), (65, False)])
def test_a_window_without_blocks_is_refused_inside_a_block(made, inputs, is_sound):
    """The next input would be added to a block that is not there, and overwrite the words before it."""
    model = made("drift=seed")
    words = mutate.words_of(model)
    start = DETECTOR(model, words)
    state = [(start + word, 0) for word in range(seed.STATE_WORDS)]
    crafted = mutate.apply(words, [*state, (start, bits(float(inputs)))])
    if not is_sound:
        with pytest.raises(SnapshotError, match="seed: a window without blocks must end where a block"):
            Model.restore(mutate.wrapped(model, crafted))
        return
    restored = Model.restore(mutate.wrapped(model, crafted))
    table = ModelTable()
    table.add(restored)
    columns = restored.schema.n_attributes
    answer(table, np.zeros((1, columns)), [0])
    assert Model.restore(restored.snapshot()).snapshot() == restored.snapshot()


@pytest.mark.parametrize("count", [np.nan, np.inf, -1.0])
def test_a_baseline_refuses_counts_of_values_too(count):
    model = models.make("learner=naive_bayes")
    words = mutate.words_of(model)
    named = model.plan.blocks.named(words, int(ModelHeader.over(words).first))
    named["nominal"][0, 0] = count
    with pytest.raises(SnapshotError, match="nominal must be at least 0 and below inf"):
        Model.restore(mutate.wrapped(model, words))


def test_a_file_is_refused_before_it_can_answer(made, tmp_path):
    """Both kinds of files, and what kernels could live with but no learner makes."""
    model = made("numeric")
    words = mutate.words_of(model)
    path = tmp_path / "model.grove"
    crafted = mutate.wrapped(
        model, mutate.apply(words, [(root(offset(Node, "child"))(model, words), 1 << 36)])
    )
    for data in (crafted, model_file.wrap({"key": "k"}, crafted)):
        path.write_bytes(data)
        with pytest.raises(SnapshotError, match="children must lie after"):
            Model.load(path)
    heavy = record(offset(Leaf, "observed"))(model, words)
    path.write_bytes(mutate.wrapped(model, mutate.apply(words, [(heavy, bits(1e9))])))
    with pytest.raises(SnapshotError, match="must add up to"):
        Model.load(path)
    model.save(path)
    assert Model.load(path).snapshot() == model.snapshot()


@pytest.mark.parametrize("name", models.specs())
def test_what_grew_by_itself_is_sound(made, name):
    model = models.make(name, 60)
    assert soundness.problem(model.plan, model.ints) is None
    assert Model.restore(model.snapshot()).snapshot() == model.snapshot()


WITH_WORDS = [
    (family, name)
    for family in ("drift", "queries", "budgets", "observers", "schedules", "calibrators")
    for name in registry.names(family)
]


@pytest.mark.parametrize(("family", "name"), WITH_WORDS)
def test_a_plugin_with_words_says_what_may_be_wrong_with_them(family, name):
    """PROBLEMS, and a kernel that finds them; none only where no kernel takes a word for an index."""
    module, plugin = registry.module(family, name), registry.plugin(family, name)()
    has_words = {
        "observers": lambda: True,
        "schedules": lambda: bool(plugin.axes(3)),
    }.get(family, lambda: bool(plugin.initial()))()
    if not has_words:
        assert not hasattr(module, "PROBLEMS")
        return
    assert all(sentence.islower() or sentence[0].islower() for sentence in module.PROBLEMS)
    assert bool(module.PROBLEMS) == (hasattr(module, "problem") or hasattr(module, "problem_shared"))


@pytest.mark.parametrize("name", models.specs())
def test_every_word_may_be_wrong(made, name):
    """Each word in turn, with hard values: refused or not, the check itself comes to an end and says what."""
    model = models.make(name, 60)
    plan, words = model.plan, mutate.words_of(model)
    ints = allocation.aligned_words(len(words))
    refused = 0
    for word in range(ModelHeader.SIZE, len(words)):
        for value in (-1, FAR, bits(np.nan), bits(np.inf), int(words[word]) ^ 1):
            ints[:] = words
            ints[word] = value
            try:
                snapshot.check_words(plan, ints)
            except SnapshotError as error:
                refused += 1
                assert len(str(error)) > 40
    assert refused > 5 * ModelHeader.SIZE


def test_deep_texts_are_refused():
    """What json cannot take is refused as what it is, wherever a snapshot holds a text."""
    deep = b"[" * 200_000
    for spec, schema in ((deep, b"{}"), (b"{}", deep), (b"\xff", b"{}"), (b"{}", b"\xff"), (b"{}", b"{}")):
        body = snapshot._FIXED.pack(
            snapshot.MAGIC, snapshot.FORMAT_VERSION, STATE_VERSION, 1, len(spec), len(schema), 0
        )
        body += b"x" + spec + schema
        body += bytes(-len(body) % 8)
        with pytest.raises(SnapshotError, match="spec or schema"):
            Model.restore(body + struct.pack("<I", zlib.crc32(body)))


@pytest.mark.parametrize("head", [b"{", b"\xff", b"[" * 200_000, b"[]", b"", b'{"a":NaN,'])
def test_heads_that_are_no_json_object_are_refused(made, head):
    body = made("numeric").snapshot()
    with pytest.raises(SnapshotError, match="exported model's head"):
        model_file.unwrap(model_file.FRAME.seal(head, (body,)))


def test_problems_fit_their_number():
    modules = [importlib.import_module(name) for name in learners.modules()]
    for sentences in (soundness.SENTENCES, *(getattr(module, "PROBLEMS", ()) for module in modules)):
        assert len(sentences) < 1 << problems.NUMBER_BITS
    assert PlanRecord.SIZE < 1 << problems.PLUGIN_BITS


def test_the_parts_of_a_problem_are_those_it_was_made_of():
    found = problems.in_block(3, problems.at_place(2**31, problems.of_plugin(soundness.LEARNER, 7)))
    assert problems.read(found) == (7, soundness.LEARNER, 2**31, 3)
    assert problems.read(problems.in_block(0, problems.of_plugin(0, 5))) == (5, 0, -1, 0)
