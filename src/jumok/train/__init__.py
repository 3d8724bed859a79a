"""The training loop, its optimizer and its checkpoints.

`jumok.train` is this package as soon as anything imports it, and the public function before: so it can be called.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`jumok.training.train`, which stands above this package and is not imported by it."""
        return import_module("jumok.training").train(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
