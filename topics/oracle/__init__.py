"""The oracle: answers label requests, or feature requests, from a data set."""

from topics.oracle.oracle import Oracle
from topics.oracle.oracle_plan import OraclePlan
from topics.oracle.oracle_progress import OracleProgress

__all__ = ["Oracle", "OraclePlan", "OracleProgress"]
