"""The old name of `hashrange_patterns`, for one release: it is now a separate distribution,
packages/patterns.

    from hashrange_patterns import Counters         # instead of: from hashrange.patterns import Counters

Both names give identical modules and classes. Raises ModuleNotFoundError if hashrange-patterns is not
installed.
"""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

try:
    import hashrange_patterns
except ModuleNotFoundError as error:
    if error.name != "hashrange_patterns":
        raise
    raise ModuleNotFoundError(
        "hashrange.patterns is a distribution of its own now, hashrange-patterns, and not installed: in a"
        " checkout of Hashrange, pip install packages/patterns",
        name=error.name,
    ) from None


class _Alias(Loader):
    """Finds `hashrange.patterns.NAME` as the module `hashrange_patterns.NAME`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.startswith(__name__ + "."):
            return spec_from_loader(name, _Alias())
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return import_module(hashrange_patterns.__name__ + spec.name.removeprefix(__name__))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to do: the module was executed under its own name."""


warnings.warn(
    "hashrange.patterns is hashrange_patterns now; the old name goes with the next release",
    DeprecationWarning,
    stacklevel=2,
)
sys.meta_path.insert(0, _Alias())
sys.modules[__name__] = hashrange_patterns
