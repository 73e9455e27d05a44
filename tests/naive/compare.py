"""Runs a model of core and its naive twin over the same rows, and compares what both hold in the end."""

import math
from typing import Any

import numpy as np
import pytest

from core.events import Pruned, Split
from core.layout.tree import ABSENT, CATEGORY, LEAF, MULTIWAY, NUMERIC
from core.learners.hoeffding.schedules._imac import state as imac_words
from core.model.model import Model as CoreModel
from core.model_table import LABELLED, ModelTable
from core.observers.gaussian import HIGH, LOW, M2, MEAN, WEIGHT
from core.spec import Spec
from core.tree import views
from tests.naive import queries as naive_queries
from tests.naive.baselines import BASELINES
from tests.naive.boct import BoctAl
from tests.naive.detectors import DETECTORS
from tests.naive.model import Model
from tests.naive.observers import Exact, Histogram
from tests.naive.tree import Options

KINDS = {NUMERIC: "numeric", CATEGORY: "binary", MULTIWAY: "multiway"}
TESTS = {"numeric": "numeric", "category": "binary", "multiway": "multiway"}
CLOSE = 1e-9
ANSWER_SCORES = ("least_confidence", "margin", "entropy")
"""The scores of an answer that its shares give."""
SCORES = {
    "conf_tree": lambda seed: naive_queries.ConfTree(seed),
    "fixed_uncertainty": lambda seed: naive_queries.FixedUncertainty(),
    "selective_sampling": lambda seed: naive_queries.SelectiveSampling(seed),
    "variable_uncertainty": lambda seed: naive_queries.VariableUncertainty(),
}
"""The twin of every strategy whose score records can be ranked by, from the model's seed."""
QUERIES = {
    "always": lambda query, seed: naive_queries.Always(),
    "never": lambda query, seed: naive_queries.Never(),
    "random": lambda query, seed: naive_queries.Random(seed),
    "fixed_uncertainty": lambda query, seed: naive_queries.FixedUncertainty(
        query["threshold"], query["cold_start"]
    ),
    "variable_uncertainty": lambda query, seed: naive_queries.VariableUncertainty(query["step"]),
    "randomised_uncertainty": lambda query, seed: naive_queries.RandomisedUncertainty(seed, query["step"]),
    "selective_sampling": lambda query, seed: naive_queries.SelectiveSampling(seed),
    "conf_tree": lambda query, seed: naive_queries.ConfTree(seed, query["delta"]),
    **dict.fromkeys(
        ("ask", "rate"),
        lambda query, seed: naive_queries.Rate(
            seed,
            SCORES.get(query["score"], SCORES["variable_uncertainty"])(seed),
            query["window"],
            query["explore"],
            query["anneal"],
            query["dependence"],
        ),
    ),
    "set_size": lambda query, seed: naive_queries.SetSize(seed, query["explore"]),
    "boct_al": lambda query, seed: BoctAl(seed, query["delta"], query["explore"]),
    "split": lambda query, seed: naive_queries.Split(
        seed, naive_queries.VariableUncertainty(query["step"]), query["random"]
    ),
    "split_conf_tree": lambda query, seed: naive_queries.Split(
        seed, naive_queries.ConfTree(seed, query["delta"]), query["random"]
    ),
}
"""The twin of every query strategy, from its spec and the model's seed."""
BOUND_PARAMETERS = ("bound", "bound_factor", "mcd_form", "variant", "c")
OBSERVER_PARAMETERS = (
    "numeric_observer",
    "candidates",
    "capacity",
    "bins",
    "warm_up",
    "edges",
    "low",
    "high",
)


def twin_of(spec, stream):
    """Return the naive model of a spec."""
    body = Spec.parse(spec).to_dict()
    learner, query, budget, drift = (body[part] for part in ("learner", "query", "budget", "drift"))
    records: dict[str, Any] = {
        "attributes": list(stream.attributes),
        "open": frozenset(stream.open_values),
        "classes": 0 if stream.open_classes else stream.classes,
    }
    if learner["name"] in BASELINES:
        options = Options(**records, algorithm=learner["name"], moa=learner.get("compat") is not None)
    elif learner["name"] in ("boct", "ufft"):
        shared = {"learner": learner, "seed": body["seed"]}
        options = Options(**records, algorithm=learner["name"], shared=shared)
    else:
        options = tree_options(learner, records)
    budgets = {"count": naive_queries.CountBudget, "window": naive_queries.WindowBudget}
    share = body["evaluation"]["share"]
    return Model(
        options,
        query=QUERIES[query["name"]](query, body["seed"]),
        budget=budgets[budget["name"]](**parameters(budget)),
        detector=DETECTORS[drift["name"]](**parameters(drift)),
        reaction=drift["reaction"],
        window=body["evaluation"]["window"],
        slice_=math.ceil(round(1 / share, 9)) if share else 0,
        seed=body["seed"],
        class_weights=weights_by_label(body.get("class_weights"), stream),
        score=query.get("score") if query.get("score") in ANSWER_SCORES else None,
    )


def weights_by_label(given, stream):
    """Return the class weights of a spec by label; a rule as it is."""
    if not isinstance(given, dict):
        return given
    names = stream.schema().classes
    return {names.index(name): weight for name, weight in given.items() if name in names}


def tree_options(learner, records):
    """Return the options of a twin's tree, from the learner of a spec and what its records look like."""
    return Options(
        **records,
        criterion=learner["criterion"],
        grace_period=learner["grace_period"],
        leaf_model=learner["leaf_model"],
        **{name: learner[name] for name in ("delta", "tau", *BOUND_PARAMETERS) if name in learner},
        **{name: learner[name] for name in OBSERVER_PARAMETERS if name in learner},
        binary_splits=learner["binary_splits"],
        max_branches=learner["max_branches"],
        algorithm=learner["name"].removesuffix("-imac"),
        revisit=learner.get("revisit_period", 0.0),
        watched_nodes=learner.get("watched_nodes", "leaves"),
        change_detector=learner.get("change_detector", "adwin"),
        change_confidence=learner.get("change_confidence", 0.0),
        against_none=learner["name"] in ("last", "efhat"),
        max_branch_length=learner.get("max_branch_length", 1),
        moa=learner["compat"] is not None,
        inherit=learner["compat"] != "imac",
        evidence=learner["evidence"],
        cdt=learner["compat"] == "cdt",
        freeze_null=learner.get("freeze_null", False),
        schedule=learner["schedule"],
        check_period=learner.get("check_period", 0),
        keep_illegal=learner.get("keep_illegal", False),
    )


def parameters(body):
    """Return a plug-in's parameters without its name and the reaction to a drift."""
    return {name: value for name, value in body.items() if name not in ("name", "reaction")}


def core_answers(spec, stream, label=None, mode=LABELLED, size=173):
    """Run core over a stream in small runs; return model, predictions, asked, events with their records."""
    label = stream.y if label is None else label
    table = ModelTable()
    index = table.add(CoreModel.create(Spec.parse(spec), stream.schema(known=0, rows=0)))
    predictions, asked, events = [], [], []
    known = 0
    for first in range(0, len(label), size):
        part = slice(first, first + size)
        if stream.open_values or (stream.open_classes and label[part].max() >= known):
            known = max(known, int(label[part].max()) + 1)
            table.model(index).adopt(stream.schema(known, rows=first + size))
            table.refresh(index)
        rows = len(label[part])
        answers = table.answer(np.full(rows, index), stream.x[part], label[part], stream.weight[part], mode)
        predictions += answers.prediction.tolist()
        asked += answers.asked.tolist()
        events += [(first + event.row, event) for event in answers.events]
    return table.model(index), predictions, asked, events


def splits_of(events):
    """Return the splits as (record, attribute, test, value, weight)."""
    splits = [(record, event) for record, event in events if isinstance(event, Split | Pruned)]
    return [
        (record, -1, "null", 0.0, e.n)
        if isinstance(e, Pruned)
        else (record, e.attribute, TESTS[e.test], e.value, e.n)
        for record, e in splits
    ]


def naive_answers(twin, stream, label=None, on_request=False):
    """Run the twin over a stream; return predictions, asked, splits."""
    label = stream.y if label is None else label
    predictions, asked, splits = [], [], []
    for record, (x, y, weight) in enumerate(
        zip(stream.x.tolist(), label.tolist(), stream.weight.tolist(), strict=True)
    ):
        prediction, is_asked, split = twin.answer(x, y if y >= 0 else None, weight, on_request)
        predictions.append(prediction)
        asked.append(is_asked)
        for change in split if isinstance(split, list) else [split]:
            if change is not None:
                splits.append((record, change.attribute, change.kind, change.value, change.weight))
    return predictions, asked, splits


def first_difference(ours, theirs):
    """Return the first position where two lists differ, None if nowhere."""
    for position, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if one != other:
            return position, one, other
    return None


def assert_same_splits(ours, theirs):
    """Compare splits: the same tests at the same records, on the same evidence."""
    for one, other in zip(ours, theirs, strict=False):
        assert one[:3] == other[:3], (one, other)
        assert one[3:] == pytest.approx(other[3:], rel=CLOSE, abs=CLOSE)
    assert len(ours) == len(theirs), (ours[len(theirs) :], theirs[len(ours) :])


def assert_same_tree(model, naive):
    """Compare tests, class masses, routed weight and every statistic of every leaf."""
    tree = views.tree_view(model.plan, model.ints, model.first)
    pairs = [(0, naive.root)]
    routed = tree.routed
    leaves = 0
    for number, node in pairs:
        kind = int(tree.nodes.kind[number])
        assert_same_list(tree.masses[number], node.distribution)
        if not naive.options.moa:  # MOA's way of routing has no use for it
            assert routed[number] == pytest.approx(node.routed, rel=CLOSE)
        if node.test is None:
            assert kind == LEAF
            leaves += 1
            assert_same_leaf(model, tree, int(tree.nodes.slot[number]), node)
            if tree.shape.revision:
                assert_same_memory(tree, number, node)
            continue
        assert KINDS[kind] == node.test.kind
        assert tree.nodes.attribute[number] == node.test.attribute
        if tree.shape.revision:
            assert_same_memory(tree, number, node)
            if model.spec.learner.watches_inner_nodes:
                assert_same_candidates(model, tree, int(tree.nodes.slot[number]), node)
        assert tree.nodes.value[number] == pytest.approx(node.test.value, rel=CLOSE, abs=CLOSE)
        first = int(tree.nodes.child[number])
        assert_same_children(tree, number, node)
        pairs += [(first + i, child) for i, child in enumerate(node.children) if child is not None]
    summary = model.summary()
    assert (summary.leaves, summary.splits, summary.attempts) == (leaves, naive.splits, naive.attempts)
    assert summary.depth == naive.depth()


def assert_same_memory(tree, number, node):
    """Compare what a node that is revised remembers of its evaluations; an inner node's statistics too."""
    slot = int(tree.nodes.slot[number])
    revision = tree.revisions[slot]
    assert_same_list(tree.seen[slot], node.observed)
    assert revision.evaluations == node.evaluations
    expected = [node.sums.get(a, 0.0) for a in range(len(node.options.attributes))]
    assert revision.merits.tolist() == pytest.approx(expected, rel=1e-7, abs=1e-7, nan_ok=True)
    if node.test is not None and not node.options.moa:
        assert revision.own == pytest.approx(node.test_sum, rel=1e-7, abs=1e-7)


def assert_same_children(tree, number, node):
    """Compare the number of branches; those that do not exist (yet) are absent on both sides."""
    first = int(tree.nodes.child[number])
    branches = int(tree.nodes.children[number])
    there = [tree.nodes.kind[first + i] != ABSENT for i in range(branches)]
    expected = [child is not None for child in node.children]
    assert there == expected + [False] * (branches - len(expected))


def assert_same_leaf(model, tree, slot, node):
    """Compare the statistics of a leaf."""
    assert_same_list(tree.seen[slot], node.observed)
    assert tree.leaf_records.observed[slot] == pytest.approx(sum(node.observed), rel=CLOSE)
    assert tree.leaf_records.attempts[slot] == node.attempts
    assert tree.leaf_records.majority_right[slot] == pytest.approx(node.majority_right, rel=CLOSE)
    assert tree.leaf_records.bayes_right[slot] == pytest.approx(node.bayes_right, rel=CLOSE)
    if node.options.schedule == "imac":
        assert_same_candidates(model, tree, slot, node)
    numeric = [i for i, values in enumerate(node.options.attributes) if values is None]
    if tree.leaf_model:
        assert_same_units(model, [section[slot] for section in tree.leaf_model], node.units)
    for attribute, observer in enumerate(node.observers or []):
        if attribute in numeric:
            assert_same_numeric(tree.numeric[slot][..., numeric.index(attribute)], observer)
        else:
            first, size = model.plan.values_index[attribute]
            for label, counts in enumerate(tree.nominal[slot][:, first : first + size]):
                assert_same_list(counts, observer.counts.get(label, []))


def assert_same_units(model, sections, units):
    """Compare scales, weights, step sizes and traces of the units of a leaf."""
    scale, bias, numeric, nominal = sections
    columns = [i for i, values in enumerate(model.schema.attributes) if values.kind == "numeric"]
    for column, row in zip(columns, scale.T.tolist(), strict=True):
        assert row == pytest.approx(units.scale.get(column, [0.0] * 3), rel=1e-7, abs=1e-7)
    for label in range(len(bias)):
        parts: dict[Any, Any] = {(): bias[label]}
        parts |= {column: numeric[label][:, i] for i, column in enumerate(columns)}
        for attribute, (first, size) in model.plan.values_index.items():
            parts |= {(attribute, code): nominal[label][first + code] for code in range(size)}
        for name, row in parts.items():
            assert row.tolist() == pytest.approx(units.unit(label, name), rel=1e-6, abs=1e-7)


def assert_same_candidates(model, tree, slot, node):
    """Compare IMAC's words: where each attribute is, its candidates' tests, and the masses they were given.

    Gains are left out where they are reckoned only when they can matter; where they follow each record, as
    the authors have it, they are compared, with the masses of the values of a multiway test. Of attributes
    that tell nothing rounding decides which comes first, and where its threshold lies.
    """
    imac = node.imac
    header, attributes, rows, counts, values = (part[slot] for part in tree.schedule)
    count = int(imac_words.ImacState.over(header).count)
    if imac is None or not (imac.built or imac.candidates):
        assert count == 0
        return
    expected = {candidate.attribute: candidate for candidate in imac.candidates}
    merits = imac.potential | {a: candidate.merit for a, candidate in expected.items()}
    tell = [
        a for a, last in enumerate(attributes[:, 1]) if not min(abs(last), abs(merits.get(a, 1.0))) < CLOSE
    ]
    places = attributes.view(np.int64)[:, 0]
    assert [a for a in tell if places[a] == imac_words.POTENTIAL] == [a for a in tell if a in imac.potential]
    assert [a for a in tell if places[a] == imac_words.ILLEGAL] == [a for a in tell if a in imac.illegal]
    assert count == len(expected)
    columns = {int(a): q for q, a in enumerate(rows.view(np.int64)[imac_words.ATTRIBUTE, :count])}
    assert [a for a in tell if a in columns] == [a for a in tell if a in expected]
    for a in set(tell) & set(expected):
        q, candidate = columns[a], expected[a]
        kind = KINDS[int(rows.view(np.int64)[imac_words.TEST, q])]
        if {kind, candidate.kind} == {"binary", "multiway"}:
            continue  # of two values at a leaf either is as good: rounding decides
        assert kind == candidate.kind
        if kind != "multiway":
            assert rows[imac_words.VALUE, q] == pytest.approx(candidate.value, rel=CLOSE, abs=CLOSE)
            for branch, masses in enumerate(candidate.branches):
                assert_same_list(counts[q, branch], masses)
        if imac.authors:
            merit = float(rows[imac_words.MERIT, q])
            assert merit == pytest.approx(candidate.merit, rel=1e-7, abs=1e-7, nan_ok=True)
            if kind == "multiway":
                first, size = model.plan.values_index[a]
                sums = [sum(branch) for branch in candidate.branches]
                assert_same_list(values[first : first + size, 0], sums)


def assert_same_numeric(statistics, observer):
    """Compare what a leaf keeps of one numeric attribute, whatever its observer."""
    if isinstance(observer, Histogram):
        for label, counts in enumerate(statistics):
            assert_same_list(counts, observer.counts.get(label, []))
    elif isinstance(observer, Exact):
        n = int(statistics[0])
        kept = statistics[1:].reshape(3, observer.capacity)
        expected = sorted(observer.records, key=lambda record: record[0])
        assert kept[:, :n].T.tolist() == [list(record) for record in expected]
        assert not kept[:, n:].any()
    else:
        for label in range(len(statistics)):
            assert_same_gaussian(statistics[label], observer, label)


def assert_same_gaussian(statistics, observer, label):
    """Compare weight, mean, squared deviations and range of one class."""
    if label not in observer.weight:
        assert statistics[WEIGHT] == 0.0
        return
    ours = [float(statistics[i]) for i in (WEIGHT, MEAN, M2, LOW, HIGH)]
    theirs = [getattr(observer, name)[label] for name in ("weight", "mean", "m2", "low", "high")]
    scale = max(1.0, abs(theirs[3]), abs(theirs[4]))
    assert ours == pytest.approx(theirs, rel=CLOSE, abs=CLOSE * scale * scale * max(1.0, theirs[0]) * 1e-3)


def assert_same_list(ours, theirs):
    """Compare weights by position; what one list does not reach is 0."""
    padded = list(theirs) + [0.0] * (len(ours) - len(theirs))
    assert all(math.isfinite(weight) for weight in ours)
    assert list(ours) == pytest.approx(padded[: len(ours)], rel=CLOSE, abs=CLOSE)
    assert all(weight == 0.0 for weight in padded[len(ours) :])
