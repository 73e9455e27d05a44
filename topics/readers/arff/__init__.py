"""ARFF, the format of Weka and MOA: a header of declared attributes, then rows, dense or sparse.

- Lines are cut into tokens as Weka 3.9 cuts them (`tokens`): any number of blanks, tabs and commas separates
  tokens; quotes are ' or ", with \\ as escape, and keep every character; `%` begins a comment outside quotes.
- Kinds: numeric, real, integer (a range is ignored), `{value, …}`. A string, date or relational attribute is
  an error unless it is left out with `ignore`. A value that is not declared is an error.
- `?` is missing, and `'?'` is the value `?`.
- Sparse rows `{index value, …}`: an attribute that is not named is 0, or the first value if it is nominal.
- The class is the attribute named `class` (in any case) if there is one, else the last; its declared values
  are the classes, in that order. A numeric class is allowed: its distinct numbers are the classes.
- The weight of a row must be 1. Weights of attributes are read and not used.
"""

from topics.readers.arff.dataset import ArffDataset

__all__ = ["ArffDataset"]
