"""Debian's Chromium without a window, steered by selenium. What the page complains of fails the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

PACKAGES = ("chromium", "chromium-driver")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1440,940")
PATIENCE_S = 60.0


class Browser:
    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get("about:blank")  # else only the fragment may change
        self.driver.get(address)

    def find(self, selector: str) -> WebElement:
        """The first element, once it is there and can be seen."""
        return self.until(lambda: next((each for each in self.all(selector) if each.is_displayed()), None), selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def until(self, wanted: Callable[[], Any], what: str = "") -> Any:
        """What `wanted` gives, once it gives something; elements that the page replaces meanwhile are looked for again."""
        wait = WebDriverWait(self.driver, PATIENCE_S, 0.1, ignored_exceptions=[Exception])
        return wait.until(lambda _: wanted(), f"{what}: {self.text()[-800:]}")

    def text(self) -> str:
        return str(self.driver.execute_script("return document.body.innerText"))  # type: ignore[no-untyped-call]

    def until_text(self, text: str) -> None:
        self.until(lambda: text in self.text(), text)

    def script(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)  # type: ignore[no-untyped-call]

    def type(self, selector: str, text: str) -> None:
        found = self.find(selector)
        found.send_keys(Keys.CONTROL, "a")
        found.send_keys(text)

    def press(self, key: str) -> None:
        self.driver.switch_to.active_element.send_keys(key)

    def log_in(self, address: str, user: str = "root", password: str = "") -> None:
        self.open(address)
        self.type("#login [name=user]", user)
        self.find("#login [name=password]").send_keys(password + Keys.ENTER)

    def complaints(self) -> list[str]:
        """Errors that the page has logged."""
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] == "SEVERE"]  # type: ignore[no-untyped-call]

    def photograph(self, name: str) -> None:
        """A picture for who wants to look: into the folder MILLRACE_SCREENSHOTS, if that is set."""
        if folder := os.environ.get("MILLRACE_SCREENSHOTS"):
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))


@contextmanager
def chromium() -> Iterator[Browser]:
    _install()
    options = webdriver.ChromeOptions()
    for each in OPTIONS:
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def _install() -> None:
    if shutil.which("chromium") and shutil.which("chromedriver"):
        return
    assert os.getuid() == 0, f"missing Debian packages, please install them: {' '.join(PACKAGES)}"
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        subprocess.run(["apt-get", "-qq", *command], env=environment, check=True, capture_output=True, timeout=900)
