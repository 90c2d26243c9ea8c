"""The bounds that keep the code readable. They fail the build, not the review."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_FILE = 500
MAX_FUNCTION = 50
PRODUCT = {"agents", "monitor", "supervisor", "tools"}
NO_NOUNS = {"utils", "helpers", "common", "base", "manager", "service"}


@cache
def sources() -> list[Path]:
    """Every Python file that git tracks or would track, relative to the repository."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "*.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"not a git repository: {done.stderr.strip()}")
    return sorted(Path(line) for line in done.stdout.splitlines() if (ROOT / line).exists())


@cache
def parse_file(file: Path) -> ast.Module:
    return ast.parse((ROOT / file).read_bytes())


def functions(code: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Name, line and length without its docstring of every function."""
    for node in ast.walk(code):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False) or ""
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield node.name, node.lineno, length - len(docstring.splitlines())


def test_no_file_is_longer_than_five_hundred_lines() -> None:
    lengths = {file: len((ROOT / file).read_text("utf-8").splitlines()) for file in sources()}
    long = [f"{file}: {lines} lines" for file, lines in lengths.items() if lines > MAX_FILE]
    assert not long, f"more than {MAX_FILE} lines; make a folder of the noun: {long}"


def test_no_function_is_longer_than_fifty_lines() -> None:
    long = [
        f"{file}:{line} {name}: {length} lines"
        for file in sources()
        for name, line, length in functions(parse_file(file))
        if length > MAX_FUNCTION
    ]
    assert not long, f"more than {MAX_FUNCTION} lines without the docstring: {long}"


def test_a_docstring_does_not_count_as_length() -> None:
    source = 'def f() -> int:\n    """One.\n\n    Two.\n    """\n    return 1\n'
    assert list(functions(ast.parse(source))) == [("f", 1, 2)]


def test_every_module_is_named_by_its_noun() -> None:
    nameless = [str(file) for file in sources() if {file.stem, file.parent.name} & NO_NOUNS]
    assert not nameless, f"say what is in it: {nameless}"


def test_no_two_public_classes_of_the_product_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for file in sources():
        if file.parts[0] in PRODUCT:
            for node in parse_file(file).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(str(file))
    shared = {name: files for name, files in places.items() if len(files) > 1}
    assert not shared, f"one name, one meaning: {shared}"


def test_there_is_something_to_measure() -> None:
    assert Path("monitor/midwatch_monitor/errors.py") in sources()
