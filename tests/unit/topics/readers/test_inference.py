"""The line that says what a reader made of a file."""

from pathlib import Path

import pytest

from topics.errors import DatasetError
from topics.readers import open_dataset
from topics.readers.form_inference import inference

HEADED = "size,colour,kind\n1,red,a\n2,blue,b\n3,red,a\n"


def said(
    tmp_path: Path, text: str, target_given: bool = False, header_given: bool = False, **options: object
) -> str:
    path = tmp_path / "rows"
    path.write_text(text)
    line = inference(open_dataset(path, **options), target_given, header_given)  # type: ignore[arg-type]
    return line.removeprefix(f"{path}: ")


def test_a_csv_file_with_a_header(tmp_path: Path) -> None:
    assert said(tmp_path, HEADED) == (
        "CSV with a header (else --no-header); target 'kind' (else --target); "
        "2 features (1 numeric, 1 nominal); 2 classes in the first rows: a, b"
    )


def test_what_was_given_is_not_asked_for_again(tmp_path: Path) -> None:
    assert said(tmp_path, HEADED, True, True, target="colour", header=True) == (
        "CSV with a header; target 'colour'; "
        "2 features (1 numeric, 1 nominal); 2 classes in the first rows: red, blue"
    )


def test_a_csv_file_without_a_header(tmp_path: Path) -> None:
    assert said(tmp_path, "1,2,0\n3,4,1\n5,6,1\n") == (
        "CSV without a header (else --header); target 'f3' (else --target); "
        "2 numeric features; 2 classes in the first rows: 0, 1"
    )


def test_many_classes_are_not_all_named_and_none_is_said(tmp_path: Path) -> None:
    rows = "".join(f"{i},c{i}\n" for i in range(9))
    assert said(tmp_path, rows).endswith(
        "1 numeric feature; 9 classes in the first rows: c0, c1, c2, c3, c4, c5, …"
    )
    assert said(tmp_path, "a,class\n1,\n2,\n").endswith("no labels in the first rows")


def test_arff_declares_its_classes_and_libsvm_has_no_target_column(tmp_path: Path) -> None:
    arff = "@relation r\n@attribute class {x,y}\n@attribute a {p,q}\n@data\nx,p\ny,q\n"
    assert said(tmp_path, arff) == "ARFF; target 'class' (else --target); 1 nominal feature; 2 classes: x, y"
    assert (
        said(tmp_path, "1 1:0.5\n-1 3:1\n")
        == "LIBSVM; 3 numeric features; 2 classes in the first rows: -1, 1"
    )


def test_a_csv_column_called_class_is_the_target_wherever_it_stands(tmp_path: Path) -> None:
    assert "target 'Class' (else" in said(tmp_path, "a,Class,b\n1,x,2\n3,y,4\n")


def test_what_is_wrong_with_the_first_rows_is_raised(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i}\n" for i in range(2000))
    with pytest.raises(DatasetError, match="f2"):
        said(tmp_path, rows + "1,2,3\n")


def test_a_file_without_rows_is_its_reader_s_mistake(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("a,class\n")
    with pytest.raises(DatasetError, match="has no rows"):
        inference(open_dataset(tmp_path / "rows"), False, False)
