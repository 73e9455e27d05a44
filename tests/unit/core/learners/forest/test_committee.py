"""Committees: what the members of a forest say to query strategies is what a plain count of them says."""

import dataclasses
import math

import numpy as np
import pytest

from core.active.queries.rate import scored
from core.kernels.jit import kernel, start_of
from core.layout.model import ModelHeader
from core.learners.forest import committee
from core.model.pool import survey
from core.model_table import ON_REQUEST
from core.spec import Spec
from core.tree.conditions import end_of
from tests.naive.rows import mixed
from tests.unit.core.builders import FORESTS, QUERIES, answer, schema_of, table_of


@kernel("float64(float64[::1], int64[::1], int64)")
def entropy_of(words, votes, classes):
    """Count the votes, and return their entropy; words: float64[COMMITTEE_FIELDS + class]."""
    counted, own = start_of(words), start_of(words[committee.COMMITTEE_FIELDS + classes :])
    committee.begin(counted, classes)
    own[0] = 1.0
    for vote in votes:
        committee.count_vote(counted, classes, vote, own)
    return committee.vote_entropy(counted, classes, float(classes))


@pytest.mark.parametrize(
    ("votes", "classes", "expected"),
    [
        ([0, 0, 0, 0], 2, 0.0),
        ([0, 1, 0, 1], 2, 1.0),
        ([0, 0, 0, 1], 2, 0.8112781244591328),
        ([7, 3, 3, 7], 10, math.log10(2)),
        (list(range(10)), 10, 1.0),
    ],
)
def test_the_entropy_of_votes(votes, classes, expected):
    words = np.zeros(committee.COMMITTEE_FIELDS + 2 * classes)
    for order in (votes, votes[::-1]):
        entropy = entropy_of(words, np.array(order, dtype=np.int64), classes)
        assert entropy == pytest.approx(expected, abs=1e-12)
        assert entropy <= 1.0


def spec_of(name="arf", query="variable_uncertainty", limit=1.0, **learner):
    return Spec.parse(
        {
            "learner": {"name": name, "members": 5, **learner},
            "query": query,
            "budget": {"name": "count", "limit": limit},
            "evaluation": {"every": 0},
        }
    )


def grown(spec, n=900):
    rows = mixed(n)
    table = table_of(rows.schema(), spec)
    answer(table, rows.x, rows.y, rows.weight)
    return table, rows


def disagreement(model, x):
    """Return the entropy of the members' votes, divided by that of an even one, counted plainly."""
    votes, _ = model.plan.blocks.votes(model.ints, model.first, x)
    cast = [vote for vote in votes.tolist() if vote >= 0]
    shares = [cast.count(c) / len(cast) for c in set(cast)]
    return sum(-share * math.log(share) for share in shares) / math.log(known(model))


def known(model):
    return max(int(ModelHeader.over(model.ints).classes), 2)


def least_certain(model, x, mean=6.0):
    """Return lead and labels of the leaf, of all members', whose bound is the least sure to hold."""
    blocks, leads = model.plan.blocks, []
    for member in blocks.members_at(model.ints, model.first):
        tree = blocks.trees.view(model.ints, member)
        leaf = tree.block.leaf_of(tree.block.node(end_of(tree, x, stop_at_missing=False)))
        seen = np.sort(leaf.seen[: model.schema.n_classes])
        labels = leaf.observed / (1.0 + mean)
        lead = (seen[-1] - seen[-2]) / leaf.observed if labels else 0.0
        leads.append((lead, labels))
    return min(leads, key=lambda lead: lead[0] * math.sqrt(lead[1]))


@pytest.mark.parametrize("name", FORESTS)
def test_scores_are_those_of_a_plain_count_of_the_members(name):
    """Of rows of a pool: by shares, by votes, and whether all leaves are beyond doubt."""
    by_shares, rows = grown(spec_of(name))
    by_votes, _ = grown(spec_of(name, uncertainty="votes"))
    x = np.ascontiguousarray(rows.x[:80])
    shares = answer(by_shares, x, mode=3).probability
    model = by_votes.model(0)
    expected = [disagreement(model, record) for record in x]
    assert len(set(np.round(expected, 9))) > 2
    k = known(model)
    assert survey(by_shares.model(0), x, "variable_uncertainty").score == pytest.approx(
        1 - shares.max(axis=1)
    )
    scores = survey(model, x, "variable_uncertainty").score
    assert scores == pytest.approx(np.array(expected) * (1.0 - 1.0 / k))
    t = int(ModelHeader.over(model.ints).labels) + 1
    leaves, _ = grown(spec_of(name, query="conf_tree"))
    leaves_and_votes, _ = grown(spec_of(name, query={"name": "conf_tree", "score": "votes"}))
    for one_model, is_by_votes in ((leaves.model(0), False), (leaves_and_votes.model(0), True)):
        scores_of_model = survey(one_model, x, "conf_tree").score
        for row, record in enumerate(x):
            lead, labels = least_certain(one_model, record, one_model.spec.learner.poisson)
            if is_by_votes:
                lead = min(lead, 1.0 - expected[row])
            width = math.sqrt(math.log(k * t * t) / (2.0 * labels)) if labels else math.inf
            assert scores_of_model[row] == pytest.approx(width / (width + 0.5 * lead) if labels else 1.0), row


def test_a_stream_asks_where_the_members_disagree():
    """Record by record: a share that stands for the entropy lies below the threshold, or nothing is asked."""
    query = {"name": "fixed_uncertainty", "threshold": 0.8, "cold_start": 0}
    table, rows = grown(spec_of(query=query, uncertainty="votes"))
    model, asked = table.model(0), []
    for x in rows.x[:150]:
        share = 1.0 - disagreement(model, np.ascontiguousarray(x)) * (1.0 - 1.0 / known(model))
        answers = answer(table, x, mode=ON_REQUEST, label=[-1])
        assert bool(answers.asked[0]) == (share < 0.8)
        asked.append(bool(answers.asked[0]))
    assert 0 < sum(asked) < len(asked)


STUMPS = {
    "poisson": 1.0,
    "leaf_attributes": 1,
    "drift_confidence": 0,
    "warning_confidence": 0,
    "member": {"name": "h-tree", "grace_period": 800, "leaf_model": "mc"},
}
"""Each member knows one of two attributes, and no leaf is in doubt; together they disagree."""


@pytest.mark.parametrize("query", QUERIES)
def test_disagreement_changes_what_strategies_ask_that_look_at_a_place_and_nothing_else(query):
    x = np.random.default_rng(1).random((2700, 2))
    label = (x.sum(axis=1) > 1.0).astype(int)
    asked_by = {}
    for uncertainty in ("shares", "votes"):
        spec = spec_of(query=query, limit=0.6, uncertainty=uncertainty, **STUMPS)
        table = table_of(schema_of(None, None), spec)
        answer(table, x[:2400], label[:2400])
        asked_by[uncertainty] = answer(table, x[2400:]).asked
    same = np.array_equal(asked_by["shares"], asked_by["votes"])
    assert same == (spec.query.columns == 0)


def test_one_member_that_learns_each_record_once_is_in_doubt_where_its_tree_is():
    alone = {"members": 1, "poisson": 0.0, "leaf_attributes": 100, "drift_confidence": 0}
    alone |= {"warning_confidence": 0}
    forest = spec_of(query="conf_tree", limit=0.5, **alone)
    tree = dataclasses.replace(forest, learner=dataclasses.replace(forest.learner.member))
    rows = mixed(1500)
    asked = []
    for spec in (forest, tree):
        table = table_of(rows.schema(), spec)
        asked.append(answer(table, rows.x, rows.y, rows.weight, mode=ON_REQUEST).asked)
    assert np.array_equal(*asked)
    assert 0 < asked[0].sum() < len(asked[0])


def test_every_strategy_with_a_score_is_looked_at():
    assert {"variable_uncertainty", "conf_tree"} < set(scored())
