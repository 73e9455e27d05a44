"""Watch pages: the addresses of the pages on models, partitions and experiments."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Request
from nicegui import ui

from streamapp.web.page_frame import Person
from streamapp.web.pages.compare_page import ComparePage
from streamapp.web.pages.dead_letters_page import DeadLettersPage
from streamapp.web.pages.experiments_page import ExperimentsPage
from streamapp.web.pages.model.model_page import ModelPage
from streamapp.web.pages.model.tabs import FIRST, Asked
from streamapp.web.pages.models_page import ModelsPage
from streamapp.web.pages.partitions_page import PartitionsPage
from streamapp.web.watch.watching import Watching


def add_watch_pages(watching: Watching, person_of: Callable[[Request], Person]) -> None:
    """Register the addresses of these pages."""

    def models(request: Request) -> None:
        ModelsPage(watching, person_of(request))

    def model(request: Request, key: str = "", tab: str = FIRST, kind: str = "", at: str = "") -> None:
        ModelPage(watching, person_of(request), Asked(key, tab, kind, at))

    def compare(request: Request, first: str = "", second: str = "") -> None:
        ComparePage(watching, person_of(request), first, second)

    def dead_letters(request: Request, reason: str = "", key: str = "") -> None:
        DeadLettersPage(watching, person_of(request), reason, key)

    def partitions(request: Request) -> None:
        PartitionsPage(watching, person_of(request))

    def experiments(request: Request) -> None:
        ExperimentsPage(watching, person_of(request))

    ui.page("/models", title="grove: models")(models)
    ui.page("/model", title="grove: model")(model)
    ui.page("/compare", title="grove: compare")(compare)
    ui.page("/dead-letters", title="grove: dead letters")(dead_letters)
    ui.page("/partitions", title="grove: partitions")(partitions)
    ui.page("/experiments", title="grove: experiments")(experiments)
