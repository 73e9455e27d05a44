"""What others have named is shown as it is: it is neither markup nor a terminal's command."""

import io

from rich.console import Console
from rich.table import Table

from streamapp.cli.table_cells import cell


def test_a_key_is_neither_markup_nor_a_command() -> None:
    output = io.StringIO()
    table = Table(box=None)
    table.add_column("key")
    table.add_row(cell("[/red] [bold]k\n\x1b[2J\x9b"))  # as a string: MarkupError
    Console(file=output, width=80).print(table)
    assert "[/red] [bold]k\\n\\x1b[2J\\x9b" in output.getvalue()
    assert "\x1b[2J" not in output.getvalue()
