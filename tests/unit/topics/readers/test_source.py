"""Files come in blocks of whole lines with the right line numbers, whatever the size of the blocks."""

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from topics.errors import DatasetError
from topics.readers import source
from topics.readers.source import blocks, head

LINES = st.lists(st.text(st.sampled_from('ab"\n,'), max_size=12), max_size=30).map("\n".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=LINES.filter(bool), size=st.integers(1, 40), packed=st.booleans())
def test_blocks_are_whole_lines_and_together_the_file(tmp_path, text, size, packed):
    path = tmp_path / "file"
    content = text.encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    found = list(blocks(path, size))
    assert b"".join(block.text for block in found) == content
    assert all(block.text.endswith(b"\n") for block in found[:-1])
    before = 0
    for block in found:
        assert block.line == 1 + content.count(b"\n", 0, before)
        before += len(block.text)


def test_a_line_without_end_is_refused_before_it_fills_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "file"
    path.write_bytes(b"first\n" + b"x" * (3 << 20))
    with pytest.raises(DatasetError, match=r"file:2: no line end within 1 MiB"):
        list(blocks(path, 1 << 16))


def test_head_is_the_first_block(tmp_path):
    path = tmp_path / "file"
    path.write_text("a\nb\nc\n")
    assert head(path, 3).text == b"a\n"
