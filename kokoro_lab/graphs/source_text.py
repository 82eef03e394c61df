"""What a function's source says, with all that it calls in this package, as one digest.

The digest follows what the code does and not where it stands. A function is read with every function, class
and constant of this package that it names, and with those that they name. Left out are comments, docstrings,
annotations of arguments, what an error says, imports, and the module in front of a name: `passes.modulate`
and `modulate` are the same. So a file can be moved, split or renamed and the digest stays; an edited line of
a helper changes it.

Other packages are not read: whoever needs them in a digest adds their versions.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

PACKAGE = __name__.partition(".")[0]
Found = tuple[str, str]
"""A definition: the module that holds it, and its name there."""


class Module:
    """A module of the package as it is written: its definitions and imports by name.

    Parameters
    ----------
    name : str
        As it is imported.

    Attributes
    ----------
    path : Path
    definitions : dict of str to list of ast.stmt
        Each name of the module's top level, and the statements that give it a value.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = module_path(name)
        tree = ast.parse(self.path.read_text("utf-8"))
        self.definitions: dict[str, list[ast.stmt]] = {}
        for statement in _statements(tree.body):
            for defined in _names(statement):
                self.definitions.setdefault(defined, []).append(statement)
        self._imports: dict[str, Found] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
                for alias in node.names:
                    self._imports[alias.asname or alias.name] = (str(node.module), alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    above, _, last = alias.name.rpartition(".")
                    if alias.asname and above.partition(".")[0] == PACKAGE:
                        self._imports[alias.asname] = (above, last)

    def found(self, chain: list[str]) -> tuple[Found, int] | None:
        """The definition that a dotted name leads to, and how many of its parts it takes; None if it leads
        out of the package."""
        name, *rest = chain
        if name in self.definitions:
            return (self.name, name), 1
        if name not in self._imports:
            return None
        module, imported = self._imports[name]
        if imported in module_of(module).definitions:
            return (module, imported), 1
        submodule = f"{module}.{imported}"
        if module_is_there(submodule):
            inner = module_of(submodule).found(rest) if rest else None
            return (inner[0], inner[1] + 1) if inner else None
        inner = module_of(module).found([imported])  # a name that the module itself has imported
        return (inner[0], 1) if inner else None


@cache
def module_path(name: str) -> Path:
    """The file of a module of the package, which need not have been imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {name!r}")
    return Path(spec.origin)


@cache
def module_is_there(name: str) -> bool:
    """Whether the package has a module of this name."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


module_of = cache(Module)
"""Read once: source that is edited while a program runs is not what the program runs."""


def source_digest(roots: Iterable[Callable[..., Any] | Found]) -> tuple[str, frozenset[str]]:
    """A digest of what functions, classes or constants of this package do.

    Parameters
    ----------
    roots : iterable
        Functions, classes, or names with their modules, in an order that counts. Of a `functools.partial` it
        is the function: what that is given is the caller's to digest.

    Returns
    -------
    tuple
        SHA-256 in lower-case hex, and the names of the modules that were read for it.
    """
    digest = hashlib.sha256()
    definitions: dict[Found, None] = {}
    for root in map(_root, roots):
        digest.update(f"root {root[1]}\n".encode())
        definitions.setdefault(root)
    waiting = list(definitions)
    for module, name in waiting:  # the list grows while it is read
        text = _Text(module_of(module))
        for statement in module_of(module).definitions[name]:
            digest.update(f"{name}: {''.join(text.of(statement))}\n".encode())
        waiting += [found for found in text.named if found not in definitions]
        definitions |= text.named
    return digest.hexdigest(), frozenset(module for module, _ in definitions)


def _root(root: Callable[..., Any] | Found) -> Found:
    if isinstance(root, tuple):
        return root
    while isinstance(root, partial):
        root = root.func
    return root.__module__, root.__qualname__.partition(".")[0]


_WITHOUT_EFFECT = ("type_comment", "kind", "returns")
"""Fields of syntax that change nothing of what is computed."""


class _Text:
    """Statements as text in which the way to a name, and whatever has no effect, is left out."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self.named: dict[Found, None] = {}

    def of(self, node: Any) -> Iterator[str]:
        if isinstance(node, list):
            for each in node:
                yield from self.of(each)
        elif isinstance(node, ast.arg):
            yield f"{node.arg};"
        elif not isinstance(node, ast.AST):
            yield f"{type(node).__name__} {node!r};"
        elif isinstance(node, (ast.Name, ast.Attribute)) and (chain := _chain(node)):
            yield from self._name(chain)
        elif isinstance(node, ast.Raise):
            yield "Raise;"
        elif not isinstance(node, (ast.Import, ast.ImportFrom, ast.expr_context)):
            yield f"{type(node).__name__}("
            for field, value in ast.iter_fields(node):
                # What is empty is left out, for newer Pythons have fields that older ones lack
                if value is not None and value != [] and field not in _WITHOUT_EFFECT:
                    yield f"{field}="
                    yield from self.of(_without_docstring(value) if field == "body" else value)
            yield ")"

    def _name(self, chain: list[str]) -> Iterator[str]:
        found = self._module.found(chain)
        if found is None:
            yield f"{'.'.join(chain)};"
            return
        definition, taken = found
        self.named.setdefault(definition)
        yield f"{'.'.join([definition[1], *chain[taken:]])};"


def _without_docstring(body: Any) -> Any:
    if not isinstance(body, list):
        return body  # a lambda's
    return [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def _chain(node: ast.AST) -> list[str]:
    """`a.b.c` as its parts; empty if it does not begin with a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module's top level, those within conditions too."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)
        else:
            yield statement


def _names(statement: ast.stmt) -> Iterator[str]:
    """What a statement gives a value to."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and isinstance(statement.target, ast.Name):
        yield statement.target.id
