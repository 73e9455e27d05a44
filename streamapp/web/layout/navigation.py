"""Navigation: the pages of the application, with the roles that may see each."""

from __future__ import annotations

from typing import Final, NamedTuple

from streamapp.web.users import OPERATOR, REVIEWER, ROLES, Role

LABEL, WATCH, OPERATE = "Label", "Watch", "Operate"
GROUPS: Final = (LABEL, WATCH, OPERATE)
"""Groups of the navigation, in the order of the page."""
EVERYBODY: Final[frozenset[Role]] = frozenset(ROLES)
REVIEWERS: Final[frozenset[Role]] = frozenset((REVIEWER, OPERATOR))
OPERATORS: Final[frozenset[Role]] = frozenset((OPERATOR,))


class PageEntry(NamedTuple):
    """One page: its address, its name in the navigation, its group, and the roles that may see it."""

    address: str
    name: str
    group: str
    roles: frozenset[Role]
    listed: bool = True  # False: other pages link to it


PAGES: Final = (
    PageEntry("/", "Start", LABEL, EVERYBODY),
    PageEntry("/label", "Label", LABEL, EVERYBODY),
    PageEntry("/sure", "Confirm several", LABEL, EVERYBODY),
    PageEntry("/words", "Words", LABEL, EVERYBODY, listed=False),
    PageEntry("/review", "Review", LABEL, REVIEWERS),
    PageEntry("/people", "People", LABEL, EVERYBODY),
    PageEntry("/models", "Models", WATCH, OPERATORS),
    PageEntry("/model", "Model", WATCH, OPERATORS, listed=False),
    PageEntry("/compare", "Compare models", WATCH, OPERATORS, listed=False),
    PageEntry("/experiments", "Experiments", WATCH, OPERATORS),
    PageEntry("/dead-letters", "Dead letters", OPERATE, OPERATORS),
    PageEntry("/partitions", "Partitions", OPERATE, OPERATORS),
)
"""All pages. A new page needs one entry here: navigation and guard read it."""


def listed_pages(role: Role) -> list[PageEntry]:
    """Return the pages that the navigation of a role has."""
    return [page for page in PAGES if page.listed and role in page.roles]


def may_see(role: Role, path: str) -> bool:
    """Return whether a role may open a path; a path that is not in PAGES is for operators.

    >>> may_see("annotator", "/label"), may_see("annotator", "/models"), may_see("annotator", "/label/x")
    (True, False, False)
    """
    return role == OPERATOR or any(page.address == path and role in page.roles for page in PAGES)
