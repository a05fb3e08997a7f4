"""The real browser that opens the page: offline, and noting whatever goes wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# No sandbox: tests run as root in containers. The page under test is ours.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@contextmanager
def launched() -> Iterator[Browser]:
    """The machine's Chromium, or the one that `playwright install chromium` brought.

    Without either the test is skipped with that advice; under CI it fails.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as driver:
        try:
            started = driver.chromium.launch(executable_path=found, args=FLAGS)
        except Error as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no Chromium (playwright install chromium): {str(error).splitlines()[0]}")
        yield started
        started.close()


class Visit:
    """A page opened in the browser, with what went wrong in it."""

    def __init__(self, browser: Browser, file: Path, **context: Any) -> None:
        self.context = browser.new_context(offline=True, **context)
        self.page: Page = self.context.new_page()
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())

    def end(self) -> None:
        """Nothing may have gone wrong in it, and nothing else been asked for."""
        assert self.troubles == []
        assert len(self.requests) == 1
        self.context.close()
