"""Libraries that the package can do without."""

from __future__ import annotations

import importlib
import re
from importlib import metadata
from typing import Any

from fleetfoot.errors import MissingExtraError

__all__ = ["library", "missing"]


def missing(package: str) -> MissingExtraError:
    """What is raised for want of a package; the message has the command that installs it, as the extra wants it.

    Fleetfoot itself is on no registry, so ``fleetfoot[extra]`` alone would name nothing that pip finds.
    """
    install = package
    for requirement in metadata.requires("fleetfoot") or []:
        wanted, _, extra = requirement.partition(";")
        if "extra" in extra and re.split(r"[^\w.-]", wanted, maxsplit=1)[0] == package:
            install = wanted.strip()
            break
    return MissingExtraError(f'{package} is not installed: pip install "{install}"', name=package)


def library(module: str, package: str = "") -> Any:  # noqa: ANN401
    """A module of a library that an extra brings; ``package`` where the library is called otherwise.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(package or module.partition(".")[0]) from error
