"""Inspection: answers questions about an installation from outside, in a separate process.

`python -m streamapp.tools.inspection` reads one question (JSON) a line on standard input and answers each
with a line on standard output, until its input ends. The web application starts one, so that models are
not rebuilt in the process that serves people. The entry point is `server.py`.
"""
