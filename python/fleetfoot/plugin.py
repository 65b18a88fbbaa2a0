"""Mechanisms of your own: a congestion control or a queue discipline as a class.

A class is registered under a name, and scenarios of this process use it like a built-in mechanism::

    @fleetfoot.register
    class Gentle(fleetfoot.Controller):
        \"\"\"Reduces by a third.\"\"\"

        NAME = "gentle"
        PARAMETERS = {"factor": fleetfoot.Parameter(0.67, "Share of the window that is kept", low=0.1,
        high=0.99)}

        def on_ack(self, now, ack):
            if ack.cwnd_limited and not ack.recovering:
                self.window += self.mss * ack.acked / self.window

        def on_loss(self, now, event):
            self.reduce_to(self.window * self.parameters["factor"])

    scenario.with_({"tcp.congestion_control": {"kind": "gentle", "factor": 0.8}})

**How slow.** Every acknowledgment, and every packet at a queue, is a call of Python under the interpreter's
lock. `docs/python-mechanisms.md` has measurements beside the built-in mechanisms; runs in several threads
wait for each other. Runs without such a mechanism are as fast as before. A mechanism that proves itself is
rewritten in Rust (`docs/plugin.md`) with few changes.

**What an author must not do.** A run depends on its scenario and its seed only: use no `random`
without the seed given (``random.Random(connection.seed)``), no clock, no state outside ``self`` (runs go on
in several threads), and no iteration over sets of text.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, overload

from fleetfoot import _native
from fleetfoot._fingerprint import fingerprint
from fleetfoot._native import Ack, Connection, Event, Limit, Link, Packet, QueueContext, Sent
from fleetfoot.errors import UsageError

__all__ = [
    "Ack",
    "Connection",
    "Controller",
    "Event",
    "Limit",
    "Link",
    "Packet",
    "Parameter",
    "Queue",
    "QueueContext",
    "Sent",
    "register",
    "registered",
    "unregister",
]

_Mechanism = TypeVar("_Mechanism", bound="type[Controller | Queue]")

_RANGES: dict[str, tuple[float, float]] = {
    "limit": (1, 4_294_967_295),
    "duration": (0.0, 1e9),
    "bytes": (0, 9e15),
    "rate": (1, 9e15),
    "number": (-1e308, 1e308),
    "integer": (0, 9e15),
    "flag": (0, 1),
    "choice": (0, 0),
}

#: Unit of the plain numbers of a kind.
_UNITS = {"limit": "packets", "duration": "seconds", "bytes": "bytes", "rate": "bit/s"}

#: Kinds without fractions.
_WHOLE = ("limit", "bytes", "rate", "integer")

#: Registered classes by name, and what each was when it was registered.
_classes: dict[str, tuple[type[Controller | Queue], str]] = {}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a class, which scenarios write like those of built-in mechanisms.

    Attributes:
        default: Its value where nothing is written: a plain number (seconds, bytes, bit/s, packets for a
            limit), ``True`` or ``False``, or a word. ``None``: the class finds out itself; for a limit,
            unlimited.
        doc: One sentence, with the source of the default.
        kind: How it is written: ``limit`` (``"60 packets"``, ``"64 kB"``), ``duration`` (``"5 ms"``),
            ``bytes``, ``rate`` (``"10 Mbit/s"``), ``number``, ``integer``, ``flag`` or ``choice``. Found out
            from the default where it is left out: ``flag`` of a truth value, ``integer`` of a whole number,
            ``number`` of another, ``choice`` of a word.
        low: Smallest value, itself included.
        high: Largest value, itself included.
        choices: The words, for a choice.
    """

    default: float | bool | str | None
    doc: str
    kind: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    def _row(self, name: str) -> _Row:
        kind = self.kind or _kind_of(self.default)
        if kind not in _RANGES:
            raise UsageError(f"parameter {name!r}: no kind is called {kind!r}; the kinds are {', '.join(_RANGES)}")
        low = self._number(name, kind, "low", _RANGES[kind][0])
        high = self._number(name, kind, "high", _RANGES[kind][1])
        assert low is not None and high is not None
        word = self.default if isinstance(self.default, str) and kind == "choice" else None
        if kind == "choice" and word not in self.choices:
            raise UsageError(
                f"parameter {name!r}: its default {self.default!r} is none of its choices; a number has a kind"
            )
        default = None if word is not None else self._number(name, kind, "default", None)
        if default is not None and not low <= default <= high:
            raise UsageError(f"the default of the parameter `{name}`: {self.default!r} is not in {low:g} to {high:g}")
        return _Row(
            name=name,
            kind=kind,
            default=default,
            low=low,
            high=high,
            words=list(self.choices),
            default_word=word,
            doc=self.doc,
        )

    def _number(self, name: str, kind: str, which: str, otherwise: float | None) -> float | None:
        """A value that must be a plain number; scenarios write units, this table does not."""
        value = getattr(self, which)
        if value is None:
            return otherwise
        unit = f" of {_UNITS[kind]}" if kind in _UNITS else ""
        try:
            number = None if isinstance(value, str) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or math.isnan(number):
            raise UsageError(f"parameter {name!r}: its {which} {value!r} is no plain number{unit}")
        if which == "default" and kind in _WHOLE and number != math.floor(number):
            raise UsageError(f"parameter {name!r}: its {which} {value!r} is no whole number{unit}")
        return number


@dataclass
class _Row:
    """What the compiled part takes."""

    name: str
    kind: str
    default: float | None
    low: float
    high: float
    words: list[str] = field(default_factory=list)
    default_word: str | None = None
    doc: str = ""


def _kind_of(default: object) -> str:
    """The kind of a default that says nothing of it."""
    if isinstance(default, bool):
        return "flag"
    if isinstance(default, int):
        return "integer"
    if isinstance(default, float):
        return "number"
    return "choice" if isinstance(default, str) else "number"


class Controller:
    """A congestion control: it owns the window and ``ssthresh``.

    Loss detection, retransmission and recovery are the connection's. One object is made for each connection.
    After each call the connection reads three attributes:

    Attributes:
        window: The congestion window, bytes. Less than a segment counts as one segment.
        ssthresh: The slow-start threshold, bytes; ``None`` before the first congestion event. A recovery
            ends with as much in flight.
        pacing_rate: The rate at which packets leave, bit/s; ``None``: as the scenario says (``tcp.pacing``).
            It has an effect where ``USES_RATES`` is true.

    A subclass defines ``NAME``, a docstring and ``on_ack``; the other methods are as in RFC 5681 unless it
    has its own. The order of calls is that of ``fleetfoot_core::cc::CongestionController``, whose documents
    are the reference.
    """

    NAME: ClassVar[str] = ""
    """The name in scenarios: letters a-z, digits and ``-``."""
    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {}
    """What scenarios may set, by name."""
    USES_RATES: ClassVar[bool] = False
    """Whether it needs ``ack.rate``, and sets ``pacing_rate``."""

    window: float
    ssthresh: float | None = None
    pacing_rate: float | None = None

    def __init__(self, parameters: dict[str, Any], connection: Connection) -> None:
        """Begin with the initial window.

        Args:
            parameters: Values of ``PARAMETERS`` in plain numbers: seconds, bytes, bit/s; a limit is a
                :class:`Limit`.
            connection: What the connection says of itself: ``mss`` and ``initial_window`` (bytes),
                ``handshake_rtt`` (s or ``None``), ``seed`` for a random stream of its own, and how the
                profile counts (``count_segments``, ``reduce_from_window``, ``fractions``, ``abc_limit``).
        """
        self.parameters = parameters
        self.connection = connection
        self.mss = connection.mss
        self.window = max(connection.initial_window, connection.mss)
        self._before: tuple[float, float | None] | None = None

    def on_ack(self, now: float, ack: Ack) -> str | None:
        """Take an acknowledgment.

        Args:
            now: Virtual time, s.
            ack: Bytes: ``acked`` (cumulatively, new), ``sacked`` (selectively, new), ``lost`` (new),
                ``in_flight``, ``prior_in_flight``, ``delivered_total``, ``ce_bytes`` (new, under an ECN
                echo); ``segments`` acknowledged; seconds or ``None``: ``rtt``, ``newest_rtt``, ``srtt``,
                ``min_rtt``, ``one_way_delay`` (up to a constant); ``rate`` (delivery rate, bit/s, or
                ``None``; ``rate_app_limited``: a lower bound); truth values: ``round_start``,
                ``app_limited``, ``cwnd_limited``, ``recovering``. The window may grow only if
                ``ack.cwnd_limited and not ack.recovering``.

        Returns:
            ``None``, or ``"reduce"``: the connection enters CWR and calls :meth:`on_delay`.
        """
        raise NotImplementedError

    def on_loss(self, now: float, event: Event) -> None:
        """Reduce for a loss: a recovery begins. ``event``: ``flight_size`` and ``in_flight``, bytes."""
        self.reduce_to(event.flight_size / 2)

    def on_ecn(self, now: float, event: Event) -> None:
        """Reduce after an ECN echo, at most once per round trip; as after a loss."""
        self.on_loss(now, event)

    def on_delay(self, now: float, event: Event) -> None:
        """Reduce as :meth:`on_ack` asked for; as after a loss."""
        self.on_loss(now, event)

    def on_rto(self, now: float, event: Event) -> None:
        """Fall to one segment after a timeout. ``event.first``: not again for the same data."""
        if event.first:
            self.reduce_to(event.flight_size / 2)
        self.window = self.mss

    def on_undo(self, now: float, event: Event) -> None:
        """Restore what was before the last reduction, which was shown to be spurious."""
        if self._before is not None:
            window, self.ssthresh = self._before
            self.window = max(self.window, window)
            self._before = None

    def on_recovery_end(self, now: float, event: Event) -> None:
        """Do nothing at the end of a recovery."""

    def set_window(self, now: float, window: int, ssthresh: int | None) -> None:
        """Take what window validation decided: bytes; ``ssthresh`` is ``None`` if there is none."""
        self.window = max(window, self.mss)
        self.ssthresh = ssthresh
        self._before = None

    def reduce_to(self, window: float) -> None:
        """Set window and threshold to ``window`` bytes, at least two segments; :meth:`on_undo` restores."""
        self._before = (self.window, self.ssthresh)
        self.ssthresh = max(window, 2 * self.mss)
        self.window = self.ssthresh

    # Called only where a subclass has them:
    # def on_sent(self, now, sent): bytes, in_flight, retransmission of each packet that leaves
    # def on_idle(self, now, idle): sends again after `idle` seconds
    # def on_restart(self, now, idle): data leaves while nothing is in flight


class Queue:
    """A queue discipline: it decides which packets wait, in which order they leave, and which are dropped.

    One object is made for each direction of a link. A packet is in its care from ``enqueue`` until
    ``dequeue`` returns it or it is dropped; the packet on the line is not in the queue. What waits is
    counted outside: ``context.packets`` and ``context.bytes``. There are no timers: a law over time acts at
    the next call.

    A subclass defines ``NAME``, a docstring, ``enqueue`` and ``dequeue``. One that holds packets back
    defines ``ready_at(now)``: the time (s) from which ``dequeue`` will give a packet, or ``None``; asked
    after each call while something waits.
    """

    NAME: ClassVar[str] = ""
    """The name in scenarios: letters a-z, digits and ``-``."""
    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {}
    """What scenarios may set, by name. The parameter ``limit`` belongs there."""

    def __init__(self, parameters: dict[str, Any], link: Link) -> None:
        """Begin empty.

        Args:
            parameters: Values of ``PARAMETERS`` in plain numbers: seconds, bytes, bit/s; a limit is a
                :class:`Limit`, whose ``admits(context, packet)`` says whether the packet fits.
            link: ``mtu`` (bytes), ``rate`` (bit/s), ``seed`` for a random stream of its own.
        """
        self.parameters = parameters
        self.link = link

    def enqueue(self, now: float, packet: Packet, context: QueueContext) -> None:
        """Keep ``packet``, or drop it or others with ``context.drop(packet, reason)``.

        Args:
            now: Virtual time, s.
            packet: ``length`` and ``payload`` (bytes), ``flow`` (a number), ``source``, ``destination``,
                ``source_port``, ``destination_port``, ``protocol``, ``enqueued_at`` (s), ``ecn``, ``dscp``,
                ``sequence``, ``is_tcp``, ``is_ack``.
            context: ``packets`` and ``bytes`` that wait; ``drop(packet, reason)`` with ``full``, ``early``
                or ``pushed_out``; ``mark(packet)`` sets "congestion experienced" and says whether the packet
                can carry it.
        """
        raise NotImplementedError

    def dequeue(self, now: float, context: QueueContext) -> Packet | None:
        """Return the next packet for the line; it may drop others. ``None`` only if nothing is ready."""
        raise NotImplementedError


@overload
def register(cls: _Mechanism) -> _Mechanism: ...
@overload
def register(cls: None = None, *, name: str) -> Callable[[_Mechanism], _Mechanism]: ...
def register(cls: Any = None, *, name: str = "") -> Any:
    """Make a class known under its ``NAME``, or under ``name``; as a decorator or as a function.

    A class with the name of an earlier one takes its place, also in scenarios that were read before, from
    their next run on. Finished runs that were kept are used again only if the class is what it was when they
    were made: its code and that of its bases, its attributes, and what its methods refer to
    (`docs/python-mechanisms.md`, Kept runs). Other processes do not know it (Processes, there).

    **It is slow**: a call of Python for each acknowledgment or packet, one thread at a time. A run of one
    flow takes twice the time and more with a controller, five times and more with a queue
    (`docs/python-mechanisms.md` has the measurements).

    Args:
        cls: A subclass of :class:`Controller` or :class:`Queue` with a docstring.
        name: The name in scenarios, instead of ``NAME``.

    Returns:
        The class.

    Raises:
        UsageError: The name is one of a built-in mechanism or not well formed; a docstring, a method or a
        default is missing.
    """
    if cls is None:
        return functools.partial(register, name=name)
    if not (isinstance(cls, type) and issubclass(cls, (Controller, Queue))):
        raise UsageError(f"{cls!r} is no subclass of fleetfoot.Controller or fleetfoot.Queue")
    base = Controller if issubclass(cls, Controller) else Queue
    label = cls.__qualname__.rpartition("<locals>.")[2]
    name = name or cls.NAME
    if not name:
        raise UsageError(f"class {label} has no NAME: what scenarios call it")
    document = inspect.cleandoc(cls.__doc__ or "")
    if not document or cls.__doc__ == base.__doc__:
        raise UsageError(f"class {label} has no docstring: what `explain` says of it")
    for method in ("on_ack",) if base is Controller else ("enqueue", "dequeue"):
        if getattr(cls, method) is getattr(base, method):
            raise UsageError(f"class {label} has no method {method}")
    for parameter in cls.PARAMETERS:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", parameter) or parameter == "kind":
            raise UsageError(f"class {label}: {parameter!r} cannot be the name of a parameter")
    known = fingerprint(cls)
    optional = ("on_sent", "on_idle", "on_restart", "ready_at")
    lines = [f"//! {line}".rstrip() for line in document.splitlines()]
    _native.register(
        kind="controller" if base is Controller else "queue",
        name=name,
        label=label,
        class_=cls,
        own=[method for method in optional if callable(getattr(cls, method, None))],
        uses_rates=bool(getattr(cls, "USES_RATES", False)),
        source="\n".join([*lines, "", f"// {known}"]),
        rows=[parameter._row(key) for key, parameter in cls.PARAMETERS.items()],
    )
    _classes[name] = (cls, known)
    return cls


def renew() -> None:
    """Register classes again that are no longer what they were: a method or what it refers to was replaced.

    Finished runs are known by what a class was, so this comes before everything that may use them again.
    """
    for name, (cls, known) in list(_classes.items()):
        if fingerprint(cls) != known:
            register(name=name)(cls)


def unregister(name: str) -> bool:
    """Take the class registered as ``name`` away; scenarios that name it are refused then.

    Returns:
        Whether there was one.
    """
    _classes.pop(name, None)
    return _native.unregister(name)


def registered() -> dict[str, tuple[str, str]]:
    """Registered classes by name: kind (``congestion control`` or ``queue``) and docstring."""
    return {name: (kind, document) for kind, name, document in _native.registered()}
