"""MediaWiki, as Debian packages it: installed by its own installer, then read, written and searched as its users do."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.parse
from pathlib import Path

from tests.clients.website import PhpSite, Visitor

PACKAGES = ("mediawiki", "php-cli", "php-mysql", "php-mbstring", "php-xml", "php-intl")
SOURCE = Path("/usr/share/mediawiki")
ADMIN, PASSWORD = "Ann", "a long pass phrase of Ann's"
INSTALL_TIMEOUT_S = 300
UNORDERED = ("RecentChanges", "Special:Log", "NewPages", "api", "watch", "search")
"""Pages in the order of seconds, in which several things happen, or without ORDER BY."""
REPEATS = 3  # a query that repeats is answered by a view

SETTINGS = """
$wgShowExceptionDetails = true; $wgShowDBErrorBacktrace = true; $wgDBerrorLog = '{log}';
$wgMainCacheType = CACHE_NONE; $wgSessionCacheType = CACHE_DB; $wgParserCacheType = CACHE_NONE; $wgMessageCacheType = CACHE_NONE;
$wgCacheDirectory = '{cache}'; $wgEnableEmail = false; $wgJobRunRate = 0; $wgPingback = false; $wgSecretKey = 'of a test';
$wgRateLimits = [];
"""


def install(folder: Path, log: Path, address: str, host: str, port: int, user: str, password: str) -> dict[str, str]:
    """Run the installer; the environment of a PHP that serves the wiki."""
    folder.mkdir()
    command = [
        "php", str(SOURCE / "maintenance" / "install.php"), "--dbtype=mysql", f"--dbserver={host}:{port}", "--dbname=wiki",
        f"--dbuser={user}", f"--dbpass={password}", f"--server={address}", "--scriptpath=", f"--confpath={folder}", f"--pass={PASSWORD}",
        "Mills & Races", ADMIN,
    ]  # fmt: skip
    clean = {name: value for name, value in os.environ.items() if name != "MW_CONFIG_FILE"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, env=clean, cwd=folder)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    settings = folder / "LocalSettings.php"
    with settings.open("a") as file:
        file.write(SETTINGS.format(log=log, cache=folder))
    return {"MW_CONFIG_FILE": str(settings)}


def run_maintenance(script: str, environment: dict[str, str]) -> str:
    command = ["php", str(SOURCE / "maintenance" / script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, env=os.environ | environment)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


class Tour:
    """What users do, each step with the page that they see."""

    def __init__(self, site: PhpSite, environment: dict[str, str]) -> None:
        self.pages: list[tuple[str, str]] = []
        self.anyone = Visitor(site.address)
        self.editor = Visitor(site.address)
        self._environment = environment

    def see(self, title: str, page: str) -> None:
        self.pages.append((title, page))

    def run(self) -> list[tuple[str, str]]:
        self.see("main page", self.anyone.get("/index.php"))
        self.log_in()
        self.edit("Wheel", "A '''wheel''' turns in a [[mill]]. [[Category:Parts]] It's 100% oak.")
        self.edit("Mill", "A mill has a [[wheel]] and a [[race]]. [[Category:Buildings]]")
        self.edit("Template:Note", "<b>{{{1}}}</b> [[Category:Noted]]")
        self.finish_jobs()
        self.read()
        self.search()
        self.edit("Wheel", "A '''water wheel''' turns in a [[mill]]. {{Note|Beware 😀}} [[Category:Parts]]")
        self.finish_jobs()
        self.move()
        self.read()
        self.search()
        self.administer()
        return self.pages

    def log_in(self) -> None:
        form = "/index.php?title=Special:UserLogin"
        wrong = self.editor.fill_in(form, "wpName", {"wpName": ADMIN, "wpPassword": "wrong"})
        assert "Incorrect username or password" in wrong
        page = self.editor.fill_in(form, "wpName", {"wpName": ADMIN, "wpPassword": PASSWORD})
        assert f"User:{ADMIN}" in page
        self.see("logged in", page)
        other = Visitor(self.anyone.address)
        values = {"wpName": "Cy", "wpPassword": PASSWORD + "!", "retype": PASSWORD + "!"}
        page = other.fill_in("/index.php?title=Special:CreateAccount", "retype", values)
        assert "User:Cy" in page
        self.see("account", page)

    def edit(self, title: str, text: str) -> None:
        path = f"/index.php?title={urllib.parse.quote(title)}&action=edit"
        self.see(f"preview {title}", self.editor.fill_in(path, "wpTextbox1", {"wpTextbox1": text, "wpPreview": "Show preview"}))
        page = self.editor.fill_in(path, "wpTextbox1", {"wpTextbox1": text, "wpSummary": "as it is", "wpSave": "Save page"})
        self.see(f"edit {title}", page)

    def finish_jobs(self) -> None:
        """Links and categories follow an edit in jobs of their own."""
        run_maintenance("runJobs.php", self._environment)

    def move(self) -> None:
        values = {"wpNewTitleMain": "Water mill", "wpReason": "there are others", "wpMove": "Move page"}
        self.see("move", self.editor.fill_in("/index.php?title=Special:MovePage/Mill", "wpNewTitleMain", values))
        self.see("watch", self.editor.get("/index.php?title=Special:Watchlist"))

    def read(self) -> None:
        special = ("RecentChanges", "AllPages", "WhatLinksHere/Wheel", "WantedPages", "Categories", "Statistics", "ListUsers", "Log",
                   "Contributions/Ann", "ShortPages", "NewPages", "UncategorizedPages", "PrefixIndex/W", "LinkSearch", "ListGroupRights")  # fmt: skip
        for _ in range(REPEATS):
            for title in ("Wheel", "Mill", "Category:Parts", "Category:Noted", *(f"Special:{each}" for each in special)):
                self.see(f"read {title}", self.anyone.get(f"/index.php?title={title}"))
            for path in ("title=Wheel&action=history", "title=Wheel&action=info", "title=Wheel&diff=prev&oldid=0", "title=Special:Export/Wheel"):
                self.see(f"read {path}", self.anyone.get(f"/index.php?{path}"))
            query = {"action": "query", "format": "json", "generator": "allpages", "prop": "categories|links|info", "list": "recentchanges"}
            self.see("api", json.dumps(json.loads(self.anyone.get(f"/api.php?{urllib.parse.urlencode(query)}")), indent=0))

    def search(self) -> None:
        for _ in range(REPEATS):
            for words in ("wheel", "mill", "water -race", '"a mill"', "wat*", "xylophones", "100%", "turns OR race"):
                query = urllib.parse.urlencode({"title": "Special:Search", "search": words, "fulltext": "1", "ns0": "1"})
                self.see(f"search {words}", self.anyone.get(f"/index.php?{query}"))
            self.see("suggest", self.anyone.get("/api.php?action=opensearch&search=Whe&format=json"))

    def administer(self) -> None:
        values = {"wpReason": "no longer", "wpConfirmB": "Delete page"}
        self.see("delete", self.editor.fill_in("/index.php?title=Template:Note&action=delete", "wpReason", values))
        protect = {"mwProtect-level-edit": "sysop", "mwProtect-reason": "wars"}
        self.see("protect", self.editor.fill_in("/index.php?title=Wheel&action=protect", "mwProtect-reason", protect))
        for title in ("Special:Log", "Special:ListUsers", "Special:Preferences", "Special:Undelete", "Special:ProtectedPages"):
            self.see(f"administer {title}", self.editor.get(f"/index.php?title={title}"))
        self.finish_jobs()
        run_maintenance("updateSpecialPages.php", self._environment)
        run_maintenance("rebuildall.php", self._environment)
        run_maintenance("update.php", self._environment | {"MW_QUICK": "1"})
        self.search()
