"""Partitions page: lag, restores and snapshots of partitions, and the workers that process them."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

from streamapp.web.formatting import cut, number
from streamapp.web.layout.data_table import Cell, Column, DataTable, Row, number_cell, text_cell
from streamapp.web.layout.times import exact
from streamapp.web.page_frame import Person
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.watching import Looking, Watching, heading, watch_frame

AGAIN_S: Final = 10.0
COLUMNS: Final = {
    "partition": Column("Partition", numeric=True, explained="partition"),
    "behind": Column("Waiting records", numeric=True, explained="lag"),
    "instances": Column("instances", numeric=True),
    "labels": Column("labels", numeric=True),
    "others": Column("other topics", numeric=True),
    "restores": Column("Restores", numeric=True, explained="restore"),
    "snapshot": Column("Newest snapshot", numeric=True, explained="snapshot"),
    "since": Column("Records since then", numeric=True, explained="journal"),
    "trouble": Column("Trouble"),
}


class PartitionsPage:
    """The elements of the page in one browser."""

    def __init__(self, watching: Watching, person: Person) -> None:
        self._person = person
        with watch_frame("/partitions", person, watching):
            heading("Partitions", explained="partition")
            self._looking = Looking(watching.inspector, self._draw, person)
            self._summary = ui.column()
            self.table = DataTable(
                "Partitions",
                COLUMNS,
                key="partition",
                empty="No partition is known yet. 'grove topics create' makes the topics.",
                sort_by="partition",
                per_page=50,
            )
            ui.label(
                "Records are counted by their offsets, which the marks of transactions take too. The first "
                "start of a partition counts as a restore."
            ).classes("grove-muted")
        ui.timer(AGAIN_S, self.tick)
        ui.timer(0.0, self.tick, once=True)

    async def tick(self) -> None:
        """Read the state again, at most every few seconds for all pages together."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        await self._looking.look("partitions", fresh_ms=round(AGAIN_S * 900))

    def _draw(self, reply: Found) -> None:
        rows, members = reply.answer["rows"], reply.answer["members"]
        behind = sum(row.get("behind", 0) for row in rows)
        self._summary.clear()
        with self._summary:
            ui.label(f"{number(behind)} records wait in all.").props(
                f'role=status title="{exact(reply.at_ms)}"'
            )
            if members:
                names = cut(", ".join(members), 600)
                ui.label(f"{number(len(members))} workers in group {reply.answer['group']}: {names}")
            else:
                ui.label(f"No worker runs in group {reply.answer['group']}. Start one with 'grove worker'.")
        self.table.show([_row(row) for row in rows])


def _size_cell(snapshot: dict[str, Any]) -> Cell:
    size = number_cell(snapshot["bytes"], "bytes")
    return size._replace(title=f"in {number(snapshot['models'])} parts")


def _row(row: dict[str, Any]) -> Row:
    partition = number_cell(row["partition"])
    if row["trouble"] is not None:
        unknown = dict.fromkeys(COLUMNS, Cell("–"))
        return {**unknown, "partition": partition, "trouble": text_cell(cut(row["trouble"], 300))}
    lag, snapshot = row["lag"], row["snapshot"]
    others = sum(n for source, n in lag.items() if source not in ("instances", "labels"))
    return {
        "partition": partition,
        "behind": number_cell(row["behind"]),
        "instances": number_cell(lag.get("instances", 0)),
        "labels": number_cell(lag.get("labels", 0)),
        "others": number_cell(others),
        "restores": number_cell(row["incarnation"]),
        "snapshot": Cell("none yet") if snapshot is None else _size_cell(snapshot),
        "since": number_cell(row["since_snapshot"]),
        "trouble": Cell(""),
    }
