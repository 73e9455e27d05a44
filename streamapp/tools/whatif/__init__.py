"""Comparison of specs: the log of a model, replayed with its own spec and with an alternative spec.

    journal and topics ──> logged task ──> answers, requests, labels ──────┐
                      └──> alternative task ──> answers, wanted requests ──┴──> comparison, report

Both tasks process the same records in the same order, and nothing is written. If the alternative spec differs
in the learner, its model learns the labels that were requested, where they came: the answers are exact for
this set of labels. If it requests labels in another way, its model learns a label only if the label was
requested in the log, too.
"""
