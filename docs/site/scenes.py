"""Makes the animated explanations of the site from runs of the scenarios in docs/scenes.

Each lane of a scene is one run, recorded as a capture at both ends of the bottleneck. From the capture follow, for every packet, when it was sent,
when it came to the queue, when it left, and when it arrived, or where it was lost: this is what the page draws, and nothing else.
"""

from __future__ import annotations

import csv
import html
import struct
import subprocess
import tempfile
import tomllib
from collections import defaultdict, deque
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "scenes"
# Longest animation, and most packets that one lane may have: what a page can carry.
LONGEST_S = 30
MOST_PACKETS = 700
# A packet on the receiving host's link is drawn without the time that this link needs to send it.
TOLERANCE_MS = 0.5


class Frame(NamedTuple):
    """A frame of the capture: where and when it was seen, and what its headers say."""

    at: str
    time: float
    flow: tuple[bytes, bytes, int, int]
    sequence: int
    acknowledged: int
    payload: int
    header: bytes


def frames(path: Path) -> list[Frame]:
    """The TCP segments of a capture in pcapng with raw IPv4 frames and times in nanoseconds, as the program writes it."""
    data = path.read_bytes()
    names: list[str] = []
    found = []
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + length - 4]
        if kind == 1:
            names.append(option(body, 8, 2).decode())
            if option(body, 8, 9) != b"\x09":
                raise ValueError(f"{path}: times are not in nanoseconds")
        elif kind == 6:
            interface, high, low, captured, _ = struct.unpack_from("<IIIII", body)
            if frame := segment(names[interface], ((high << 32) | low) / 1e9, body[20 : 20 + captured]):
                found.append(frame)
        at += length
    return found


def option(body: bytes, begin: int, wanted: int) -> bytes:
    """The value of an option of a block of pcapng; empty without it."""
    while begin + 4 <= len(body):
        code, length = struct.unpack_from("<HH", body, begin)
        if code == wanted:
            return body[begin + 4 : begin + 4 + length]
        begin += 4 + (length + 3) // 4 * 4
    return b""


def segment(at: str, time: float, raw: bytes) -> Frame | None:
    """A frame with a TCP segment, or nothing."""
    if len(raw) < 40 or raw[0] >> 4 != 4 or raw[9] != 6:
        return None
    ip = (raw[0] & 15) * 4
    total = struct.unpack_from(">H", raw, 2)[0]
    source, destination, sequence, acknowledged, offset = struct.unpack_from(">HHIIB", raw, ip)
    flow = (raw[12:16], raw[16:20], source, destination)
    return Frame(at, time, flow, sequence, acknowledged, total - ip - (offset >> 4) * 4, raw[ip : ip + 16] + raw[4:6])


class Packet(NamedTuple):
    """A packet on its way: forward or back, flow, what it carries, and its times in seconds."""

    forward: bool
    flow: tuple[bytes, bytes, int, int]
    sequence: int
    payload: int
    entered: float
    left: float
    # "arrived", "queue" (dropped there) or "wire" (lost behind it).
    fate: str


def packets(path: Path, delay: float) -> list[Packet]:
    """What crossed the link named `bottleneck`, from the capture at both of its ends. DELAY is its propagation delay."""
    waiting: dict[tuple[str, bytes], deque[Frame]] = defaultdict(deque)
    found = []
    for frame in sorted(frames(path), key=lambda frame: frame.time):
        link, direction, end = frame.at.rsplit("-", 2)
        if link != "bottleneck":
            continue
        key = (direction, repr(frame.flow).encode() + frame.header)
        if end == "in":
            waiting[key].append(frame)
            continue
        if not waiting[key]:
            continue
        first = waiting[key].popleft()
        if end == "out":
            left, fate = frame.time - delay, "arrived"
        else:
            left, fate = frame.time, "queue" if frame.time - first.time < 1e-6 else "wire"
        forward = direction == "forward"
        flow = first.flow if forward else (first.flow[1], first.flow[0], first.flow[3], first.flow[2])
        found.append(Packet(forward, flow, first.sequence, first.payload, first.time, left, fate))
    return found


def seconds(text: str) -> float:
    """A time as scenario files write it."""
    number, unit = text.split()
    return float(number) * {"s": 1.0, "ms": 1e-3, "us": 1e-6}[unit]


def read(name: str) -> dict[str, Any]:
    """The scenario file of a scene, laid upon what it extends."""
    own = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    if "extends" in own:
        below = tomllib.loads((FOLDER / own["extends"]).read_text())
        return {**below, **own}
    return own


def lane(program: str, name: str, scene: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """Runs one lane and reduces its capture to what is drawn."""
    network = read(name)["network"]
    delay, access = seconds(network["bottleneck"]["delay"]), seconds(network["access"]["delay"])
    with tempfile.TemporaryDirectory() as scratch:
        capture = Path(scratch) / "run.pcapng"
        variant = ["--variant", chosen["variant"]] if chosen["variant"] else []
        arguments = [
            "run",
            str(FOLDER / f"{name}.toml"),
            *variant,
            "--quiet",
            "--out",
            f"{scratch}/out",
            "--pcap",
            str(capture),
        ]
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"docs/scenes/{name}.toml: {done.stderr}")
        crossed = packets(capture, delay)
        with (Path(scratch) / "out" / "samples.csv").open() as file:
            finished = [
                float(row["start_s"]) + float(row["fct_s"])
                for row in csv.DictReader(file)
                if row["completed"] == "true"
            ]
    # Groups begin in the order of the file; a long transfer in the background has most bytes.
    flows = list(dict.fromkeys(packet.flow for packet in sorted(crossed, key=lambda packet: packet.entered)))
    followed = flows[1:] if len(flows) > 1 and scene["follow"] == ["short"] else flows
    data = [packet for packet in crossed if packet.forward and packet.payload and packet.flow in followed]
    begin = min(packet.entered for packet in crossed if packet.flow in followed) - access
    numbers: dict[tuple[Any, int], int] = {}
    # Numbered by where they end: a packet that carries older bytes along has the number of its newest.
    for packet in sorted(data, key=lambda packet: packet.sequence + packet.payload):
        numbers.setdefault(
            (packet.flow, packet.sequence + packet.payload), sum(1 for flow, _ in numbers if flow == packet.flow) + 1
        )
    moments = moments_of(data, begin, delay, access)
    moments["start"] = round(access * 1e3, 1)
    # What is drawn ends when the run says that its last transfer ended: the capture was read as it was meant.
    if finished and abs((max(finished) - begin) * 1e3 - moments["done"]) > TOLERANCE_MS:
        raise ValueError(
            f"scene {name}: drawn to end at {moments['done']} ms, the run says {(max(finished) - begin) * 1e3:.1f} ms"
        )
    rows = []
    for packet in sorted(crossed, key=lambda packet: packet.entered):
        which = followed.index(packet.flow) if packet.flow in followed else -1
        number = first = 0
        if packet.forward and packet.payload and which >= 0:
            end = packet.sequence + packet.payload
            number = numbers[packet.flow, end]
            first = min(
                at for (flow, stop), at in numbers.items() if flow == packet.flow and packet.sequence < stop <= end
            )
        times = [packet.entered - access - begin, packet.entered - begin, packet.left - begin]
        if packet.fate == "arrived":
            times += [packet.left + delay - begin, packet.left + delay + access - begin]
        if not packet.forward and which < 0:
            continue
        rows.append(
            [
                which,
                number,
                first,
                int(packet.forward),
                ["arrived", "queue", "wire"].index(packet.fate),
                *[round(time * 1e3, 2) for time in times],
            ]
        )
    return {
        "name": chosen["name"],
        "flows": len(followed),
        "moments": moments,
        "captions": [{"at": moments[one["when"]], "text": one["text"]} for one in chosen["captions"]],
        "packets": rows,
    }


def moments_of(data: list[Packet], begin: float, delay: float, access: float) -> dict[str, float]:
    """When the things happen that captions speak of, in milliseconds from the beginning of the picture."""
    found = {"data": (min(packet.entered for packet in data) - begin) * 1e3}
    covered: dict[Any, set[int]] = defaultdict(set)
    missing: dict[Any, set[int]] = defaultdict(set)
    complete: dict[Any, float] = {}
    for packet in sorted(data, key=lambda packet: packet.entered):
        span = set(range(packet.sequence, packet.sequence + packet.payload))
        if missing[packet.flow] & span:
            found.setdefault("again", (packet.entered - access - begin) * 1e3)
        if packet.fate == "arrived":
            covered[packet.flow] |= span
            missing[packet.flow] -= span
        else:
            found.setdefault("drop", (packet.left - begin) * 1e3)
            missing[packet.flow] |= span - covered[packet.flow]
    covered.clear()
    for packet in sorted(data, key=lambda packet: packet.left):
        if packet.fate == "arrived":
            before = len(covered[packet.flow])
            covered[packet.flow].update(range(packet.sequence, packet.sequence + packet.payload))
            if len(covered[packet.flow]) > before:
                complete[packet.flow] = (packet.left + delay + access - begin) * 1e3
    found["first"], found["done"] = min(complete.values()), max(complete.values())
    return {name: round(time, 1) for name, time in found.items()}


def make(program: str) -> dict[str, dict[str, Any]]:
    """All scenes by name."""
    made = {}
    for name, scene in tomllib.loads((FOLDER / "scenes.toml").read_text()).items():
        lanes = [lane(program, name, scene, chosen) for chosen in scene["lanes"]]
        end = max(one["moments"]["done"] for one in lanes) * 1.04
        for one in lanes:
            one["packets"] = [row for row in one["packets"] if row[-1] >= 0 and row[5] <= end]
            if len(one["packets"]) > MOST_PACKETS:
                raise ValueError(f"scene {name}: {len(one['packets'])} packets")
        if scene["seconds"] > LONGEST_S:
            raise ValueError(f"scene {name}: longer than {LONGEST_S} s")
        made[name] = {
            "name": name,
            "title": scene["title"],
            "text": scene["text"],
            "end": round(end, 1),
            "wire": round(
                sum(seconds(read(name)["network"][link]["delay"]) for link in ("bottleneck", "access")) * 1e3, 2
            ),
            "seconds": scene["seconds"],
            "lanes": lanes,
        }
    return made


# --- The still picture -------------------------------------------------------------------------------------------------------

WIDTH, LEFT, RIGHT = 720, 84, 12
HEIGHT, TOP = 172, 44
SENDER, QUEUE, LINE, RECEIVER = 8, 44, 62, 118


def still(scene: dict[str, Any]) -> str:
    """The scene as one picture: time to the right; sender, queue and receiver from top to bottom; a line for each packet."""
    scale = (WIDTH - LEFT - RIGHT) / scene["end"]
    height = TOP + HEIGHT * len(scene["lanes"]) + 14
    described = " ".join(
        f"{one['name']}: " + " ".join(caption["text"] for caption in one["captions"]) for one in scene["lanes"]
    )
    parts = [
        f'<svg class="scene-still" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="still-{scene["name"]}-t still-{scene["name"]}-d">',
        f'<title id="still-{scene["name"]}-t">{html.escape(scene["title"])}: every packet of both runs over time</title>',
        f'<desc id="still-{scene["name"]}-d">{html.escape(described)}</desc>',
    ]
    step = next(step for step in (10, 20, 50, 100, 200, 500) if scene["end"] / step <= 9)
    for tick in range(0, int(scene["end"]) + 1, step):
        x = LEFT + tick * scale
        parts.append(
            f'<path class="grid" d="M{x:.1f} 20V{height - 8}"/><text class="tick" x="{x:.1f}" y="13">{tick} ms</text>'
        )
    for index, one in enumerate(scene["lanes"]):
        top = TOP + index * HEIGHT
        parts.append(f'<text class="lane" x="4" y="{top - 8}">{html.escape(one["name"])}</text>')
        for label, y in (("sender", SENDER), ("queue", (QUEUE + LINE) / 2), ("receiver", RECEIVER)):
            parts.append(f'<text class="place" x="4" y="{top + y + 4}">{label}</text>')
        parts.append(
            f'<rect class="queue" x="{LEFT}" y="{top + QUEUE}" width="{WIDTH - LEFT - RIGHT}" height="{LINE - QUEUE}"/>'
        )
        for y in (SENDER, RECEIVER):
            parts.append(f'<path class="axis" d="M{LEFT} {top + y}H{WIDTH - RIGHT}"/>')
        for row in one["packets"]:
            parts.append(path_of(row, top, scale, scene["end"]))
        label_end, low = 0.0, 0
        for caption in one["captions"]:
            x = LEFT + caption["at"] * scale
            parts.append(f'<path class="moment" d="M{x:.1f} {top + SENDER - 4}V{top + RECEIVER + 8}"/>')
            anchor = "end" if x > WIDTH - 60 else "middle"
            # Labels that would meet stand on two lines.
            low = 0 if x - 20 > label_end else 11 - low
            label_end = x + 20
            parts.append(
                f'<text class="when" text-anchor="{anchor}" x="{x:.1f}" y="{top + RECEIVER + 18 + low}">{caption["at"]:.0f} ms</text>'
            )
    parts.append(f'<path class="cursor" d="M{LEFT} 20V{height - 8}"/></svg>')
    return "".join(parts)


def path_of(row: list[Any], top: int, scale: float, end: float) -> str:
    """The line of one packet."""
    which, _, _, forward, fate, *times = row
    levels = (
        [SENDER, QUEUE, LINE, LINE, RECEIVER] if forward else [RECEIVER, RECEIVER - 2, RECEIVER - 2, SENDER, SENDER]
    )
    # Within the queue a packet waits; behind it the link and the receiver's access are one line.
    points = [(times[0], levels[0]), (times[1], levels[1]), (times[2], levels[2])]
    if fate == 0:
        points.append((times[4], levels[4]))
    if not forward:
        points = [(times[0], RECEIVER), (times[-1], SENDER)] if fate == 0 else [(times[0], RECEIVER)]
    kind = "ack" if not forward else f"flow{which % 6}" if which >= 0 else "other"
    drawn = "L".join(f"{LEFT + max(0.0, min(time, end)) * scale:.1f} {top + y}" for time, y in points)
    mark = ""
    if fate:
        x, y = LEFT + times[2] * scale, top + (QUEUE if fate == 1 else LINE + 10)
        mark = f'<path class="lost" d="M{x - 3.5:.1f} {y - 3.5}l7 7m0 -7l-7 7"/>'
    return f'<path class="{kind}" d="M{drawn}"/>{mark}'
