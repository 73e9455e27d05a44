"""Dead letters page: records with the reason why they failed; they are sent again or skipped."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

from streamapp.web.formatting import cut, moment, number
from streamapp.web.page_frame import Person
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.watching import (
    Looking,
    Watching,
    carried_out,
    confirmed,
    facts,
    heading,
    table,
    watch_frame,
)

LISTED: Final = 200
SOURCES: Final = ("instances", "labels", "feature-values", "controls")

_BUTTON: Final = """<q-btn flat no-caps label="{label}" :aria-label="'{label} ' + props.row.at"
  @click="$parent.$emit('{event}', props.row.at)" />"""
_BUTTONS: Final = (
    '<q-td :props="props">'
    + "".join(_BUTTON.format(label=name.capitalize(), event=name) for name in ("show", "replay"))
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

    def __init__(self, watching: Watching, person: Person) -> None:
        self._watching, self._person = watching, person
        with watch_frame("/dead-letters", person, watching):
            heading("Dead letters")
            with ui.row().classes("items-end"):
                self._reason = ui.input("Reason").props("maxlength=60 clearable")
                self._key = ui.input("Model").props("maxlength=1024 clearable")
                ui.button("Look", on_click=lambda: self.look(0)).props("no-caps")
                ui.button("Replay these", on_click=lambda: self._replay(None)).props("no-caps outline")
            self._said = ui.label().props("role=alert aria-live=assertive").classes("text-weight-bold")
            self._list = Looking(watching.inspector, self._draw, person)
            self._one = Looking(watching.inspector, self._draw_one, person)
            heading("Skip a record that stops its partition", 2)
            ui.label("It becomes a dead letter, unprocessed. No worker may run until then.")
            with ui.row().classes("items-end"):
                at = ui.input("PARTITION:OFFSET").props("maxlength=40")
                source = ui.select([*SOURCES], value="instances", label="Topic").classes("grove-select")
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
        shown_reasons = ", ".join(
            f"{name} {n:,}" for name, n in sorted(reasons.items(), key=lambda item: -item[1])
        )
        ui.label(f"{total:,} in all: {cut(shown_reasons, 600)}" if total else "There is none.").props(
            "role=status"
        )
        shown = [
            {
                "at": row["at"],
                "reason": row["reason"],
                "key": cut(str(row["key"])),
                "record": f"{row['topic']} {row['record']}",
                "detail": cut(str(row["detail"]), 200),
                "time": moment(row["timestamp"]),
            }
            for row in rows
        ]
        columns = {
            "at": "At",
            "reason": "Reason",
            "key": "Model",
            "record": "Record",
            "detail": "Why",
            "time": "Time (UTC)",
            "act": "",
        }
        letters = table(columns, shown, "at")
        letters.props(add="rows-per-page-options=[20,50,0]")
        letters.pagination = {"rowsPerPage": 20}
        letters.add_slot("body-cell-act", _BUTTONS)
        letters.on("show", lambda event: self._one.look("dead-letter", at=str(event.args)))
        letters.on("replay", lambda event: self._replay(str(event.args)))

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
                trouble or f"Nothing would go back: {_left(would) or 'no dead letter is like that'}."
            )
            return
        question = f"{number(sum(would['sent'].values()))} records go to their topics again. Go on?"
        if not await confirmed(question):
            return
        outcome, trouble = await self._do("replay dead letters", "replay", dry_run=False, **selection)
        left_out = "" if trouble or not outcome["left"] else f" Left out: {_left(outcome)}."
        self._said.set_text(trouble or f"Sent: {number(sum(outcome['sent'].values()))}.{left_out}")
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
        if await confirmed(f"The record {what} becomes a dead letter, unprocessed. Go on?"):
            _, trouble = await self._do("skip a record", "skip", at=at, source=source, dry_run=False)
            self._said.set_text(
                trouble or "It becomes a dead letter when a worker comes to it; start the workers."
            )

    async def _do(self, action: str, ask: str, **arguments: Any) -> tuple[Any, str]:
        return await carried_out(self._watching, self._person.annotator, action, ask, **arguments)


def _left(outcome: dict[str, Any]) -> str:
    return ", ".join(f"{number(n)}, {why}" for why, n in sorted(outcome["left"].items()))
