"""Dead letters page: records with the reason why they failed; they are sent again or skipped."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from nicegui import ui

from streamapp.web.clock import now_ms
from streamapp.web.formatting import cut, number
from streamapp.web.layout.data_table import Column, DataTable, Row, link_cell, text_cell, time_cell
from streamapp.web.page_frame import Person
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.watching import (
    Looking,
    Watching,
    carried_out,
    confirmed,
    facts,
    heading,
    model_link,
    watch_frame,
)

LISTED: Final = 200
SOURCES: Final = ("instances", "labels", "feature-values", "controls")
COLUMNS: Final = {
    "time": Column("Time", short=True),
    "reason": Column("Reason"),
    "key": Column("Model"),
    "detail": Column("Why"),
    "record": Column("Record"),
    "at": Column("Dead letter", short=True),
    "act": Column("", sortable=False),
}
EMPTY: Final = (
    "No dead letter is like that. A record that cannot be processed appears here with the reason, and can be "
    "sent again."
)

_BUTTON: Final = """<q-btn flat no-caps label="{label}" :aria-label="'{label} ' + props.row.at"
  @click="$parent.$emit('{event}', props.row.at)" />"""
_ACTIONS: Final = {"show": "Show", "replay": "Send again"}
_BUTTONS: Final = (
    '<q-td :props="props" class="grove-short">'
    + "".join(_BUTTON.format(label=label, event=event) for event, label in _ACTIONS.items())
    + "</q-td>"
)
SHOWN: Final = (
    "at",
    "reason",
    "detail",
    "exception",
    "rows",
    "key",
    "attempts",
    "bytes",
    "value",
    "stacktrace",
)


class DeadLettersPage:
    """The elements of the page in one browser."""

    def __init__(self, watching: Watching, person: Person, reason: str = "", key: str = "") -> None:
        """reason, key: filters with which the page begins."""
        self._watching, self._person = watching, person
        with watch_frame("/dead-letters", person, watching):
            heading("Dead letters", explained="dead-letter")
            with ui.row().classes("items-center"):
                self._reason = ui.input("Reason", value=reason).props("dense outlined maxlength=60 clearable")
                self._key = ui.input("Model", value=key).props("dense outlined maxlength=1024 clearable")
                ui.button("Show", on_click=lambda: self.look(0)).props("no-caps")
                ui.button("Send these again", on_click=lambda: self._replay(None)).props("no-caps outline")
            self._said = ui.label().props("role=alert aria-live=assertive").classes("text-weight-bold")
            self._list = Looking(watching.inspector, self._draw, person)
            self._one = Looking(watching.inspector, self._draw_one, person)
            self._reasons = ui.row().classes("w-full")
            self.table = DataTable(
                "Dead letters", COLUMNS, key="at", empty=EMPTY, sort_by="time", descending=True
            )
            self.table.slot("act", _BUTTONS)
            self.table.table.on("show", lambda event: self._one.look("dead-letter", at=str(event.args)))
            self.table.table.on("replay", lambda event: self._replay(str(event.args)))
            heading("Skip a record that stops its partition", 2)
            ui.label(
                "The record becomes a dead letter, unprocessed. Stop the workers first, and start them again "
                "after it."
            )
            with ui.row().classes("items-center"):
                at = ui.input("PARTITION:OFFSET").props("dense outlined maxlength=40")
                source = ui.select([*SOURCES], value="instances", label="Topic").classes("grove-select")
                source.props("dense outlined")
                ui.button(
                    "Skip", on_click=lambda: self._skip(str(at.value).strip(), str(source.value))
                ).props("no-caps outline")
        ui.timer(0.0, lambda: self.look(15_000), once=True)

    def _wanted(self) -> dict[str, str | None]:
        return {"reason": self._reason.value or None, "key": self._key.value or None}

    async def look(self, fresh_ms: int) -> None:
        """Show the newest dead letters."""
        await self._list.look("dead-letters", fresh_ms=fresh_ms, limit=LISTED, **self._wanted())

    def _draw(self, reply: Found) -> None:
        reasons, rows = reply.answer["reasons"], reply.answer["rows"]
        total = sum(reasons.values())
        self._reasons.clear()
        with self._reasons:
            newest = f"; the newest {LISTED:,} are listed" if total > LISTED else ""
            ui.label(f"{total:,} in all{newest}" if total else "There is none.").props("role=status")
            for name, n in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
                ui.link(f"{cut(name, 60)}: {n:,}", f"/dead-letters?{urlencode({'reason': name})}").classes(
                    "grove-chip"
                )
        now = now_ms()
        self.table.show([_row(row, now) for row in rows])

    def _draw_one(self, reply: Found) -> None:
        letter = reply.answer
        shown = {name: cut(str(letter[name]), 4096) for name in SHOWN if letter.get(name) is not None}
        facts(shown)

    async def _replay(self, at: str | None) -> None:
        """Send one dead letter, or all that match the filter, to their topics again."""
        if not self._person.signed_in():
            return
        selection: dict[str, Any] = {"at": at} if at else self._wanted()
        would, trouble = await self._do("dead letters counted", "replay", dry_run=True, **selection)
        if trouble or not would["sent"]:
            self._said.set_text(
                trouble or f"Nothing can be sent again: {_left(would) or 'no dead letter is like that'}."
            )
            return
        question = f"Send {number(sum(would['sent'].values()))} records to their topics again?"
        if not await confirmed(question):
            return
        outcome, trouble = await self._do("replay dead letters", "replay", dry_run=False, **selection)
        left_out = "" if trouble or not outcome["left"] else f" Left out: {_left(outcome)}."
        self._said.set_text(trouble or f"Sent again: {number(sum(outcome['sent'].values()))}.{left_out}")
        await self.look(0)

    async def _skip(self, at: str, source: str) -> None:
        if not self._person.signed_in():
            return
        record, trouble = await self._do("record looked up", "skip", at=at, source=source, dry_run=True)
        if trouble:
            self._said.set_text(trouble)
            return
        ahead = record["offset"] - record["next"]
        where = f"{number(ahead)} offsets before it" if ahead else "it is the next one"
        size = "no value" if record["bytes"] is None else f"{number(record['bytes'])} bytes"
        what = f"{record['topic']} {record['partition']}:{record['offset']}, {size}; {where}"
        if await confirmed(f"The record {what} becomes a dead letter, unprocessed. Skip it?"):
            _, trouble = await self._do("skip a record", "skip", at=at, source=source, dry_run=False)
            self._said.set_text(
                trouble or "The record becomes a dead letter when a worker reads it; start the workers."
            )

    async def _do(self, action: str, ask: str, **arguments: Any) -> tuple[Any, str]:
        return await carried_out(self._watching, self._person.annotator, action, ask, **arguments)


def _row(row: dict[str, Any], now: int) -> Row:
    key = str(row["key"])
    return {
        "time": time_cell(row["timestamp"], now),
        "reason": text_cell(str(row["reason"])),
        "key": link_cell(cut(key), model_link(key)) if row["key"] is not None else text_cell("none"),
        "detail": text_cell(cut(str(row["detail"]), 200)),
        "record": text_cell(f"{row['topic']} {row['record']}"),
        "at": text_cell(row["at"]),
        "act": text_cell(""),
    }


def _left(outcome: dict[str, Any]) -> str:
    return ", ".join(f"{number(n)}, {why}" for why, n in sorted(outcome["left"].items()))
