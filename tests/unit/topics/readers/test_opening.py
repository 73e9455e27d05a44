"""Files are opened by what they are, and what cannot be opened is said in one line."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from topics.errors import DatasetError
from topics.readers import Dataset, open_dataset

TEXTS = {
    "arff": "% comment\n\n@Relation r\n@attribute x real\n@attribute k {a,b}\n@data\n1,a\n",
    "libsvm": "# comment\n+1 3:1 11:0.5\n-1\n+1 2:1 # more\n",
    "csv": "x,k\n1,a\n",
}


@pytest.mark.parametrize("format", TEXTS)
@pytest.mark.parametrize("name", ["set", "set.csv", "set.arff", "set.libsvm.gz", "set.txt"])
@pytest.mark.parametrize("packed", [False, True])
def test_format_and_compression_are_found_by_content_not_by_name(tmp_path, format, name, packed):
    path = tmp_path / name
    text = TEXTS[format].encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    dataset = open_dataset(path)
    assert dataset.format == format
    assert isinstance(dataset, Dataset)
    assert sum(len(y) for _, y in dataset.batches()) == TEXTS[format].count("\n") - {"arff": 6}.get(format, 1)


@pytest.mark.parametrize(
    "line",
    ["1 2 3", "5.1,3.5,1.4,0.2,setosa", "12:30,1", "5,12:30,13:45", "5;10:00;11:00"],
)
def test_text_that_only_resembles_libsvm_is_csv(tmp_path, line):
    path = tmp_path / "set"
    path.write_text(line + "\n" + line + "\n")
    assert open_dataset(path).format == "csv"


@pytest.mark.parametrize("line", ["1:2 3:4", "a b:1", "one long sentence of words"])
def test_lines_that_nothing_cuts_into_values_are_refused(tmp_path, line):
    path = tmp_path / "set"
    path.write_text(line + "\n" + line + "\n")
    with pytest.raises(DatasetError, match=r"set:1: .* is one value: .*--delimiter.*--format.*LIBSVM"):
        open_dataset(path)


def test_lines_that_end_with_carriage_returns_alone(tmp_path):
    path = tmp_path / "set"
    path.write_bytes(b"x,k\r1,a\r2,b\r")
    [(x, y)] = open_dataset(path).batches()
    assert x.tolist() == [[1], [2]] and y.tolist() == [0, 1]
    path.write_bytes(TEXTS["arff"].replace("\n", "\r").encode())
    assert open_dataset(path).format == "arff"


def test_a_gzip_file_of_several_members_is_one_text(tmp_path):
    path = tmp_path / "set.csv.gz"
    path.write_bytes(gzip.compress(b"a,k\n1,x\n", mtime=0) + gzip.compress(b"2,y\n"))
    [(x, _)] = open_dataset(path).batches()
    assert x.tolist() == [[1], [2]]


def test_damaged_gzip_is_an_error(tmp_path):
    path = tmp_path / "set.csv.gz"
    packed = gzip.compress(b"a,k\n" + b"".join(b"%d,x\n" % n for n in range(500_000)))
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DatasetError, match=r"set.csv.gz: the gzip file is damaged: .*fetch or pack it again"):
        list(open_dataset(path).batches())
    path.write_bytes(packed[:-8] + b"\0" * 8)
    with pytest.raises(DatasetError, match="the gzip file is damaged"):
        list(open_dataset(path).batches())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (bz2.compress(b"a,b\n"), "is a bzip2 file; unpack it"),
        (lzma.compress(b"a,b\n"), "is an xz file; unpack it"),
        (b"PAR1....PAR1", "cannot be read: Parquet"),
        ("a,b\n".encode("utf-16"), "is UTF-16 text; write it as UTF-8"),
        (b"\x01\x00\x02\x00", "is not text"),
    ],
)
def test_other_content_is_named(tmp_path, content, message):
    path = tmp_path / "set.csv"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=f"set.csv: {message}"):
        open_dataset(path)


def test_zip_archives_are_named(tmp_path):
    path = tmp_path / "set.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "a,b\n")
    with pytest.raises(DatasetError, match="set.zip: is a zip archive; unpack it"):
        open_dataset(path)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"x": 1, "k": "p"}\n{"x": 2, "k": "q"}\n', "JSON; write it as CSV or Parquet"),
        (b'[\n {"x": 1},\n {"x": 2}\n]\n', "JSON; write it as CSV or Parquet"),
        (b"\n<!DOCTYPE html>\n<p>a, b</p>\n", "a page of HTML or XML; fetch the file itself"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n", "a pointer of Git LFS"),
        (b"1 |a x:1 y:0.5\n-1 |a y:2\n", "input of Vowpal Wabbit; write it as LIBSVM or CSV"),
    ],
)
def test_texts_of_other_formats_are_named(tmp_path, content, kind):
    path = tmp_path / "set.csv"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=f"set.csv: is {kind}"):
        open_dataset(path)


def test_a_text_that_resembles_another_format_can_be_a_table(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text('{"a":1},p\n{"a":2},q\n')
    with pytest.raises(DatasetError, match="add --format csv"):
        open_dataset(path)
    assert open_dataset(path, "csv").target == "f2"
    path.write_text('"{""a"":1}",p\n"{""a"":2}",q\n')
    assert open_dataset(path).target == "f2"


def tar_of_a_table() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"), io.BytesIO())
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PAR1....PAR1", "a Parquet file; name it alone and not packed"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "a gzip file; unpack it once"),
        ("a,b\n".encode("utf-16"), "UTF-16 text; write it as UTF-8"),
        (tar_of_a_table(), "a tar archive; unpack it and name its files"),
    ],
)
def test_the_content_of_a_gzip_file_is_named(tmp_path, content, kind):
    path = tmp_path / "set.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(DatasetError, match=f"set.gz: is packed with gzip, and its content is {kind}"):
        open_dataset(path)


def test_what_is_not_there_or_no_file(tmp_path):
    with pytest.raises(DatasetError, match="nothing.csv: no such file"):
        open_dataset(tmp_path / "nothing.csv")
    with pytest.raises(DatasetError, match="is a folder with neither"):
        open_dataset(tmp_path)
    with pytest.raises(DatasetError, match="at least one file"):
        open_dataset([])


def test_unknown_format_lists_the_known(tmp_path):
    path = tmp_path / "set"
    path.write_text("1,2\n")
    with pytest.raises(DatasetError, match="format='xls' must be one of arff, libsvm, csv"):
        open_dataset(path, "xls")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("arff", {"header": True}, "header has no meaning for arff files; leave it out"),
        ("libsvm", {"target": "x"}, "target has no meaning for libsvm files"),
        ("csv", {"features": 3}, "features has no meaning for csv files"),
        ("csv", {"zero_based": True}, "zero_based has no meaning for csv files"),
    ],
)
def test_an_option_of_another_format_is_refused(tmp_path, format, options, message):
    path = tmp_path / "set"
    path.write_text(TEXTS[format])
    with pytest.raises(DatasetError, match=message):
        open_dataset(path, **options)


def test_batches_need_a_size(tmp_path):
    path = tmp_path / "set"
    path.write_text("1,2\n")
    with pytest.raises(ValueError, match="size=0 must be at least 1"):
        next(iter(open_dataset(path).batches(0)))
