"""Tree export: text, a JSON document, Graphviz, and SVG; importances of attributes."""

from core.export.document import to_document
from core.export.dot import to_dot
from core.export.importance import by_importance, importances
from core.export.outline import answering, outline
from core.export.svg import to_svg
from core.export.text import printable, to_text
from core.tree.outline import Outline

__all__ = [
    "Outline",
    "answering",
    "by_importance",
    "importances",
    "outline",
    "printable",
    "to_document",
    "to_dot",
    "to_svg",
    "to_text",
]
