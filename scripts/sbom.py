"""What is inside a program or wheel that cargo builds: a bill of materials (CycloneDX 1.6, JSON) and the licences of all of it.

Usage: sbom.py PACKAGE FEATURES TRIPLE SBOM LICENCES, in the root of the repository. Listed are the libraries that are linked (none of those that
only build scripts, macros or tests use), C code among them, the standard library, the C library where it is linked statically, and what the bundled
script of the report contains. The time in the document is SOURCE_DATE_EPOCH (seconds since 1970), so that two builds write the same bytes.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LICENCE_FILE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
MIT = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the\n"
    '"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,\n'
    "distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to\n"
    "the following conditions:\n\n"
    "The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.\n\n"
    'THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF\n'
    "MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR\n"
    "ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH\n"
    "THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."
)


@dataclass
class Part:
    """A library inside the artefact."""

    name: str
    version: str
    licence: str
    purl: str
    sha256: str = ""
    texts: list[str] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)


def said(*command: str) -> str:
    """What COMMAND prints; its errors are those of this program."""
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"sbom.py: {' '.join(command[:2])} failed")
    return result.stdout


def expression(licence: str | None) -> str:
    """LICENCE as an SPDX expression: old manifests separate choices by a slash."""
    return re.sub(r"\s*/\s*", " OR ", licence or "") or "NOASSERTION"


def texts_of(folder: Path, package: dict[str, Any]) -> list[str]:
    """Licence texts of a crate; for one that ships none, what its licence demands."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and LICENCE_FILE.match(path.name))
    if files:
        return [file.read_text(errors="replace").strip() for file in files]
    licence = expression(package["license"])
    authors = ", ".join(re.sub(r"\s*<.*?>", "", author) for author in package["authors"]) or "its authors"
    if "Apache-2.0" in licence:
        return [f"Copyright {authors}. Used under Apache-2.0; its text is that of LICENSE-APACHE."]
    if "MIT" in licence:
        return [f"Copyright (c) {authors}\n\n{MIT}"]
    raise SystemExit(f"sbom.py: {package['name']} {package['version']} ({licence}) has no licence file")


def packages(triple: str) -> list[dict[str, Any]]:
    """Every package of the lock file that the target may need, as cargo describes it."""
    options = ["--locked", "--all-features", "--filter-platform", triple, "--format-version", "1"]
    return list(json.loads(said("cargo", "metadata", *options))["packages"])


def crates(package: str, features: str, triple: str) -> dict[str, Part]:
    """The crates that are linked into PACKAGE, by name and version, with what each needs directly."""
    options = ["--locked", "--package", package, "--features", features, "--target", triple]
    # Cargo writes no dependency of a macro, and of a library that it names a second time none either.
    tree = said("cargo", "tree", *options, "--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", "|{p}")
    known = {(entry["name"], entry["version"]): entry for entry in packages(triple)}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sums = {(entry["name"], entry["version"]): entry.get("checksum", "") for entry in lock["package"]}
    parts: dict[str, Part] = {}
    path: list[Part] = []
    for line in tree.splitlines():
        depth, _, shown = line.partition("|")
        name, version = shown.split()[:2]
        version = version.removeprefix("v")
        purl = f"pkg:cargo/{name}@{version}"
        part = parts.get(purl)
        if part is None:
            entry = known[name, version]
            part = parts[purl] = Part(name, version, expression(entry["license"]), purl, sums[name, version])
            if entry["source"] is not None:
                part.texts = texts_of(Path(entry["manifest_path"]).parent, entry)
        del path[int(depth) :]
        if path:
            path[-1].needs.add(purl)
        path.append(part)
    return parts


def c_code(parts: dict[str, Part], triple: str) -> None:
    """Adds the C library that a crate compiles: its version is in the crate's own, its licence beside its source."""
    for part in list(parts.values()):
        found = re.fullmatch(r"[\d.]+\+zstd\.([\d.]+)", part.version)
        if part.name != "zstd-sys" or not found:
            continue
        [manifest] = [Path(entry["manifest_path"]) for entry in packages(triple) if entry["name"] == part.name]
        text = (manifest.parent / "zstd" / "LICENSE").read_text().strip()
        purl = f"pkg:generic/zstd@{found.group(1)}"
        parts[purl] = Part("zstd", found.group(1), "BSD-3-Clause", purl, texts=[text])
        part.needs.add(purl)


def libraries_of_the_compiler(root: Part, parts: dict[str, Part], triple: str) -> None:
    """Adds Rust's standard library, and musl where the target links it statically."""
    version = said("rustc", "--version").split()[1]
    purl = f"pkg:generic/rust-std@{version}"
    text = (
        "The standard library of Rust, used under MIT OR Apache-2.0 (LICENSE-APACHE). Its parts and their licences are in the file\n"
        "COPYRIGHT-library.html of the compiler's distribution."
    )
    parts[purl] = Part("rust-std", version, "MIT OR Apache-2.0", purl, texts=[text])
    root.needs.add(purl)
    if not triple.endswith("-musl"):
        return
    archive = Path(said("rustc", "--print", "sysroot").strip(), "lib/rustlib", triple, "lib/self-contained/libc.a")
    found = set(re.findall(rb"\0(\d\.\d+\.\d+)\0", archive.read_bytes()))
    if len(found) != 1:
        raise SystemExit(f"sbom.py: {archive.name} names {len(found)} versions of musl, not one")
    musl = found.pop().decode()
    purl = f"pkg:generic/musl@{musl}"
    parts[purl] = Part("musl", musl, "MIT", purl, texts=[f"Copyright (c) 2005-2020 Rich Felker, et al.\n\n{MIT}"])
    root.needs.add(purl)


def bundled_script(root: Part, parts: dict[str, Part]) -> None:
    """Adds the packages in the script of the report."""
    lock = json.loads((ROOT / "web/package-lock.json").read_text())
    text = (ROOT / "crates/lab/assets/LICENSES.txt").read_text()
    for place, entry in sorted(lock["packages"].items()):
        if not place or entry.get("dev"):
            continue
        name, version = place.removeprefix("node_modules/"), entry["version"]
        section = re.search(rf"^{re.escape(name)} {re.escape(version)}\n\n(.*?)(?=\n-{{80}}|\Z)", text, re.DOTALL | re.MULTILINE)
        if section is None:
            raise SystemExit(f"sbom.py: crates/lab/assets/LICENSES.txt has no {name} {version}: run web/build.sh")
        purl = f"pkg:npm/{name}@{version}"
        parts[purl] = Part(name, version, entry["license"], purl, texts=[section.group(1).strip()])
        root.needs.add(purl)


def document(root: Part, parts: dict[str, Part], triple: str) -> dict[str, Any]:
    """The bill of materials; its serial number is made from what it says."""

    def component(part: Part, kind: str) -> dict[str, Any]:
        made: dict[str, Any] = {"type": kind, "bom-ref": part.purl, "name": part.name, "version": part.version}
        if part.sha256:
            made["hashes"] = [{"alg": "SHA-256", "content": part.sha256}]
        made["licenses"] = [{"expression": part.licence}]
        # The crates of this repository are in no registry.
        return made if part.name.startswith("fleetfoot") else made | {"purl": part.purl}

    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    others = [part for purl, part in sorted(parts.items()) if part is not root]
    bom: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": component(root, "application"),
            "properties": [{"name": "cargo:target", "value": triple}],
        },
        "components": [component(part, "library") for part in others],
        "dependencies": [{"ref": part.purl, "dependsOn": sorted(part.needs)} for part in [root, *others]],
    }
    identity = hashlib.sha256(json.dumps(bom, sort_keys=True).encode()).hexdigest()
    return {"bomFormat": bom.pop("bomFormat"), "specVersion": bom.pop("specVersion")} | {
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, identity)}"
    } | bom


def licences(root: Part, parts: dict[str, Part]) -> str:
    """Each text once, under the names of all that have it; texts that differ in line breaks only are one."""
    by_words: dict[str, tuple[str, list[Part]]] = {}
    for _, part in sorted(parts.items()):
        for text in part.texts:
            named = by_words.setdefault(" ".join(text.split()), (text, []))[1]
            if part not in named:
                named.append(part)
    blocks = [
        "\n".join(f"{part.name} {part.version} ({part.licence})" for part in named) + f"\n\n{text}\n"
        for text, named in by_words.values()
    ]
    head = f"Fleetfoot {root.version} is licensed under {root.licence} (LICENSE-APACHE, LICENSE-MIT). It contains the libraries below.\n"
    line = "-" * 80
    return f"{head}\n" + "".join(f"{line}\n{block}\n" for block in blocks)


def main() -> int:
    """Writes both files."""
    if len(sys.argv) != 6 or "SOURCE_DATE_EPOCH" not in os.environ:
        print("usage: SOURCE_DATE_EPOCH=SECONDS sbom.py PACKAGE FEATURES TRIPLE SBOM LICENCES", file=sys.stderr)
        return 2
    package, features, triple, sbom, texts = sys.argv[1:]
    parts = crates(package, features, triple)
    root = next(iter(parts.values()))
    c_code(parts, triple)
    libraries_of_the_compiler(root, parts, triple)
    bundled_script(root, parts)
    unknown = [f"{part.name} {part.version}" for part in parts.values() if part.licence == "NOASSERTION"]
    if unknown:
        raise SystemExit(f"sbom.py: no licence is given by {', '.join(unknown)}")
    Path(sbom).write_text(json.dumps(document(root, parts, triple), indent=1) + "\n")
    Path(texts).write_text(licences(root, parts))
    print(f"{Path(sbom).name}: {len(parts) - 1} libraries")
    return 0


if __name__ == "__main__":
    sys.exit(main())
