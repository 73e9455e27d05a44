"""Words: what each term of the pages means, in one or two sentences, and where the documentation has more."""

from __future__ import annotations

from typing import Final, NamedTuple


class Word(NamedTuple):
    """A term of the pages: its meaning, and the page and heading of the documentation that have more."""

    name: str
    meaning: str
    page: str  # file name in docs/, without its ending
    heading: str = ""  # text of the heading; "": the page as a whole


WORDS: Final[dict[str, Word]] = {
    "model": Word(
        "Model",
        "A decision tree, or several, that learns from the records of one key and predicts their class.",
        "glossary",
        "Models of a task",
    ),
    "request": Word(
        "Request",
        "A record whose class a model asks for, because the answer would teach it more than other records.",
        "active-learning",
    ),
    "card": Word(
        "Card", "A request as you see it: one record, and a button for each class.", "web", "A card"
    ),
    "lease": Word(
        "With annotators",
        "A card that is on somebody's page. For some minutes nobody else gets it.",
        "web",
        "The queue",
    ),
    "utility": Word(
        "Utility",
        "How much a model expects to learn from the answer, as its strategy computes it. Higher comes first.",
        "active-learning",
        "Which strategy",
    ),
    "deadline": Word(
        "Deadline",
        "An answer after this time comes too late: the model does not learn it any more.",
        "web",
        "The queue",
    ),
    "label": Word(
        "Label",
        "The class of a record, as a person or a program has given it.",
        "glossary",
        "Records and topics",
    ),
    "accuracy": Word(
        "Accuracy",
        "The share of records that the model predicted correctly, before it learned their label. The "
        "interval holds the true share with a probability of 95 %.",
        "measures",
    ),
    "drift": Word(
        "Drift alarm",
        "A model noticed that it errs more often than before: the data have probably changed.",
        "glossary",
        "Learners",
    ),
    "split": Word(
        "Split",
        "A leaf of the tree became a test of one feature, because the labels showed that the test helps.",
        "trees",
    ),
    "lag": Word(
        "Lag",
        "Records that are in the topics and that no worker has processed yet. A lag that grows needs a look.",
        "operations",
        "By symptom",
    ),
    "worker": Word(
        "Worker", "A process that reads records, learns and predicts. Several share the work.", "operations"
    ),
    "partition": Word(
        "Partition",
        "A part of each topic. All records of one model are in the same partition, and one worker reads it.",
        "topics",
    ),
    "dead-letter": Word(
        "Dead letter",
        "A record that could not be processed, kept with the reason. It can be sent again after the cause "
        "has been removed.",
        "outcomes",
        "Dead letters",
    ),
    "restore": Word(
        "Restore",
        "A worker built the state of a partition again from its newest snapshot and journal, for example "
        "after a restart.",
        "snapshots",
    ),
    "snapshot": Word(
        "Snapshot",
        "The state of a partition as bytes in a topic. A restore begins with the newest one.",
        "snapshots",
    ),
    "journal": Word(
        "Journal",
        "The order in which a partition's records were processed. Records since the newest snapshot are "
        "processed again by a restore.",
        "journal",
    ),
    "experiment": Word(
        "Experiment",
        "A comparison of models on recorded data, beside the figures of the paper that it repeats.",
        "experiments",
    ),
    "guess": Word(
        "Guess",
        "The class that the model predicts for this record. It is hidden at first, so that it does not "
        "lead you.",
        "web",
        "A card",
    ),
    "values-seen": Word(
        "Among the values seen",
        "Where this value lies between the lowest and the highest value that the model has seen.",
        "web",
        "A card",
    ),
    "agreement-share": Word(
        "Equal to others",
        "How often an answer was the class that another person gave to the same record.",
        "people",
        "Statistics",
    ),
    "gold-question": Word(
        "Gold question",
        "A record whose class is settled, shown like any other card. Its answers show how often a person is "
        "right.",
        "people",
        "Gold questions",
    ),
    "kappa": Word(
        "Kappa",
        "Agreement beyond chance: 1 if people always give the same class, 0 if as often as by chance.",
        "people",
        "Agreement",
    ),
    "alpha": Word(
        "Alpha",
        "Agreement beyond chance of any number of people, in which each answer has the same weight.",
        "people",
        "Agreement",
    ),
    "review": Word(
        "Review",
        "A decision about a record to which annotators gave different classes, or whose class is doubtful.",
        "people",
        "Review",
    ),
    "pause": Word(
        "Pause",
        "A person who is paused gets no cards until an operator resumes them. The reason stands beside it.",
        "people",
        "Pausing",
    ),
}
"""Key of a hint → its word. The page /words lists all."""


def anchor(heading: str) -> str:
    """Return the anchor that the documentation gives a heading.

    >>> anchor("How good is the model?")
    'how-good-is-the-model'
    """
    kept = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in " -")
    return "-".join(kept.split())


def address_of(word: Word, docs: str) -> str:
    """Return the address of a word's chapter below the address of the documentation site.

    >>> address_of(WORDS["card"], "https://docs.example/grove/")
    'https://docs.example/grove/web.html#a-card'
    """
    heading = f"#{anchor(word.heading)}" if word.heading else ""
    return f"{docs.rstrip('/')}/{word.page}.html{heading}"
