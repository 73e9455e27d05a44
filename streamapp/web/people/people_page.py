"""People page: figures of annotators, their agreement, and who is paused; annotators see their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from fastapi import Request
from nicegui import ui

from streamapp.people.annotator_statistics import Figures
from streamapp.people.answer_overlap import ModelAgreement, PairAgreement
from streamapp.people.coefficients import Agreement
from streamapp.people.pauses import Pause
from streamapp.web.clock import now_ms
from streamapp.web.formatting import cut, number
from streamapp.web.layout.data_table import Cell, Column, DataTable, Row, link_cell, number_cell, text_cell
from streamapp.web.layout.headings import heading
from streamapp.web.layout.times import relative
from streamapp.web.page_frame import Person, frame
from streamapp.web.people.people_figures import DAYS, PeopleFigures
from streamapp.web.users import OPERATOR
from streamapp.web.watch.watching import confirmed

LOOK_S: Final = 5.0
DAYS_OF_PERSON: Final = 30
REASON_MAX: Final = 500
_FIGURES: Final = {
    "answers": Column("Answers", numeric=True),
    "seconds": Column("Seconds", numeric=True),
    "agreement": Column("Equal to others", numeric=True, explained="agreement-share"),
    "gold": Column("Gold right", numeric=True, explained="gold-question"),
    "declined": Column("Declined", numeric=True),
    "undone": Column("Taken back", numeric=True),
}
PEOPLE: Final = {
    "annotator": Column("Annotator"),
    "state": Column("Gets cards", explained="pause"),
    **_FIGURES,
}
OF_DAYS: Final = {"day": Column("Day (UTC)", short=True), **_FIGURES}
MODELS: Final = {
    "key": Column("Model"),
    "records": Column("Records", numeric=True),
    "fleiss": Column("Fleiss' kappa", numeric=True, explained="kappa"),
    "krippendorff": Column("Krippendorff's alpha", numeric=True, explained="alpha"),
}
CLASSES: Final = {**MODELS, "key": Column("Class")}
PAIRS: Final = {
    "first": Column("Annotator"),
    "second": Column("Annotator"),
    "key": Column("Model"),
    "records": Column("Records", numeric=True),
    "agreed": Column("Same class", numeric=True),
    "cohen": Column("Cohen's kappa", numeric=True, explained="kappa"),
}
BOARD: Final = {"annotator": Column("Annotator"), "answers": Column("Answers", numeric=True)}
NO_ANSWER: Final = "Nobody has answered in these days. Answers are given on the page Label."
NO_OVERLAP: Final = (
    "No record has answers of two people. With 'grove web --overlap 0.1' two people answer a tenth of them."
)


class PeoplePage:
    """Everybody's figures, for operators."""

    def __init__(self, figures: PeopleFigures, person: Person, *, has_users: bool) -> None:
        """Make the elements; the first tick fills them."""
        self._figures, self._person = figures, person
        with frame("/people", person, has_users=has_users, wide=True):
            heading("People")
            self._days = ui.select([*DAYS], value="7 days", label="Period", on_change=self.tick)
            self._days.classes("grove-select")
            self.people = DataTable(
                "Annotators", PEOPLE, key="annotator", empty=NO_ANSWER, sort_by="answers", descending=True
            )
            heading("Agreement on the same records, by model", 2)
            self.models = DataTable(
                "Agreement by model", MODELS, key="key", empty=NO_OVERLAP, sort_by="records", descending=True
            )
            ui.label(
                "1: the answers are always equal; 0: as often as by chance. In brackets the interval of 95 %."
            ).classes("grove-muted")
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self.tick, once=True)

    async def tick(self) -> None:
        """Show the present figures."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        now, days = now_ms(), DAYS.get(str(self._days.value), 1)
        everybody = await asyncio.to_thread(self._figures.everybody, days, now)
        models = await asyncio.to_thread(self._figures.models, now)
        if everybody is None or models is None:
            return  # the application ends
        rows = [_person_row(figures, self._figures.pause_of(figures.annotator), now) for figures in everybody]
        shown = {figures.annotator for figures in everybody}
        for pause in self._figures.paused():
            if pause.annotator not in shown:
                rows.append(_person_row(_nothing(pause.annotator), pause, now))
        self.people.show(rows)
        self.models.show([_model_row(model) for model in models])


class ModelPeoplePage:
    """The agreement on the records of one model, by class and by pair, for operators."""

    def __init__(self, figures: PeopleFigures, person: Person, key: str, *, has_users: bool) -> None:
        """Make the elements; the first tick fills them."""
        self._figures, self._person, self._key = figures, person, key
        with frame("/people", person, has_users=has_users, wide=True):
            heading(f"Agreement on the records of {cut(key, 100)}")
            ui.link("All people", "/people")
            heading("By class, each beside all other classes together", 2)
            self.classes = DataTable("Agreement by class", CLASSES, key="key", empty=NO_OVERLAP)
            heading("By pair of annotators", 2)
            self.pairs = _pair_table()
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self.tick, once=True)

    async def tick(self) -> None:
        """Show the present figures."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        classes = await asyncio.to_thread(self._figures.classes, self._key)
        pairs = await asyncio.to_thread(self._figures.pairs, key=self._key)
        if classes is None or pairs is None:
            return  # the application ends
        self.classes.show([_model_row(model) for model in classes])
        self.pairs.show([_pair_row(pair) for pair in pairs])


class OnePersonPage:
    """The figures of one person by day; an operator may pause and resume them."""

    def __init__(
        self, figures: PeopleFigures, person: Person, annotator: str, *, has_users: bool, is_own: bool
    ) -> None:
        """is_own: the person looks at their own figures and changes nothing."""
        self._figures, self._person, self._annotator, self._is_own = figures, person, annotator, is_own
        with frame("/people", person, has_users=has_users, wide=True):
            heading("My figures" if is_own else f"Figures of {cut(annotator, 100)}")
            self._state = ui.label().props("role=status").classes("grove-text")
            self._said = ui.label().props("role=alert aria-live=assertive").classes("text-weight-bold")
            if not is_own:
                ui.link("All people", "/people")
                with ui.row().classes("items-end w-full"):
                    self._reason = ui.input("Reason").props(f"maxlength={REASON_MAX}").classes("grow")
                    self._change = ui.button(on_click=self.change).props("no-caps outline")
            self.days = DataTable(
                "Figures by day", OF_DAYS, key="day", empty=NO_ANSWER, sort_by="day", descending=True
            )
            if not is_own:
                heading("Agreement with others on the same records", 2)
                self.pairs = _pair_table()
            elif figures.leaderboard:
                heading("Answers of the last 7 days", 2)
                self.board = DataTable(
                    "Answers of everybody", BOARD, key="annotator", empty=NO_ANSWER, sort_by="answers",
                    descending=True,
                )  # fmt: skip
        ui.timer(LOOK_S, self.tick)
        ui.timer(0.0, self.tick, once=True)

    async def tick(self) -> None:
        """Show the present figures."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        now = now_ms()
        pause = self._figures.pause_of(self._annotator)
        if self._is_own:
            self._state.set_text(self._figures.why_paused(self._annotator) or "You get cards.")
        else:
            self._state.set_text(
                "Gets cards."
                if pause is None
                else f"Paused {relative(pause.at_ms, now)} by {pause.user}: {pause.reason}"
            )
            self._change.set_text("Pause" if pause is None else "Resume")
        by_day = await asyncio.to_thread(self._figures.person, self._annotator, DAYS_OF_PERSON, now)
        if by_day is None:
            return  # the application ends
        self.days.show([{"day": text_cell(str(figures.day)), **_cells(figures)} for figures in by_day])
        if not self._is_own:
            pairs = await asyncio.to_thread(self._figures.pairs, annotator=self._annotator)
            if pairs is not None:
                self.pairs.show([_pair_row(pair) for pair in pairs])
        elif self._figures.leaderboard:
            everybody = await asyncio.to_thread(self._figures.everybody, DAYS["7 days"], now)
            if everybody is None:
                return
            self.board.show(
                [
                    {"annotator": text_cell(figures.annotator), "answers": number_cell(figures.answers)}
                    for figures in everybody
                ]
            )

    async def change(self) -> None:
        """Pause the person, or resume them, after a confirmation."""
        if not self._person.signed_in() or self._person.role != OPERATOR:
            return
        is_pause = self._figures.pause_of(self._annotator) is None
        reason = str(self._reason.value or "").strip()[:REASON_MAX]
        if is_pause and not reason:
            self._said.set_text("A pause needs a reason, which the person reads; type it in the field.")
            return
        question = (
            f"{self._annotator} gets {'no cards for now' if is_pause else 'cards again'}. Is this right?"
        )
        if not await confirmed(question):
            return
        await asyncio.to_thread(
            self._figures.note,
            *(self._annotator, self._person.annotator),
            pause=is_pause,
            reason=reason or "an operator has resumed them",
            now=now_ms(),
        )
        self._said.set_text("Noted; it has its effect when the topic of audit entries has it.")


def _pair_table() -> DataTable:
    return DataTable(
        "Agreement by pair", PAIRS, key="pair", empty=NO_OVERLAP, sort_by="records", descending=True
    )


def _pair_row(pair: PairAgreement) -> Row:
    return {
        "pair": Cell("\n".join((pair.key, pair.first, pair.second))),
        "first": link_cell(pair.first, person_link(pair.first)),
        "second": link_cell(pair.second, person_link(pair.second)),
        "key": link_cell(cut(pair.key, 60), agreement_link(pair.key)),
        "records": number_cell(pair.cohen.records),
        "agreed": number_cell(pair.agreed),
        "cohen": _coefficient(pair.cohen),
    }


def _nothing(annotator: str) -> Figures:
    return Figures(annotator, None, 0, 0, 0, 0, 0, 0, 0, None)


def _person_row(figures: Figures, pause: Pause | None, now: int) -> Row:
    state = text_cell("yes")
    if pause is not None:
        state = text_cell(f"paused {relative(pause.at_ms, now)}", title=f"by {pause.user}: {pause.reason}")
    return {
        "annotator": link_cell(figures.annotator, person_link(figures.annotator)),
        **_cells(figures),
        "state": state,
    }


def _cells(figures: Figures) -> dict[str, Cell]:
    return {
        "answers": number_cell(figures.answers),
        "seconds": number_cell(figures.seconds),
        "agreement": _share(figures.agreed, figures.compared),
        "gold": _gold(figures),
        "declined": _share(figures.declined, figures.answers),
        "undone": number_cell(figures.undone),
    }


def _share(part: int, n: int) -> Cell:
    """Return a share in per cent, with its counts for the pointer."""
    return Cell("–") if not n else Cell(_percent(part / n), part / n, title=f"{number(part)} of {number(n)}")


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _gold(figures: Figures) -> Cell:
    accuracy = figures.gold_accuracy
    if accuracy is None:
        return Cell("–")
    share, low, high = accuracy
    counts = f"{number(figures.gold_right)} of {number(figures.gold)}"
    return Cell(f"{_percent(share)} ({_percent(low)} to {_percent(high)})", share, title=counts)


def _model_row(model: ModelAgreement) -> Row:
    name = link_cell(cut(model.key, 60), agreement_link(model.key))
    return {
        "key": name if model.label is None else text_cell(model.label),
        "records": number_cell(model.fleiss.records),
        "fleiss": _coefficient(model.fleiss),
        "krippendorff": _coefficient(model.krippendorff),
    }


def _coefficient(figure: Agreement) -> Cell:
    """Return a coefficient with its interval, or why there is none."""
    if figure.value is None:
        return Cell("–", title=figure.reason)
    if figure.low is None or figure.high is None:
        return Cell(f"{figure.value:.2f}", figure.value, title=figure.reason)
    return Cell(f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f})", figure.value)


def person_link(annotator: str) -> str:
    """Return the address of a person's figures.

    >>> person_link("a+b")
    '/people?name=a%2Bb'
    """
    return f"/people?name={quote(annotator, safe='')}"


def agreement_link(key: str) -> str:
    """Return the address of the agreement on a model's records."""
    return f"/people?key={quote(key, safe='')}"


def add_people_pages(
    figures: PeopleFigures, person_of: Callable[[Request], Person], *, has_users: bool
) -> None:
    """Register the address of these pages."""

    def people(request: Request, name: str = "", key: str = "") -> None:
        page_for(figures, person_of(request), name, key, has_users=has_users)

    ui.page("/people", title="grove: people")(people)


def page_for(
    figures: PeopleFigures, person: Person, name: str, key: str, *, has_users: bool
) -> PeoplePage | ModelPeoplePage | OnePersonPage:
    """Make the page of a person's name, of a model or of everybody; annotators always get their own."""
    if person.role != OPERATOR:
        return OnePersonPage(figures, person, person.annotator, has_users=has_users, is_own=True)
    if name:
        return OnePersonPage(figures, person, name, has_users=has_users, is_own=False)
    if key:
        return ModelPeoplePage(figures, person, key, has_users=has_users)
    return PeoplePage(figures, person, has_users=has_users)
