"""Inspection: what is asked about an installation from outside, answered by a process of its own.

`python -m streamapp.tools.inspection` takes a question a line (JSON) on standard input and answers each with
a line
on standard output, until its input ends. The web application has one: models are rebuilt there, not in the
process that waits for people. The door is `server.py`.
"""
