"""Checks the links of the built site: every file and anchor that a page names is there. Usage: check.py FOLDER."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes anchors and links."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)
                if name == "src" or tag == "link":
                    self.fetched.add(value)


def main(folder: Path) -> int:
    """Prints what is missing; 1 if anything is."""
    pages = {path.resolve(): Page(path.read_text()) for path in folder.rglob("*.html")}
    problems = []
    links = 0
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.fetched and parts.scheme != "data":
                    problems.append(f"{path.relative_to(folder)}: fetches {link}")
                continue
            links += 1
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not to.is_file():
                problems.append(f"{path.relative_to(folder)}: no file {link}")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].anchors:
                problems.append(f"{path.relative_to(folder)}: no anchor {link}")
    if not pages or not links:
        problems.append(f"{folder}: no pages")
    print("\n".join(problems) or f"site: {len(pages)} pages, {links} links, none broken")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
