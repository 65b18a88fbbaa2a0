"""Tests links.py with Sphinx and a server on this machine. Usage: test_links.py, in the environment of the site."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
CODES = {"/there": 200, "/moved": 301, "/gone": 404, "/private": 403, "/fault": 500}


class Pages(BaseHTTPRequestHandler):
    """A few pages, each with its code."""

    def do_HEAD(self) -> None:
        """Answers without a page."""
        code = CODES[self.path]
        self.send_response(code)
        if code == 301:
            self.send_header("Location", "/there")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def checked(links: list[str]) -> subprocess.CompletedProcess[str]:
    """What is said of a page with these links."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "source"), Path(folder, "output")
        source.mkdir()
        source.joinpath("conf.py").write_text("linkcheck_timeout = 5\nlinkcheck_rate_limit_timeout = 1\n")
        source.joinpath("index.rst").write_text(
            "Links\n=====\n\n" + "\n".join(f"* `{link} <{link}>`__" for link in links)
        )
        sphinx = [sys.executable, "-m", "sphinx", "-b", "linkcheck", "--quiet", str(source), str(output)]
        subprocess.run(sphinx, capture_output=True, check=False)
        told = [sys.executable, str(HERE / "links.py"), str(output / "output.json")]
        return subprocess.run(told, capture_output=True, text=True, check=False)


class Links(unittest.TestCase):
    """Dead links, links that cannot be reached, and no network are kept apart."""

    def setUp(self) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.site = f"http://127.0.0.1:{self.server.server_port}"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.closed = f"http://127.0.0.1:{free.getsockname()[1]}/closed"

    def tearDown(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def test_a_dead_link_fails_and_what_is_not_reached_is_listed(self) -> None:
        done = checked([f"{self.site}{path}" for path in CODES] + [self.closed])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"dead links: 1\n  {self.site}/gone\n    in index.rst:", done.stdout)
        self.assertIn(f"not reached, which says nothing about the page: 1\n  {self.closed}\n", done.stdout)
        self.assertIn("answered without showing the page (login, refusal, fault of the server): 2\n", done.stdout)
        self.assertTrue(done.stdout.endswith("external links: 6 asked, 2 work, 1 dead, 3 not known\n"), done.stdout)
        self.assertNotIn("no network", done.stdout)

    def test_links_that_cannot_be_reached_are_no_dead_links(self) -> None:
        done = checked([f"{self.site}/there", self.closed])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(done.stdout.endswith("external links: 2 asked, 1 work, 0 dead, 1 not known\n"), done.stdout)

    def test_without_a_network_nothing_is_called_dead(self) -> None:
        done = checked([self.closed])
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("no network: none of the addresses below was reached", done.stdout)
        self.assertIn(self.closed, done.stdout)

    def test_a_host_without_an_address_is_dead_where_others_answer(self) -> None:
        row = {"filename": "a.md", "lineno": 1, "uri": "https://gone.invalid/", "status": "broken"}
        row["info"] = "HTTPSConnectionPool(host='gone.invalid'): Max retries exceeded (NameResolutionError(...))"
        works = {"filename": "a.md", "lineno": 2, "uri": f"{self.site}/there", "status": "working"}
        for rows, code in [([row], 3), ([row, works], 1)]:
            with tempfile.TemporaryDirectory() as folder:
                output = Path(folder, "output.json")
                output.write_text("\n".join(json.dumps(row) for row in rows))
                told = [sys.executable, str(HERE / "links.py"), str(output)]
                self.assertEqual(subprocess.run(told, capture_output=True, check=False).returncode, code)


if __name__ == "__main__":
    unittest.main()
