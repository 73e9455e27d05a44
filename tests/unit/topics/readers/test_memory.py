"""Memory stays constant: a much larger file needs no more of it."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]

READ = """
import sys
from pathlib import Path
from topics.readers import open_dataset
rows = sum(len(y) for _, y in open_dataset(sys.argv[1]).batches())
# Not ru_maxrss: that includes what the parent had before exec.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(rows, int(peak.split()[1]) // 1024)
"""

LINES = {
    "csv": (b"a,b,c,d,colour,k\n", b"0.123456,17.5,-3.25,1000000,red,yes\n0.5,1.5,2.5,3.5,blue,no\n"),
    "arff": (
        b"@relation r\n@attribute a real\n@attribute b {red,blue}\n@attribute class {yes,no}\n@data\n",
        b"0.12345678901234567,red,yes\n-10000000000000000000000000000000000,blue,no\n",
    ),
    "libsvm": (b"", b"+1 1:0.5 7:1 19:1 33:0.25 80:1 101:1\n-1 2:0.125 3:1 5:1 7:1 123:1 # note\n"),
}


def generated(path, format, megabytes):
    """Write a gzip file that unpacks to so many megabytes; return its rows."""
    head, lines = LINES[format]
    chunk = lines * (1_000_000 // len(lines))
    member = gzip.compress(chunk, 1)
    with path.open("wb") as file:
        file.write(gzip.compress(head))
        for _ in range(megabytes):
            file.write(member)
    return 2 * (1_000_000 // len(lines)) * megabytes


def peak(path):
    """Return the rows of a file and the megabytes that a process needed to read them."""
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows, megabytes = map(int, done.stdout.split())
    return rows, megabytes


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("format", LINES)
def test_a_much_larger_file_needs_no_more_memory(tmp_path, format):
    small, large = tmp_path / "small.gz", tmp_path / "large.gz"
    # So much that batches are read ahead in the small file, too.
    megabytes_small, times = (20, 4) if format == "libsvm" else (10, 10)
    small_rows = generated(small, format, megabytes_small)
    large_rows = generated(large, format, times * megabytes_small)
    assert large_rows == times * small_rows
    rows, megabytes = peak(small)
    assert rows == small_rows
    rows, more_megabytes = peak(large)
    assert rows == large_rows
    assert more_megabytes < megabytes + 40
    assert more_megabytes < 300
