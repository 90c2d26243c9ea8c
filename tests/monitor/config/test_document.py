"""YAML as plain values, with lines."""

from pathlib import Path

import pytest

from midwatch_monitor.config.document import dotted_path, read_document


def write(folder: Path, text: str) -> Path:
    file = folder / "a.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("yes", "yes"),
        ("true", True),
        ("'true'", "true"),
        ("010", 10),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-11-21", "2026-11-21"),
        ("30s", "30s"),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("~", None),
        ("", None),
        ("[&x {b: x}, *x]", [{"b": "x"}, {"b": "x"}]),
    ],
)
def test_scalars_are_those_of_yaml_1_2(tmp_path: Path, text: str, value: object) -> None:
    document = read_document(write(tmp_path, f"a: {text}\n"))
    assert (document.data, document.problems) == ({"a": value}, [])


def test_every_key_and_item_has_its_line(tmp_path: Path) -> None:
    document = read_document(write(tmp_path, "a:\n  b: 1\nc:\n  - x\n  - d: 2\n"))
    assert document.lines == {
        ("a",): 1,
        ("a", "b"): 2,
        ("c",): 3,
        ("c", 0): 4,
        ("c", 1): 5,
        ("c", 1, "d"): 5,
    }


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_an_empty_mapping(tmp_path: Path, text: str) -> None:
    document = read_document(write(tmp_path, text))
    assert (document.data, document.problems) == ({}, [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", ":3: a: is here twice, first in line 1"),
        ("- 1\n", ":1: must be a mapping: `key: value`"),
        ("a: 1\nb: [2\n", ":3: is not YAML: while parsing a flow sequence, expected"),
        ("a: 1\n\tb: 2\n", ":2: is not YAML: while scanning"),
        ("a: 1\n---\nb: 2\n", ":2: is not YAML: expected a single document"),
        ("a: !!python/name:os.system x\n", ":1: a: the tag tag:yaml.org,2002:python/name"),
        ("? [1]\n: 2\n", ":1: a key must be a word"),
        ("a: \x07\n", ": holds a character that YAML does not allow"),
        ("a: " + "[" * 3000, ": is nested too deeply"),
        ("a: &a [*a]\n", ": is nested too deeply"),
    ],
)
def test_what_cannot_be_read_names_its_line(tmp_path: Path, text: str, problem: str) -> None:
    file = write(tmp_path, text)
    found = [str(error) for error in read_document(file).problems]
    assert len(found) == 1
    assert found[0].startswith(f"{file}{problem}")


def test_aliases_of_aliases_do_not_grow_without_end(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    file = write(tmp_path, "\n".join(rows))
    assert [str(error) for error in read_document(file).problems] == [
        f"{file}: is nested too deeply, or too large"
    ]


def test_what_is_no_readable_text_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "a.yaml"
    binary.write_bytes(b"a: \xff\n")
    for file, said in (
        (binary, "is not UTF-8 text"),
        (tmp_path / "none.yaml", "there is no such file"),
        (tmp_path, "cannot be read: Is a directory"),
    ):
        assert [str(error) for error in read_document(file).problems] == [f"{file}: {said}"]


def test_a_path_is_written_with_dots_and_brackets() -> None:
    assert dotted_path(("tasks", 0, "acceptance", 1, "file")) == "tasks[0].acceptance[1].file"
