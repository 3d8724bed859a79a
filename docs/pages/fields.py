"""What a dataclass says of its fields."""

import ast
import inspect
import textwrap
from dataclasses import is_dataclass


def field_docs(cls: type) -> dict[str, str]:
    """The string under each field, those that a class inherits too."""
    docs = {}
    for owner in filter(is_dataclass, reversed(cls.__mro__)):
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0].body  # type: ignore[attr-defined]
        for field, after in zip(body, body[1:], strict=False):
            if not isinstance(field, ast.AnnAssign):
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                docs[field.target.id] = " ".join(str(after.value.value).split())  # type: ignore[union-attr]
    return docs
