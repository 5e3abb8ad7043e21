"""A table of named components: built in, registered by a decorator, or found as entry points."""

import difflib
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from sandmle.errors import UsageError

T = TypeVar("T")


def nearest(name: str, known: list[str]) -> str:
    """Return the tail of an error message: the closest known name, or all of them.

    >>> nearest("acuracy", ["accuracy", "rmse"])
    "did you mean 'accuracy'? Known: accuracy, rmse"
    """
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(sorted(known))}"


class Registry(Generic[T]):
    """Names to components of one sort, for example metrics.

    `builtins` are modules whose import registers what the package ships; they are imported on the
    first look-up, then whatever other packages declare in the entry-point group `group`.
    """

    def __init__(self, sort: str, builtins: tuple[str, ...] = (), group: str | None = None) -> None:
        self.sort = sort
        self._builtins = builtins
        self._group = group
        self._items: dict[str, T] = {}
        self._loaded = False
        self._loading = threading.RLock()

    def add(self, name: str, item: T) -> T:
        """Register `item` under `name`; a name can be taken only once."""
        if name in self._items:
            raise UsageError(f"the {self.sort} {name!r} is registered already; choose another name")
        self._items[name] = item
        return item

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers what it decorates."""
        return lambda item: self.add(name, item)

    def get(self, name: str) -> T:
        """Return the component called `name`; `UsageError` with the nearest name otherwise."""
        self._load()
        if name not in self._items:
            raise UsageError(f"unknown {self.sort} {name!r}; {nearest(name, list(self._items))}")
        return self._items[name]

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        self._load()
        return sorted(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter([self._items[name] for name in self.names()])

    def __contains__(self, name: str) -> bool:
        self._load()
        return name in self._items

    def _load(self) -> None:
        with self._loading:  # another thread waits until the table is whole
            if self._loaded:
                return
            self._loaded = True  # first, so that a module may look others up while it registers
            for module in self._builtins:
                import_module(module)
            for entry in entry_points(group=self._group) if self._group else ():
                try:
                    entry.load()
                except Exception as error:  # whatever somebody else's module raises
                    raise UsageError(
                        f"the {self.sort} {entry.name!r} of {entry.value} cannot be loaded: "
                        f"{type(error).__name__}: {error}"
                    ) from error
