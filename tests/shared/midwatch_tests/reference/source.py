"""What Python forgets of a source text: the docstrings of attributes, and signatures as written."""

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path


@cache
def _module(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text("utf-8"))


def _definition(thing: type | Callable[..., object]) -> ast.AST:
    """The statement that defines a class or function at the top of its module."""
    return next(
        node
        for node in _module(inspect.getfile(thing)).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == thing.__name__
    )


def attributes(of: type) -> Iterator[tuple[str, str, str]]:
    """Name, annotation or value, and docstring of each public attribute that a class sets."""
    definition = _definition(of)
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=said):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=said):
                pass
            case _:
                continue
        if not name.startswith("_"):
            yield name, ast.unparse(said), _docstring(after)


def _docstring(node: ast.AST) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
        case _:
            return ""


def attribute_docs(of: type) -> dict[str, str]:
    """The docstrings of a class's attributes; those of its bases where it has none of its own."""
    found: dict[str, str] = {}
    for base in reversed(of.__mro__):
        if base.__module__.startswith("midwatch_"):
            found |= {name: text for name, _, text in attributes(base) if text}
    return found


def signature(of: type | Callable[..., object], name: str = "") -> str:
    """A function, or with a name a class's method, as it is written, an argument a line."""
    definition = _definition(of)
    if name and isinstance(definition, ast.ClassDef):
        definition = next(
            node
            for node in definition.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
        )
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    bound = bool(name) and "staticmethod" not in map(ast.unparse, definition.decorator_list)
    told = list(_arguments(definition.args))[bound:]
    called = of.__name__ if name in ("", "__init__") else f"{of.__name__}.{name}"
    start = "await " if isinstance(definition, ast.AsyncFunctionDef) else ""
    returns = ast.unparse(definition.returns) if definition.returns else "None"
    end = ")" if name == "__init__" else f") -> {returns}"
    one_line = f"{start}{called}({', '.join(told)}{end}"
    if len(one_line) <= 100:
        return one_line
    return f"{start}{called}(\n" + "".join(f"    {each},\n" for each in told) + end


def _arguments(args: ast.arguments) -> Iterator[str]:
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    for at, (arg, default) in enumerate(zip(plain, defaults, strict=True), start=1):
        yield _argument(arg, default)
        if at == len(args.posonlyargs):
            yield "/"
    if args.kwonlyargs:
        yield "*"
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _argument(arg, default)


def _argument(arg: ast.arg, default: ast.expr | None) -> str:
    end = f" = {ast.unparse(default)}" if default is not None else ""
    return ast.unparse(arg).replace("'", '"') + end.replace("'", '"')


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, with an empty line after it."""
    cells = [head, ["---"] * len(head), *rows]
    lines = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)
    return "".join(lines) + "\n"
