"""Newest word: a learner that this release has and the last one lacks.

If no learner has come yet, ``no-change`` stands for one: in this process, and in an installed release by a
module that is imported at each start.
"""

from __future__ import annotations

import re
from typing import Final

from benchmarks.versions.installed import Installed
from core import state_version
from core.spelling import of_spec

STAND_IN: Final = "no-change"
LATER_RELEASE: Final = '''"""A later release, in which one more learner is new."""

from core import state_version

_newest = state_version.NEW_WORDS.get(state_version.STATE_VERSION, frozenset())
state_version.NEW_WORDS = {
    **state_version.NEW_WORDS,
    state_version.STATE_VERSION: _newest | {"learner.no_change"},
}
'''


def newest_learner(old_version: int) -> str | None:
    """Return the name of a learner that came after a state version; None: there is none."""
    later = frozenset[str]().union(
        *(words for since, words in state_version.NEW_WORDS.items() if since > old_version)
    )
    names = [word.partition(".")[2] for word in sorted(later) if re.fullmatch(r"learner\.\w+", word)]
    return of_spec("learners", names[0]) if names else None


def declare(release: Installed) -> str:
    """Make a learner a word of the newest version, here and in a release; return its name."""
    (release.packages / "later_release.py").write_text(LATER_RELEASE)
    (release.packages / "later_release.pth").write_text("import later_release\n")
    exec(compile(LATER_RELEASE, "later_release", "exec"), {})  # noqa: S102 - the text above
    return STAND_IN
