"""Tree view: the drawing of a tree in a page, with folding, search, zoom and the details of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicegui import ui

from streamapp.web.formatting import cut, number, share
from streamapp.web.tree.folding import DEPTH, SHOWN_MAX, Folding
from streamapp.web.tree.outline_rows import OutlineRows, Row, split_in_words
from streamapp.web.tree.tree_drawing import Highlights, tree_svg
from streamapp.web.watch.watching import facts

REVEALED_MAX: Final = 50
"""Found nodes that are unfolded, at most."""
ZOOM_STEP: Final = 1.25
ZOOM_MIN, ZOOM_MAX = 0.1, 4.0
DEPTHS: Final = (1, 2, 3, 4, 6, 8, 12)
FULL: Final = f"At most {SHOWN_MAX} nodes are drawn at a time: fold a part of the tree first."
_CLICK: Final = """(event) => {
  const item = event.target.closest('[data-node]');
  if (!item) return;
  event.currentTarget.placeBefore = item.getBoundingClientRect();
  item.focus({preventScroll: true});
  emit([Number(item.dataset.node), event.target.closest('[data-fold]') ? 'fold' : 'select']);
}"""
# A new drawing takes the place of the element that has the focus. The same node of the new drawing gets the
# focus before the browser handles another key, so a person may type faster than the server draws.
_KEEP_FOCUS: Final = """(event) => {
  const drawing = event.currentTarget, item = event.target.closest('[data-node]');
  drawing.focused = item ? item.dataset.node : undefined;
  if (drawing.observer) return;
  drawing.observer = new MutationObserver(() => {
    if (drawing.focused === undefined || document.activeElement !== document.body) return;
    const same = drawing.querySelector(`[data-node="${drawing.focused}"]`);
    if (same) same.focus({preventScroll: true});
  });
  drawing.observer.observe(drawing, {childList: true});
}"""
_KEYS: Final = """(event) => {
  const item = event.target.closest('[data-node]');
  if (!item || event.ctrlKey || event.altKey || event.metaKey) return;
  const items = [...event.currentTarget.querySelectorAll('[data-node]')];
  const at = items.indexOf(item), level = (each) => Number(each.getAttribute('aria-level'));
  const open = item.getAttribute('aria-expanded');
  const go = (next) => {
    if (!next) return;
    item.setAttribute('tabindex', -1);
    next.setAttribute('tabindex', 0);
    next.focus();
    next.scrollIntoView({block: 'nearest', inline: 'nearest'});
  };
  const tell = (what) => {
    event.currentTarget.placeBefore = item.getBoundingClientRect();
    emit([Number(item.dataset.node), what]);
  };
  const above = () => items.slice(0, at).reverse().find((each) => level(each) < level(item));
  const keys = {
    ArrowDown: () => go(items[at + 1]),
    ArrowUp: () => go(items[at - 1]),
    Home: () => go(items[0]),
    End: () => go(items[items.length - 1]),
    ArrowRight: () => (open === 'false' ? tell('fold') : open === 'true' ? go(items[at + 1]) : null),
    ArrowLeft: () => (open === 'true' ? tell('fold') : go(above())),
    Enter: () => tell('select'),
    ' ': () => tell('select'),
    '+': () => tell('larger'),
    '-': () => tell('smaller'),
  };
  if (!(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
}"""
FRAMES_MAX: Final = 3600
"""Frames of the screen for which a script waits for its drawing, at most."""
# A node that a person acts on keeps its place on the screen; any other comes to the middle of the frame.
_FOCUS: Final = """(() => {{
  let frames = 0;
  const look = () => {{
    const frame = document.getElementById('{frame}');
    const item = frame && frame.querySelector('[data-drawing="{drawing}"] [data-node="{node}"]');
    if (!item) {{
      if (frame && ++frames < {frames_max}) requestAnimationFrame(look);
      return;
    }}
    const drawing = item.closest('svg').parentElement, before = drawing.placeBefore;
    drawing.placeBefore = undefined;
    const now = item.getBoundingClientRect(), outer = frame.getBoundingClientRect();
    const right = now.left - outer.left, down = now.top - outer.top;
    const inside = right >= 0 && down >= 0 && now.right <= outer.right && now.bottom <= outer.bottom;
    const [x, y] = before ? [now.left - before.left, now.top - before.top]
      : inside ? [0, 0] : [right - (outer.width - now.width) / 2, down - (outer.height - now.height) / 2];
    frame.scrollBy(x, y);
    if (!{focus} || drawing.contains(document.activeElement)) return;
    item.focus({{preventScroll: true}});
    item.scrollIntoView({{block: 'nearest', inline: 'nearest'}});
  }};
  look();
}})()"""


class TreeView:
    """The elements of one tree in one browser."""

    def __init__(self, nodes: Sequence[Row], classes: Sequence[str], splits: Mapping[int, Row]) -> None:
        """nodes: rows of the inspection, parents first. splits: by node, the event of its test."""
        self._tree, self._classes, self._splits = OutlineRows(nodes), classes, splits
        self._folding = Folding(self._tree)
        self._selected: int | None = None
        self._path: list[int] = []
        self._matches: list[int] = []
        self._match, self._zoom, self._drawn = -1, 1.0, 0
        self._tools()
        self._said = ui.label().props("role=status").classes("grove-readout")
        self._box = ui.element("div").classes("grove-tree-box")
        with self._box:
            self._drawing = ui.html(sanitize=False)
        self._drawing.on("click", self._act, js_handler=_CLICK)
        self._drawing.on("keydown", self._act, js_handler=_KEYS)
        self._drawing.on("focusin", js_handler=_KEEP_FOCUS)
        self._details = ui.column().classes("w-full")
        self._draw()

    def _tools(self) -> None:
        with ui.element("div").classes("grove-tree-tools"):
            self._search = ui.input("Find a feature", on_change=self._find)
            self._search.props("debounce=300 maxlength=200 clearable")
            for text, act in (("Previous", -1), ("Next", 1)):
                ui.button(text, on_click=lambda act=act: self._go(act)).props(
                    f'no-caps outline aria-label="{text} node with the feature"'
                )
            options = {depth: f"{depth} levels" for depth in DEPTHS} | {10**6: "all levels"}
            depth = ui.select(options, value=DEPTH, label="Unfold", on_change=self._unfold)
            depth.style("min-width:8rem")
            for text, zoom in (("Smaller", 1 / ZOOM_STEP), ("Larger", ZOOM_STEP)):
                ui.button(text, on_click=lambda zoom=zoom: self._scale(zoom)).props("no-caps outline")
            ui.button("Fit", on_click=self._fit).props('no-caps outline aria-label="Whole tree in the frame"')

    def show_path(self, conditions: Sequence[str]) -> int | None:
        """Highlight the path of a record; return its last node, None if this tree has no such path."""
        path = self._tree.path(conditions)
        self._path = path or []
        if path is None:
            self._draw()
            return None
        self._folding.reveal([path[-1]])
        self._select(path[-1])
        self._look_at(path[-1], focus=False)
        return path[-1]

    def _draw(self) -> None:
        self._drawn += 1
        highlights = Highlights(self._selected, frozenset(self._path), frozenset(self._matches), self._drawn)
        self._drawing.set_content(tree_svg(self._tree, self._classes, self._folding, highlights))

    def _act(self, event: Any) -> None:
        """Carry out a click or a key; other values than those of the drawing do nothing."""
        if not isinstance(event.args, list) or len(event.args) != 2:
            return
        node, what = event.args
        if not isinstance(node, int) or node not in self._tree.by_number:
            return
        if what == "fold":
            self._said.set_text("" if self._folding.toggle(node) else FULL)
            self._draw()
            self._look_at(node)
        elif what == "select":
            self._select(node)
            self._look_at(node)
        elif what in ("larger", "smaller"):
            self._scale(ZOOM_STEP if what == "larger" else 1 / ZOOM_STEP)

    def _select(self, node: int) -> None:
        self._selected = node
        self._draw()
        row = self._tree.by_number[node]
        self._details.clear()
        with self._details:
            facts(node_facts(row, self._classes, self._tree.conditions(node), self._splits.get(node)))

    def _look_at(self, node: int, *, focus: bool = True) -> None:
        script = _FOCUS.format(
            frame=self._box.html_id,
            drawing=self._drawn,
            node=node,
            focus="true" if focus else "false",
            frames_max=FRAMES_MAX,
        )
        ui.run_javascript(script)

    def _find(self) -> None:
        text = str(self._search.value or "")
        self._matches, self._match = self._tree.testing(text), -1
        drawn = self._folding.reveal(self._matches[:REVEALED_MAX])
        n = len(self._matches)
        if not text.strip():
            self._said.set_text("")
        else:
            rest = f"; {drawn:,} of them are unfolded" if drawn < n else ""
            self._said.set_text(f"{n:,} node{'' if n == 1 else 's'} test{'s' if n == 1 else ''} it{rest}.")
        self._draw()
        if self._matches:
            self._go(1, focus=False)

    def _go(self, by: int, *, focus: bool = True) -> None:
        """Go to the next node that the search found."""
        if not self._matches:
            return
        self._match = (self._match + by) % len(self._matches)
        node = self._matches[self._match]
        if not self._folding.reveal([node]):
            self._said.set_text(FULL)
            return
        self._select(node)
        self._look_at(node, focus=focus)

    def _unfold(self, event: Any) -> None:
        whole = self._folding.unfold_to(int(event.value))
        self._said.set_text("" if whole else f"The first {len(self._folding.shown()):,} nodes are drawn.")
        self._draw()

    def _scale(self, factor: float) -> None:
        self._zoom = min(ZOOM_MAX, max(ZOOM_MIN, self._zoom * factor))
        self._box.classes(remove="grove-fit").style(f"--grove-zoom: {self._zoom:.3f}")

    def _fit(self) -> None:
        self._zoom = 1.0
        self._box.classes("grove-fit")


def node_facts(
    row: Row, classes: Sequence[str], conditions: Sequence[str], split: Row | None
) -> dict[str, str]:
    """Return the details of a node by their names.

    conditions: from the root to the node. split: the event that gave the node its test.
    """
    facts_of = {
        "node": f"{row['node']}, depth {row['depth']}",
        "its records have": " and ".join(cut(text, 120) for text in conditions)
        or "no condition: all records",
        "records": number(round(row["records"], 2)),
    }
    if row["children"]:
        facts_of["before its split"] = number(round(row["own"], 2))
        facts_of["since then"] = number(round(row["records"] - row["own"], 2))
    weights = sorted(zip(row["masses"], classes, strict=False), reverse=True)[:8]
    learned = ", ".join(f"{cut(name, 40)} {number(round(mass, 2))}" for mass, name in weights if mass)
    facts_of["labels learned"] = learned or "none"
    votes = "none" if row["majority"] is None else cut(classes[row["majority"]])
    facts_of["votes for"] = (
        votes if row["purity"] is None else f"{votes}, {share(row['purity'])} of the labels"
    )
    if row["children"]:
        facts_of["test"] = f"{cut(str(row['attribute']), 120)}; {split_in_words(split)}"
    if row["leaves_below"]:
        facts_of["left out"] = f"{row['leaves_below']:,} leaves below: the tree is too large"
    return facts_of
