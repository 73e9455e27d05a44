"""Specs of golden models: together they name every plug-in, and give words to every section of a model.

A released file keeps the specs of its release in its JSON. A spec may therefore change here with a new state
version, but not between releases.
"""

from __future__ import annotations

from typing import Any, Final

EAGER: Final[dict[str, Any]] = {"grace_period": 20, "delta": 0.3, "tau": 0.3}
"""Parameters of trees that split after few labels."""
UNDECIDED: Final[dict[str, Any]] = {"grace_period": 10, "delta": 0.01, "tau": 0.0}
"""Parameters of trees whose attempts fail at first, so that schedules have candidates to keep."""
THREE: Final[dict[str, Any]] = {"members": 3, "member": EAGER}
WARY: Final[dict[str, Any]] = {"drift_confidence": 0.4, "warning_confidence": 0.6}
"""Confidences of a forest whose members are replaced after few errors."""
INPUT: Final[dict[str, Any]] = {"name": "input", "window": 50, "reference": 60, "bins": 4, "alpha": 0.5}
UFFT: Final[dict[str, Any]] = {"name": "ufft", "delta": 0.5, "tau": 0.5, "memory": 30}

LEARNERS: Final[dict[str, dict[str, Any]]] = {
    "arf": {"learner": {"name": "arf", **THREE, **WARY}, "query": {"name": "always"}},
    "boct": {
        "learner": {"name": "boct", "capacity": 40},
        "query": "boct_al",
        "budget": {"limit": 0.6},
        "drift": {"name": "ddm", "reaction": "rebuild"},
    },
    "c-tree": {
        "learner": {"name": "c-tree", **EAGER},
        "query": "conf_tree",
        "drift": {"name": "eddm", "reaction": "alert"},
    },
    "cgd": {"learner": {"name": "cgd", **UNDECIDED}, "query": "split_conf_tree", "drift": "cusum"},
    "corrh-tree": {
        "learner": {"name": "corrh-tree", **EAGER},
        "query": {"name": "fixed_uncertainty", "cold_start": 5},
        "drift": "hddm_a",
    },
    "efdt": {
        "learner": {"name": "efdt", **EAGER, "revisit_period": 15},
        "query": "random",
        "drift": "hddm_w",
    },
    "efdt-imac": {
        "learner": {"name": "efdt-imac", **EAGER, "watched_nodes": "both", "check_period": 6},
        "query": "randomised_uncertainty",
        "drift": {"name": "kswin", "window": 40, "recent": 12},
    },
    "efhat": {
        "learner": {"name": "efhat", **EAGER, "drift_confidence": 0.9, "switch_records": 10},
        "query": "selective_sampling",
        "drift": "page_hinkley",
    },
    "h-tree": {
        "learner": {"name": "h-tree", **EAGER},
        "query": {"name": "ask", "anneal": 50},
        "budget": {"name": "window", "limit": 0.7, "window": 20, "respend": True},
        "drift": {"name": "rddm", "stable": 60},
        "evaluation": {"share": 0.1, "worth": 0.01, "window": 9, "every": 50},
        "explain": True,
    },
    "hat": {
        "learner": {"name": "hat", **EAGER, "drift_confidence": 0.9, "switch_records": 10},
        "query": "split",
        "drift": {"name": "seed", "block": 8, "merge_every": 4, "reaction": "alert"},
    },
    "imac": {
        "learner": {"name": "imac", **UNDECIDED, "check_period": 6},
        "query": "variable_uncertainty",
        "drift": {"name": "stepd", "window": 12},
    },
    "last": {
        "learner": {"name": "last", "delta": 0.3, "tau": 0.3, "change_confidence": 0.5},
        "query": {"name": "rate", "window": 30, "anneal": 50},
        "budget": {"limit": 0.7},
        "drift": {"name": "adwin", "clock": 4, "reaction": "alert"},
    },
    "leveraging-bagging": {
        "learner": {"name": "leveraging-bagging", **THREE, "drift_confidence": 0.4},
        "query": {"name": "fixed_uncertainty", "score": "votes"},
    },
    "majority-class": {"learner": "majority-class", "query": "never", "drift": "none"},
    "mcdiarmid-tree": {
        "learner": {"name": "mcdiarmid-tree", **EAGER, "delta": 0.9, "tau": 0.9, "criterion": "gini"},
        "query": "set_size",
        "drift": {"name": "adwin", "clock": 4, "reaction": "reset"},
    },
    "naive-bayes": {"learner": "naive-bayes", "calibration": "platt", "drift": "ddm"},
    "no-change": {"learner": "no-change", "calibration": {"name": "isotonic", "blocks": 6}},
    "osm": {"learner": {"name": "osm", **UNDECIDED}, "conformal": {"alpha": 0.2}},
    "ozaboost": {"learner": {"name": "ozaboost", **THREE}, "class_weights": {"a": 2.0}},
    "plastic": {"learner": {"name": "plastic", **EAGER, "revisit_period": 15}, "query": "random"},
    "sgbt": {
        "learner": {
            "name": "sgbt",
            "members": 3,
            "learning_rate": 0.5,
            "bins": 8,
            "grace_period": 20,
            "delta": 0.3,
            "tau": 0.3,
            "drift_threshold": 2.0,
            "switch_period": 20,
            "drop_period": 60,
        },
        "evaluation": {"per_class": False},
    },
    "srp": {"learner": {"name": "srp", **THREE, **WARY}, "class_weights": "balanced"},
    "ufft": {"learner": {**UFFT, "leaf_model": "idbd", "drift": "adwin"}},
    "ufodt": {"learner": {"name": "ufodt", "n_thresholds": 4}, "acquire": "utility"},
}
"""A spec for each learner, with the query strategies, detectors, calibrators and sets among them."""

OTHERS: Final[dict[str, dict[str, Any]]] = {
    "exact": {
        "learner": {**EAGER, "numeric_observer": "exact", "capacity": 8, "leaf_model": "mc"},
        "acquire": "random",
    },
    "histogram": {
        "learner": {**EAGER, "numeric_observer": "histogram", "bins": 4, "warm_up": 10, "leaf_model": "nb"},
        "acquire": {"name": "path"},
    },
    "histogram-range": {
        "learner": {**EAGER, "numeric_observer": "histogram", "bins": 4, "edges": "range"},
        "drift": [{"name": "ddm", "reaction": "alert"}, {**INPUT, "scores": True}],
    },
    "qda": {
        "learner": {**EAGER, "numeric_observer": "qda", "criterion": "entropy", "leaf_model": "idbd"},
        "drift": INPUT,
    },
    "error": {"learner": {**EAGER, "criterion": "error", "schedule": "every_record"}},
    "km": {"learner": {**EAGER, "criterion": "km", "binary_splits": True}, "max_classes": 2},
    "sorted-error": {"learner": {**EAGER, "criterion": "sorted_error", "numeric_observer": "exact"}},
    "change": {"learner": {**EAGER, "schedule": "change", "change_detector": "hddm_a"}},
    "moa": {"learner": {**EAGER, "compat": "moa"}},
    "moa-efdt": {"learner": {"name": "efdt", **EAGER, "compat": "moa", "revisit_period": 15}},
    "moa-sgbt": {
        "learner": {"name": "sgbt", "members": 3, "grace_period": 20, "compat": "moa"},
        "evaluation": {"every": 0},
    },
    "imac-code": {"learner": {"name": "imac", **UNDECIDED, "check_period": 6, "compat": "imac"}},
    "arf-of-hats": {
        "learner": {
            "name": "arf",
            "members": 2,
            "member": {"name": "hat", **EAGER, "drift_confidence": 0.9, "switch_records": 10},
            "uncertainty": "votes",
        },
        "query": "fixed_uncertainty",
        "drift": "adwin",
    },
    "ufft-of-naive-bayes": {"learner": {**UFFT, "leaf_model": "nb"}, "drift": "ddm"},
    "ufodt-selecting": {
        "learner": {
            "name": "ufodt",
            "feature_selection": True,
            "thresholds": "exhaustive",
            "discount": 0.01,
            "prior": "counts",
        }
    },
}
"""Specs with the other parts of trees, published codes, and parameters that change what a model keeps."""

SPECS: Final = LEARNERS | OTHERS
