"""Stories whose records have every kind and every member of outputs; `wire` writes some records of each.

``wire-kinds-<release>.json`` has those of a release that `wire-<release>.json` lacks. Stories with words of
specs that the release refuses are not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, get_args

import numpy as np
import orjson

from streamapp.worker.task.models.files.exported import write_exported
from streamapp.worker.task.models.files.importing import control_values
from tests.topology.partition import ALWAYS, NOW, QUICK, Partition, Record
from topics import codecs
from topics.columns.records import AuditEntry, Command, Features, ModelEvent

New: TypeAlias = Callable[..., Partition]
"""Makes a partition with a spec and settings, which sends its outputs in some format."""
Story: TypeAlias = Callable[[New], Partition]

TAKEN: Final[dict[str, Any]] = {"prefix": "t.", "partition": 3, "positions": {"instances": 60}}
TREE: Final[dict[str, Any]] = {"learner": QUICK}
MAJORITY: Final[dict[str, Any]] = {"learner": "majority-class"}
HALF: Final[dict[str, Any]] = {"query": "random", "budget": {"name": "count", "limit": 0.5}}
COSTS: Final[dict[str, Any]] = {
    "attributes": [{"name": "x", "cost": 2.5, "range": [0, 10]}, {"name": "y", "thresholds": [3, 6]}],
    "classes": ["low", "high"],
}
ROWS: Final = np.array([[3.0, 0.5], [9.0, 4.5]])


def document(n: int, *, turned: bool = False, labelled: bool = True) -> dict[str, Any]:
    """Return an instance whose class is whether x is above 5, or is not if it is turned."""
    x = n * 7 % 11
    body = {"id": f"i{n}", "features": {"x": x, "y": n * 5 % 7 + 0.5}}
    return body | ({"label": label_of(n, turned=turned)} if labelled else {})


def label_of(n: int, *, turned: bool = False) -> str:
    return ["low", "high"][(n * 7 % 11 > 5) != turned]


def feed(here: Partition, first: int, end: int, *, turned: bool = False, labelled: bool = True) -> None:
    """Send instances in runs of 20; labels come with them, or else 20 instances later."""
    for n in range(first, end, 20):
        run = range(n, min(n + 20, end))
        here.instances(*(document(i, turned=turned, labelled=labelled) for i in run), at=n)
        if not labelled:
            here.labels(*({"id": f"i{i}", "label": label_of(i, turned=turned)} for i in run), at=n)


def in_blocks(here: Partition, at: int) -> Partition:
    """Send two instances packed and as an Arrow block, whose answers have the same format."""
    for form in ("packed", "arrow"):
        features = Features.of(None if form == "packed" else ("x", "y"), ROWS)
        given: dict[str, Any] = {"format": form, "ids": [f"{form}1", f"{form}2"]}
        for value in codecs.encode_instances(features, **given):
            here.feed(Record("instances", b"m", value, at))
    return here


def asking(new: New) -> Partition:
    """Play requests with explanations, a sample for the evaluation, a learning curve, and a drift."""
    evaluation = {"every": 100, "share": 0.2, "worth": 0.01, "window": 40}
    here = new(TREE | HALF | {"evaluation": evaluation, "explain": True, "drift": "ddm"}, pending_keep="all")
    feed(here, 0, 300, labelled=False)
    feed(here, 300, 500, labelled=False, turned=True)
    return in_blocks(here, 900)


def revising(new: New) -> Partition:
    """Play a tree that revises and prunes its splits."""
    learner = {"name": "efdt", "grace_period": 20, "revisit_period": 20, "delta": 0.2, "tau": 0.4}
    here = new({"learner": learner, "query": "never"})
    draw = np.random.default_rng(3).integers(0, 100, (6000, 2)).tolist()
    for start in range(0, 6000, 200):
        rows = [(n, *draw[n]) for n in range(start, start + 200)]
        here.instances(
            *(
                {"id": f"i{n}", "features": {"x": x, "y": y}, "label": str((x if n < 1500 else y) > 50)}
                for n, x, y in rows
            )
        )
    return here


def stopped(new: New) -> Partition:
    """Play a tree that may not grow."""
    here = new({"learner": QUICK | {"max_leaves": 1}, "query": "never"})
    feed(here, 0, 100)
    return here


def pairs(new: New) -> Partition:
    """Play trees for pairs of classes, whose nodes have detectors."""
    here = new({"learner": {"name": "ufft", "delta": 0.5, "tau": 0.5}, "query": "never"})
    feed(here, 0, 300)
    feed(here, 300, 600, turned=True)
    return here


def members(new: New) -> Partition:
    """Play a forest whose members have detectors."""
    forest = {"name": "arf", "members": 3, "member": QUICK}
    here = new({"learner": forest, "query": "never"})
    feed(here, 0, 400)
    feed(here, 400, 800, turned=True)
    return here


def controlled(new: New) -> Partition:
    """Play the controls of a model: it is created, configured, frozen, reset, exported, imported, deleted."""
    here = new(TREE | ALWAYS)
    feed(here, 0, 60)
    store = here.task.models
    file = write_exported(store.record(store.keys.slot("m")), TAKEN)
    here.control("configure", spec={"query": "random"}, at=100)
    for frozen in (True, False):
        here.control("freeze", frozen=frozen, at=101)
    here.control("reset", at=102)
    here.control("delete", at=103)
    here.feed(*(Record("controls", b"m", value, 104) for value in control_values(file, "x", size=2000)))
    return here


def promoted(new: New) -> Partition:
    """Play a challenger that is better, asks where the two disagree, and is promoted by the rule."""
    here = new(MAJORITY | HALF | {"evaluation": {"every": 100}}, pending_keep="all")
    feed(here, 0, 100, labelled=False)
    here.control("challenge", spec=TREE, warm_up=10, at=100)
    feed(here, 100, 120, labelled=False)
    in_blocks(here, 120)
    feed(here, 120, 400, labelled=False)
    here.instances(document(400), at=5000)
    return here


def decided(new: New) -> Partition:
    """Play a challenger that is better, of which a person drops one and promotes none."""
    here = new(MAJORITY | {"query": "never"})
    feed(here, 0, 100)
    here.control("challenge", spec=TREE, warm_up=10, decide="person", at=100)
    feed(here, 100, 1000)
    here.control("drop", at=1000)
    return here


def undecided(new: New) -> Partition:
    """Play a challenge whose labels are used up before the two models differ."""
    here = new(TREE | ALWAYS, pending_keep="all")
    feed(here, 0, 100, labelled=False)
    alike = {"learner": QUICK | {"leaf_model": "mc", "grace_period": 40}}
    here.control("challenge", spec=alike, warm_up=1, max_labels=3, worth=1e-6, at=100)
    for n in range(100, 700, 100):
        feed(here, n, n + 100, labelled=False, turned=n % 200 == 0)
    return here


def buying(new: New) -> Partition:
    """Play a learner that buys features, with the utility of each, and finds its thresholds."""
    here = new(ALWAYS)
    learner = {"name": "ufodt", "hypotheses": 20}
    here.control("create", spec={"learner": learner} | ALWAYS, schema=COSTS)
    feed(here, 0, 60)
    here.instances({"id": "buys", "features": {"unrelated": 1.0}, "label": "low"}, at=100)
    while here.task.open_episodes:
        values = {"id": "buys", "features": dict.fromkeys(here.feature_requests[-1]["features"], 3.0)}
        here.feed(Record("feature_values", b"m", orjson.dumps(values), 101))
    here.control("create", key="sets", spec={"learner": learner | {"warm_up": 12}} | ALWAYS)
    here.instances(*(document(n) for n in range(60)), key="sets", at=102)
    return here


def watched(new: New) -> Partition:
    """Play inputs that change."""
    detector = {"name": "input", "window": 50, "reference": 60, "bins": 5}
    here = new(TREE | {"query": "never", "drift": ["ddm", detector]})
    for start, shift in ((0, 0), (200, 20)):
        for n in range(start, start + 200):
            here.instances({"id": f"i{n}", "features": {"x": n % 10 + shift, "y": n % 7}}, at=n)
    return here


def calibrated(new: New) -> Partition:
    """Play calibrated probabilities and conformal sets."""
    spec = {"calibration": "platt", "conformal": {"alpha": 0.2}, "evaluation": {"every": 100}}
    here = new(TREE | ALWAYS | spec, pending_keep="all")
    feed(here, 0, 300, labelled=False)
    return in_blocks(here, 900)


STORIES: Final[tuple[Story, ...]] = (
    asking,
    revising,
    stopped,
    pairs,
    members,
    controlled,
    promoted,
    decided,
    undecided,
    buying,
    watched,
    calibrated,
)
COMMANDS: Final[tuple[Command, ...]] = get_args(Command)
BODIES: Final[dict[str, dict[str, Any]]] = {
    "create": {"spec": {"learner": "h-tree"}, "schema": COSTS},
    "configure": {"spec": {"query": "never"}},
    "freeze": {"frozen": False},
    "import": {"id": "9f", "part": 1, "parts": 2, "crc": 7, "data": "Z3JvdmV0cnY="},
    "challenge": {"spec": MAJORITY, "warm_up": 10, "decide": "person"},
}
"""Members of commands; the others have none."""
ACTIONS: Final = (
    AuditEntry("e1", "ann", "label", NOW, "m", "i1", "3-1", "yes", "yes", 6.2, "yes", comment="clear"),
    AuditEntry("e2", "ann", "decline", NOW, "m", "i2", "3-2", reason="unreadable"),
    AuditEntry("e3", "ann", "features", NOW, "m", "i3", "3-3-q1", '{"x": 1.5}'),
    AuditEntry("e4", "ann", "skip", NOW, "m", "i4", "3-4"),
    AuditEntry("e5", "ann", "undo", NOW, "m", "i1", "3-1"),
    AuditEntry(
        "e6",
        "agreement",
        "outcome",
        NOW,
        "m",
        "i5",
        "3-5",
        "yes with weight 0.667",
        "yes",
        votes={"ann": "yes", "bob": None},
        prior={"yes": 0.75, "no": 0.25},
        weight=0.667,
        posterior=0.9,
    ),
    AuditEntry("e7", "agreement", "gold", NOW, "m", "i6", "1", gold="yes", votes={"ann": "yes"}),
    AuditEntry("e8", "root", "pause", NOW, detail="accuracy", annotator="ann"),
    AuditEntry("e9", "root", "resume", NOW, annotator="ann"),
    AuditEntry("e10", "cy", "review", NOW, "m", "i7", "3-7", "replaced", "no", comment="blurred"),
    AuditEntry("e11", "agreement", "adjudicated", NOW, "m", "i7", "3-7", gold="no", votes={"ann": "yes"}),
    AuditEntry("e12", "ann", "sign-in", NOW),
    AuditEntry("e13", "ann", "sign-out", NOW),
)
"""An entry of each action."""
TEST: Final[dict[str, Any]] = {"attribute": "x", "test": "numeric", "threshold": 5.5, "category": None}
PRUNED: Final = ModelEvent(
    "pruned",
    "t.labels",
    5120,
    NOW,
    5120,
    20011,
    "i1",
    {
        "action": "pruned",
        "node": 4,
        "depth": 1,
        "pair": None,
        "member": None,
        "former": TEST,
        "merits": [0.0, 0.01],
        "gap": 0.01,
        "bound": 0.005,
        "reason": "gap",
        "labels": 400,
    },
)
"""A split that is taken back, for which a story would need tens of thousands of records."""


def inputs() -> dict[str, list[bytes]]:
    """Return records of every command and action, and labels with features, by topic and format."""
    controls = [(command, BODIES.get(command, {})) for command in COMMANDS]
    corrections = codecs.encode_corrections(
        ["n1", "i2"], ["no", None], ["ann"] * 2, [1.0, 1.0], [{"x": 1.5}, {}]
    )
    return {
        "controls/json": codecs.encode_controls(controls),
        "labels/json": corrections,
        "audit/json": codecs.encode_audit(ACTIONS),
        "model-events/json": codecs.encode_model_events([PRUNED]),
    }
