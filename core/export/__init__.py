"""A tree for readers: as text, as a JSON document, for Graphviz, and as a drawing."""

from core.export.document import to_document
from core.export.dot import to_dot
from core.export.outline import Outline, outline
from core.export.svg import to_svg
from core.export.text import to_text

__all__ = ["Outline", "outline", "to_document", "to_dot", "to_svg", "to_text"]
