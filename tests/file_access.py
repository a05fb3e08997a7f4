"""Where a module's source opens, lists, moves or removes files: any, or only those of a lake.

A lake's path is whatever has `lake` in its name, and what is made of that: joined, called, looped over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

# Methods of Path by their names, with the most arguments given by position, so that Lake.exists(table) and
# str.replace(old, new) are told apart.
METHODS = {
    **dict.fromkeys(("absolute", "exists", "is_dir", "is_file", "is_mount", "is_symlink", "iterdir"), 0),
    **dict.fromkeys(("lstat", "read_bytes", "rmdir", "stat", "unlink"), 0),
    **dict.fromkeys(("chmod", "glob", "hardlink_to", "read_text", "rename", "replace", "rglob"), 1),
    **dict.fromkeys(("symlink_to", "touch", "walk", "write_bytes", "write_text"), 1),
    **dict.fromkeys(("mkdir", "open"), 3),
}
# Modules of which every function, and classes and functions that, take a path to open. What makes commits
# is not among them: tests/transforms/lake/test_commits.py says where that is.
MODULES = {"fs", "glob", "os", "pq", "shutil", "tempfile"}
OPENERS = {"DeltaTable", "open"}
# Of those modules, what touches no file.
PURE = {"os.environ", "os.fsdecode", "os.getpid", "os.getuid", "shutil.get_terminal_size"}
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


def all_accesses(source: str) -> list[int]:
    """The lines of source that access any file."""
    return sorted({node.lineno for node in ast.walk(ast.parse(source)) if _accesses(node)})


def lake_accesses(source: str) -> list[int]:
    """The lines of source that access a file of a lake."""
    return sorted(set(_in_scope(ast.parse(source), set())))


def _in_scope(scope: Scope, outer: set[str]) -> Iterator[int]:
    """Of a module or function, and of the functions in it; outer: names of lakes' paths around it."""
    nodes = list(_own_nodes(scope))
    paths = outer
    while True:  # until no assignment, in whatever order, names another path
        more = paths | {name for node in nodes for name in _named_by(node, paths)}
        if more == paths:
            break
        paths = more
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _in_scope(node, paths)
        elif _accesses(node) and any(_is_of_lake(part, paths) for part in _paths_of(node)):
            yield node.lineno


def _own_nodes(scope: Scope) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of functions in it, which are yielded themselves."""
    todo: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += ast.iter_child_nodes(node)


def _paths_of(access: ast.Call) -> Iterator[ast.AST]:
    """What of a call can be a path: not the text that is written."""
    function = access.func
    if isinstance(function, ast.Attribute):
        yield function.value
    if not isinstance(function, ast.Attribute) or function.attr not in ("write_bytes", "write_text"):
        yield from (*access.args, *(keyword.value for keyword in access.keywords))


def _named_by(node: ast.AST, paths: set[str]) -> set[str]:
    """The names that an assignment, loop or with-statement gives to a lake's path."""
    pairs: list[tuple[ast.AST | None, ast.AST | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        pairs = [(node.target, node.iter)]
    elif isinstance(node, ast.withitem):
        pairs = [(node.optional_vars, node.context_expr)]
    return {
        part.id
        for target, value in pairs
        if target is not None and value is not None and _is_of_lake(value, paths)
        for part in ast.walk(target)
        if isinstance(part, ast.Name)
    }


def _is_of_lake(expression: ast.AST, paths: set[str]) -> bool:
    """Whether an expression names a lake, or what was made of one."""
    for node in ast.walk(expression):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in paths or "lake" in name.lower().split("_"):
            return True
    return False


def _accesses(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a node is a call that touches a file."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Name):
        return function.id in OPENERS
    if not isinstance(function, ast.Attribute):
        return False
    whole = ast.unparse(function)
    if whole.split(".")[0] in MODULES:
        return not whole.startswith(tuple(PURE))
    most = METHODS.get(function.attr)
    return most is not None and len(node.args) <= most and not _replaces_parts(node)


def _replaces_parts(node: ast.Call) -> bool:
    """As datetime.replace does, by keywords."""
    return isinstance(node.func, ast.Attribute) and node.func.attr == "replace" and bool(node.keywords)
