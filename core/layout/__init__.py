"""The layout of plans, models and trees: records of words with fields by name.

Importing the package defines the names of all these records in signatures of kernels.
"""

from core.layout import learning as learning
from core.layout import model as model
from core.layout import plan as plan
from core.layout import tree as tree
