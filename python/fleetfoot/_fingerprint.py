"""What a class of Python does, as a hash: two runs with equal hashes can stand for each other."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import io
import pickle
import secrets
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

__all__ = ["fingerprint"]

#: Attributes of a class that say nothing of what it does; some of them differ from process to process.
_ASIDE = {
    "__abstractmethods__",
    "__annotate__",
    "__annotate_func__",
    "__annotations__",
    "__annotations_cache__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__module__",
    "__static_attributes__",
    "__weakref__",
    "_abc_impl",
}


def fingerprint(cls: type) -> str:
    """Hash of what ``cls`` is now.

    It covers the code of its methods and of its bases, its attributes, and the functions, classes and values that
    its methods refer to, in its module and in others that are not installed. Of installed packages it has name and
    version. A value that nobody can read gives a hash that never comes again.
    """
    reader = _Reader(cls.__module__)
    reader.feed(cls)
    return reader.known.hexdigest()


class _Reader:
    def __init__(self, module: str) -> None:
        self.module = module
        self.known = hashlib.sha256()
        self.seen: set[int] = set()

    def is_own(self, module: str | None) -> bool:
        """Whether the code of a module is read: that of the author, and what classes of mechanisms inherit."""
        return module is None or module in (self.module, "fleetfoot.plugin") or not _is_installed(module)

    def feed(self, value: object, names: tuple[str, ...] = ()) -> None:
        """Take a value; of a module those of its parts that ``names`` may mean."""
        self.known.update(type(value).__qualname__.encode())
        if isinstance(value, types.ModuleType):
            self.feed_module(value, names)
        elif isinstance(value, (frozenset, set)):
            # Their order changes from process to process.
            for digest in sorted(self.digest(item) for item in value):
                self.known.update(digest)
        elif isinstance(value, (dict, types.MappingProxyType)):
            for key, item in value.items():
                self.feed(key, names)
                self.feed(item, names)
        elif isinstance(value, (types.FunctionType, types.CodeType, type, tuple, list)):
            if id(value) in self.seen:
                return
            # What holds itself ends here; it lives as long as the class, so its number is not given again.
            self.seen.add(id(value))
            if isinstance(value, types.FunctionType):
                self.feed_function(value)
            elif isinstance(value, types.CodeType):
                self.feed_code(value)
            elif isinstance(value, type):
                self.feed_class(value)
            else:
                for item in value:
                    self.feed(item, names)
        elif isinstance(value, (staticmethod, classmethod)):
            self.feed(value.__func__)
        elif isinstance(value, property):
            for function in (value.fget, value.fset, value.fdel):
                self.feed(function)
        else:
            wrapped = getattr(value, "__wrapped__", None)
            if isinstance(wrapped, types.FunctionType):
                self.feed(wrapped)
            self.feed_pickle(value)

    def digest(self, value: object) -> bytes:
        inner = _Reader(self.module)
        inner.feed(value)
        return inner.known.digest()

    def feed_module(self, module: types.ModuleType, names: tuple[str, ...]) -> None:
        self.known.update(f"{module.__name__} {_version(module.__name__)}".encode())
        if self.is_own(module.__name__):
            for name in names:
                if name in vars(module):
                    self.known.update(name.encode())
                    self.feed(vars(module)[name], names)

    def feed_function(self, function: types.FunctionType) -> None:
        self.known.update(f"{function.__module__}.{function.__qualname__}".encode())
        if not self.is_own(function.__module__):
            self.known.update(_version(function.__module__).encode())
            return
        for part in (function.__code__, function.__defaults__, function.__kwdefaults__):
            self.feed(part)
        names = _names(function.__code__)
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):
                self.feed(cell.cell_contents, names)
        for name in names:
            if name in function.__globals__:
                self.known.update(name.encode())
                self.feed(function.__globals__[name], names)

    def feed_code(self, code: types.CodeType) -> None:
        self.known.update(code.co_code)
        self.known.update(getattr(code, "co_exceptiontable", b""))
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.known.update(repr((counts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode())
        for constant in code.co_consts:
            self.feed(constant)

    def feed_class(self, cls: type) -> None:
        self.known.update(f"{cls.__module__}.{cls.__qualname__}".encode())
        if not self.is_own(cls.__module__):
            self.known.update(_version(cls.__module__).encode())
            return
        for base in cls.__bases__:
            self.feed(base)
        for name, attribute in sorted(vars(cls).items()):
            if name not in _ASIDE:
                self.known.update(name.encode())
                self.feed(attribute)

    def feed_pickle(self, value: object) -> None:
        written = io.BytesIO()
        try:
            _Pickler(written, self).dump(value)
        except Exception:
            # Nobody knows what it does: nothing kept is used again.
            self.known.update(secrets.token_bytes(16))
        self.known.update(written.getvalue())


class _Pickler(pickle.Pickler):
    """Hands functions and classes of the author to the reader: a pickle has only their names."""

    def __init__(self, written: io.BytesIO, reader: _Reader) -> None:
        super().__init__(written, protocol=4)
        self.reader = reader

    def reducer_override(self, value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, (types.FunctionType, type)) and self.reader.is_own(value.__module__):
            self.reader.feed(value)
            return str, (value.__qualname__,)
        return NotImplemented


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Names that a function and those within it look up outside, or in what they found there."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(_names(constant))
    return tuple(sorted(names))


@functools.cache
def _is_installed(module: str) -> bool:
    """Whether a module belongs to Python or to an installed package, whose version stands for what it does."""
    root = module.partition(".")[0]
    if root == "fleetfoot" or root in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(root), "__file__", None)
    if file is None:
        return False
    place = Path(file).resolve()
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    return place.is_relative_to(standard) or not {"site-packages", "dist-packages"}.isdisjoint(place.parts)


@functools.cache
def _version(module: str) -> str:
    """The version of the package that a module belongs to, as far as it says."""
    root = module.partition(".")[0]
    found = getattr(sys.modules.get(root), "__version__", None)
    if isinstance(found, str):
        return found
    try:
        return importlib.metadata.version(root)
    except importlib.metadata.PackageNotFoundError:
        return ""
