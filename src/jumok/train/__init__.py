"""The training loop, its optimizer and its checkpoints.

`jumok.train` is the public function until something imports this package, which is therefore callable too.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `jumok.training.train`, which is above this package and imported only now."""
        return import_module("jumok.training").train(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
