"""People store: figures of annotators beside a count of all answers, in any order of partitions."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import median_low

import pytest

from streamapp.people import annotator_statistics, answer_overlap
from streamapp.people.annotator_answers import Answer, answer_of
from streamapp.people.coefficients import cohen_kappa, fleiss_kappa, krippendorff_alpha, pattern
from streamapp.people.people_store import KEEP_MS, PeopleStore
from topics.columns.records import AuditEntry

DAY_MS = annotator_statistics.DAY_MS
BEGIN = 20_000 * DAY_MS
PEOPLE = ("ann", "bob", "cy", "dan <b>")
Log = dict[str, list[AuditEntry]]
"""Entries by user, each user's in their order: a topic whose partitions have a user each."""


def drawn(seed: int, actions: int) -> Log:
    """Return what people did with fifteen records of two models, three of them gold questions."""
    draw, log, at_ms = random.Random(seed), defaultdict[str, list[AuditEntry]](list), BEGIN
    for number in range(actions):
        at_ms += draw.randrange(2 * DAY_MS // 20)
        user, record = draw.choice(PEOPLE), draw.randrange(15)
        entry = AuditEntry(f"s-{number}", user, "label", at_ms, f"k{record % 2}", f"i{record}", f"r{record}")
        kind, gold = draw.random(), "a" if record < 3 else None
        if kind < 0.15:
            entry = replace(entry, action="undo")
        elif kind < 0.25:
            entry = replace(entry, action="decline", gold=gold, seconds=draw.randrange(100) / 10)
        elif kind < 0.3:
            entry = replace(entry, action="skip")
        else:
            entry = replace(entry, label=draw.choice("aab"), seconds=draw.randrange(100) / 10, gold=gold)
        log[user] += [entry] * draw.choice((1, 1, 2))  # an entry may come twice
    return log


def told(log: Log, order: random.Random) -> list[AuditEntry]:
    """Return the entries in an order in which the partitions may be read."""
    waiting = {user: list(entries) for user, entries in log.items()}
    entries = []
    while waiting:
        user = order.choice(sorted(waiting))
        entries.append(waiting[user].pop(0))
        if not waiting[user]:
            del waiting[user]
    return entries


@pytest.fixture
def store() -> Iterator[PeopleStore]:
    store = PeopleStore(":memory:")
    yield store
    store.close()


def filled(entries: Sequence[AuditEntry], step: int = 7) -> dict[str, list[tuple[object, ...]]]:
    """Return all tables of a store that got these entries in batches of `step`."""
    store = PeopleStore(":memory:")
    for at in range(0, len(entries), step):
        store.apply(entries[at : at + step], {("audit", 0): at + step})
    with store.reading() as db:
        tables = {
            table: db.execute(f"SELECT * FROM {table}").fetchall() for table in ("answer", "day", "pause")
        }
        for table in ("pace", "pair", "pattern"):
            tables[table] = db.execute(f"SELECT * FROM {table} WHERE n > 0").fetchall()
    store.close()
    return tables


def standing(log: Log) -> list[Answer]:
    """Return the answers that were not taken back; of those to no gold question, the last."""
    stacks = defaultdict[tuple[str, ...], list[Answer]](list)
    for user, entries in log.items():
        for entry in {entry.id: entry for entry in entries}.values():
            stack, answer = stacks[user, entry.request_id or ""], answer_of(entry)
            if entry.action == "undo":
                del stack[-1:]
            elif answer is not None:
                stacks[user, entry.request_id or ""] = [*(stack if answer.gold is not None else []), answer]
    return [answer for stack in stacks.values() for answer in stack]


@pytest.mark.parametrize("seed", range(6))
def test_figures_are_a_count_of_all_answers(store: PeopleStore, seed: int) -> None:
    log = drawn(seed, 120)
    store.apply(told(log, random.Random(seed)), {})
    answers = standing(log)
    with store.reading() as db:
        figures = {each.annotator: each for each in annotator_statistics.by_annotator(db, 0, 1 << 40)}
        by_day = annotator_statistics.by_day(db, 0, 1 << 40)
        models = {each.key: each for each in answer_overlap.agreement_of_models(db, 10)}
        pairs = answer_overlap.agreement_of_pairs(db, 100)
    for name in PEOPLE:
        own = [answer for answer in answers if answer.annotator == name]
        gold = [answer for answer in own if answer.gold is not None and answer.label is not None]
        others = [
            (answer.label == other.label)
            for answer in own
            for other in answers
            if other.annotator != name and other.request_id == answer.request_id
            if answer.gold is None and None not in (answer.label, other.label)
        ]
        person = figures[name]
        assert (person.answers, person.declined) == (len(own), sum(answer.label is None for answer in own))
        assert (person.compared, person.agreed) == (len(others), sum(others))
        assert (person.gold, person.gold_right) == (len(gold), sum(answer.label == "a" for answer in gold))
        assert person.seconds == median_low([answer.seconds or 0.0 for answer in own])
        for day in {answer.at_ms // DAY_MS for answer in own}:
            (of_day,) = [
                each.answers
                for each in by_day
                if each.annotator == name and each.day is not None
                if (each.day.toordinal() - 719_163) == day
            ]
            assert of_day == sum(answer.at_ms // DAY_MS == day for answer in own)
    for key in ("k0", "k1"):
        records = defaultdict[str, dict[str, str]](dict)
        for answer in answers:
            if answer.key == key and answer.gold is None and answer.label is not None:
                records[answer.request_id][answer.annotator] = answer.label
        patterns = Counter(pattern(labels.values()) for labels in records.values() if len(labels) > 1)
        assert models[key].fleiss == fleiss_kappa(patterns)
        assert models[key].krippendorff == krippendorff_alpha(patterns)
        for first, second in combinations(sorted(PEOPLE), 2):
            both = Counter(
                (labels[first], labels[second])
                for labels in records.values()
                if first in labels and second in labels
            )
            of_pair = [each.cohen for each in pairs if each[:3] == (key, first, second)]
            assert of_pair == ([cohen_kappa(both)] if both else [])


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_partitions_and_repeated_entries_make_no_difference(seed: int) -> None:
    log = drawn(100 + seed, 150)
    one_by_one = [entry for user in sorted(log) for entry in log[user]]
    assert (
        filled(told(log, random.Random(1))) == filled(told(log, random.Random(2)), 50) == filled(one_by_one)
    )
    assert filled(one_by_one) == filled(one_by_one + one_by_one), "all of it again"


def test_one_more_answer_reads_only_what_belongs_to_it(store: PeopleStore) -> None:
    def statements(number: int) -> int:
        """Return how many statements the answers of three people to one record take, none of them a scan."""
        ran: list[str] = []
        entry = AuditEntry("", "", "label", BEGIN, "k", f"i{number}", "r", label="a")
        with store.reading() as db:
            db.set_trace_callback(ran.append)
            store.apply([replace(entry, id=f"{number}-{user}", user=user) for user in PEOPLE[:3]], {})
            queries = [sql for sql in ran if sql.startswith("SELECT")]
            plans = [db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall() for sql in queries]
            db.set_trace_callback(None)
        scans = {step[3] for plan in plans for step in plan if step[3].startswith("SCAN")}
        assert scans == {"SCAN pause"}, "one row for each person who was paused"
        return len(ran)

    before = statements(0)
    log = [
        AuditEntry(f"m-{number}", f"q{number % 100}", "label", BEGIN, "k", f"j{number}", "r", label="a")
        for number in range(5_000)
    ]
    store.apply(log, {})
    assert statements(1) == before


def test_a_gold_question_that_comes_again_counts_again(store: PeopleStore) -> None:
    first = AuditEntry("1", "ann", "label", BEGIN, "k", "i", "gold", label="a", gold="a")
    again = replace(first, id="2", at_ms=BEGIN + 1, label="b")
    undo = replace(first, id="3", at_ms=BEGIN + 2, action="undo", label=None, gold=None)
    for entries, counts in (
        ([first, again], (2, 1, 0)),
        ([undo], (1, 1, 1)),
        ([replace(undo, id="4")], (0, 0, 2)),
    ):
        store.apply(entries, {})
        with store.reading() as db:
            (person,) = annotator_statistics.by_annotator(db, 0, 1 << 40)
        assert (person.gold, person.gold_right, person.undone) == counts


def test_old_answers_go_and_the_figures_stay(store: PeopleStore) -> None:
    log = drawn(7, 100)
    store.apply(told(log, random.Random(7)), {})
    with store.reading() as db:
        before = annotator_statistics.by_day(db, 0, 1 << 40), answer_overlap.agreement_of_models(db, 10)
    later = BEGIN + KEEP_MS + 100 * DAY_MS
    store.apply([AuditEntry("late", "ann", "sign-in", later)], {})
    store.tidy(later)
    with store.reading() as db:
        assert db.execute("SELECT count(*) FROM answer").fetchone() == (0,)
        assert (
            annotator_statistics.by_day(db, 0, 1 << 40),
            answer_overlap.agreement_of_models(db, 10),
        ) == before


def test_a_time_of_the_future_deletes_nothing(store: PeopleStore) -> None:
    answer = AuditEntry("1", "ann", "label", BEGIN, "k", "i", "r", label="a")
    store.apply([answer, AuditEntry("2", "eve", "sign-in", BEGIN + 1000 * DAY_MS)], {})
    store.tidy(BEGIN)
    with store.reading() as db:
        assert db.execute("SELECT count(*) FROM answer").fetchone() == (1,)


def test_entries_that_nobody_wrote_are_left_out(store: PeopleStore) -> None:
    good = AuditEntry("1", "ann", "label", BEGIN, "k", "i", "r", label="a", seconds=2.0)
    bad: list[AuditEntry] = [
        replace(good, id=7),  # type: ignore[arg-type]
        replace(good, user=None),  # type: ignore[arg-type]
        replace(good, at_ms="now"),  # type: ignore[arg-type]
        replace(good, at_ms=1 << 60),
        replace(good, at_ms=True),
        replace(good, label=["a"]),  # type: ignore[arg-type]
        replace(good, seconds=float("inf")),
        replace(good, seconds=-1.0),
        replace(good, annotator={}, action="pause"),  # type: ignore[arg-type]
    ]
    store.apply([*bad, good], {})
    with store.reading() as db:
        (person,) = annotator_statistics.by_annotator(db, 0, 1 << 40)
    assert (person.annotator, person.answers, person.seconds) == ("ann", 1, 2.0)


def test_other_topics_and_damaged_files_begin_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "people.sqlite"
    path.write_text("no database")
    answer = AuditEntry("1", "ann", "label", BEGIN, "k", "i", "r", label="a")
    store = PeopleStore(path)
    assert f"{path} is damaged" in caplog.text
    caplog.clear()
    assert not store.begin({"prefix": "t."})
    store.apply([answer], {("audit", 2): 5})
    store.close()
    store = PeopleStore(path)
    assert not caplog.text
    assert not store.begin({"prefix": "t."})
    assert store.positions("audit") == {2: 5}
    assert store.begin({"prefix": "u."})
    assert store.positions("audit") == {}
    with store.reading() as db:
        assert annotator_statistics.by_annotator(db, 0, 1 << 40) == []
    store.close()
