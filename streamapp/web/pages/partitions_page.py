"""Partitions page: lag, restores and snapshots of partitions, and the workers that process them."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

from streamapp.web.formatting import cut, moment, number
from streamapp.web.page_frame import Person
from streamapp.web.watch.inspector import Found
from streamapp.web.watch.watching import Looking, Watching, heading, table, watch_frame

AGAIN_S: Final = 10.0
COLUMNS: Final = {
    "partition": "Partition",
    "behind": "Behind",
    "instances": "of instances",
    "labels": "of labels",
    "others": "of others",
    "restores": "Restores",
    "snapshot": "Newest snapshot",
    "since": "Journal since",
    "trouble": "",
}


class PartitionsPage:
    """The elements of the page in one browser."""

    def __init__(self, watching: Watching, person: Person) -> None:
        self._person = person
        with watch_frame("/partitions", person, watching):
            heading("Partitions")
            self._looking = Looking(watching.inspector, self._draw, person)
        ui.timer(AGAIN_S, self.tick)
        ui.timer(0.0, self.tick, once=True)

    async def tick(self) -> None:
        """Read the state again, at most every few seconds for all pages together."""
        if not self._person.signed_in():
            ui.navigate.to("/sign-in")
            return
        await self._looking.look("partitions", fresh_ms=round(AGAIN_S * 900))

    def _draw(self, reply: Found) -> None:
        rows = reply.answer["rows"]
        members = reply.answer["members"]
        behind = sum(row.get("behind", 0) for row in rows)
        who = ", ".join(members) if members else "no members: no worker runs"
        ui.label(f"Group {reply.answer['group']}: {cut(who, 600)}")
        ui.label(f"{number(behind)} records behind in all, at {moment(reply.at_ms)} UTC").props("role=status")
        table(COLUMNS, [_row(row) for row in rows], "partition")
        ui.label(
            "Restores are counted by the journal: one each time a worker read the partition's state "
            "again, the first included. Behind is counted in offsets, which transaction markers take too."
        )


def _row(row: dict[str, Any]) -> dict[str, Any]:
    if row["trouble"] is not None:
        return {"partition": row["partition"], "trouble": cut(row["trouble"], 300)}
    lag, snapshot = row["lag"], row["snapshot"]
    return {
        "partition": row["partition"],
        "behind": row["behind"],
        "instances": lag.get("instances", 0),
        "labels": lag.get("labels", 0),
        "others": sum(n for source, n in lag.items() if source not in ("instances", "labels")),
        "restores": row["incarnation"],
        "snapshot": "none yet"
        if snapshot is None
        else f"{number(snapshot['models'])} parts, {number(snapshot['bytes'])} bytes",
        "since": f"{number(row['since_snapshot'])} records",
        "trouble": "",
    }
