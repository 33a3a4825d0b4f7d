"""WordPress, as Debian packages it: installed by its own installer, then read, written and searched as its users do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.clients.website import PhpSite, Visitor

PACKAGES = ("wordpress", "wordpress-theme-twentytwentythree", "php-cli", "php-mysql")
SOURCE = Path("/usr/share/wordpress")
PASSWORD = "a long pass phrase of Ann's"
REPEATS = 3  # a query that repeats is answered by a view

CONFIGURATION = """<?php
define('DB_NAME', 'wordpress'); define('DB_USER', '{user}'); define('DB_PASSWORD', '{password}'); define('DB_HOST', '{host}:{port}');
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT'] as $each)
  define($each, 'of a test ' . $each);
define('DISABLE_WP_CRON', true); define('WP_HTTP_BLOCK_EXTERNAL', true); define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_DEBUG', true); define('WP_DEBUG_DISPLAY', false); define('WP_DEBUG_LOG', '{log}');
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
function wp_mail() {{ return true; }}
require_once ABSPATH . 'wp-settings.php';
"""


def unpack(folder: Path) -> None:
    """A copy of the packaged files, with links followed, whose configuration the test may write."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("wp-config.php"))


def configure(folder: Path, log: Path, host: str, port: int, user: str, password: str) -> None:
    text = CONFIGURATION.format(host=host, port=port, user=user, password=password, log=log)
    (folder / "wp-config.php").write_text(text)


class Tour:
    """What users do, each step with the page that they see."""

    def __init__(self, site: PhpSite) -> None:
        self.pages: list[tuple[str, str]] = []
        self.anyone = Visitor(site.address)
        self.editor = Visitor(site.address)

    def see(self, title: str, page: str) -> None:
        self.pages.append((title, page))

    def run(self) -> list[tuple[str, str]]:
        self.install()
        self.log_in()
        first = self.write("2020-05-01T10:00:00", "A mill", "<p>The race feeds the <b>wheel</b>.</p>", ["water", "wood"])
        second = self.write("2020-06-02T11:00:01", "A second mill", "<p>Wind &amp; sails, 100% \\' \" 😀</p>", ["wind"])
        self.comment(first)
        self.read(first, second)
        self.search()
        self.edit(first, second)
        self.read(first, second)
        self.search()
        self.administer()
        return self.pages

    def install(self) -> None:
        self.see("install, asked", self.anyone.get("/wp-admin/install.php?step=1"))
        values = {
            "weblog_title": "Mills & Races", "user_name": "ann", "admin_password": PASSWORD, "admin_password2": PASSWORD,
            "admin_email": "ann@example.org", "blog_public": "1", "language": "",
        }  # fmt: skip
        self.see("install, done", self.anyone.post("/wp-admin/install.php?step=2", values))

    def log_in(self) -> None:
        self.editor.get("/wp-login.php")
        wrong = self.editor.post("/wp-login.php", {"log": "ann", "pwd": "wrong", "testcookie": "1"})
        assert "is incorrect" in wrong
        page = self.editor.post("/wp-login.php", {"log": "ann", "pwd": PASSWORD, "rememberme": "forever", "testcookie": "1"})
        assert "Dashboard" in page
        self.see("dashboard", page)
        links = {"selection": "custom", "permalink_structure": "/%year%/%postname%/", "category_base": "", "tag_base": ""}
        self.see("permanent links", self.editor.fill_in("/wp-admin/options-permalink.php", "permalink_structure", links))

    def _rest(self, path: str, value: object) -> dict[str, object]:
        nonce = self.editor.get("/wp-admin/admin-ajax.php?action=rest-nonce")
        found = json.loads(self.editor.send_json(f"/index.php?rest_route=/wp/v2/{path}", value, {"X-WP-Nonce": nonce}))
        assert isinstance(found, dict)
        return found

    def write(self, moment: str, title: str, content: str, tags: list[str]) -> int:
        """As the editor of blocks does: tags first, a draft, then published. `moment` is fixed: what is of one second has no order."""
        numbers = [self._rest("tags", {"name": name})["id"] for name in tags]
        category = self._rest("categories", {"name": f"About {title.lower()}"})["id"]
        self.see("editor", self.editor.get("/wp-admin/post-new.php"))
        draft = self._rest("posts", {"title": title, "status": "draft", "date_gmt": moment, "tags": numbers, "categories": [category]})["id"]
        self._rest(f"posts/{draft}", {"content": content, "status": "publish"})
        assert isinstance(draft, int)
        return draft

    def comment(self, post: int) -> None:
        values = {"comment_post_ID": str(post), "comment_parent": "0", "author": "Bob", "email": "bob@example.org", "url": ""}
        self.see("comment", self.anyone.post("/wp-comments-post.php", values | {"comment": "It's a fine wheel"}))
        self.see("too quickly", self.anyone.post("/wp-comments-post.php", values | {"comment": "And it turns"}, 429))
        self.see("moderation", self.editor.get("/wp-admin/edit-comments.php?comment_status=moderated"))
        self._rest("comments/2", {"status": "approved", "date_gmt": "2020-05-02T10:00:00"})
        self._rest("comments", {"post": post, "parent": 2, "content": "Thank you", "date_gmt": "2020-05-03T10:00:00"})

    def read(self, first: int, second: int) -> None:
        paths = ["/", f"/?p={first}", f"/?p={second}", "/?tag=water", "/?cat=1", "/?author=1", "/?feed=rss2", "/?feed=comments-rss2",
                 "/?page_id=2", "/index.php?rest_route=/wp/v2/posts", "/?m=2020", "/?m=202006", "/?m=2019"]  # fmt: skip
        for _ in range(REPEATS):
            for path in paths:
                self.see(f"read {path}", self.anyone.get(path, 404 if path == "/?m=2019" else 200))

    def search(self) -> None:
        for _ in range(REPEATS):
            for words in ("wheel", "mill", "100%25", "second+sails", "nothing-like-it", "😀".encode().hex()):
                self.see(f"search {words}", self.anyone.get(f"/?s={words}"))
            self.see("search in posts", self.editor.get("/wp-admin/edit.php?s=mill&orderby=title&order=asc"))

    def edit(self, first: int, second: int) -> None:
        self._rest(f"posts/{first}", {"title": "A water mill", "content": "<p>The race feeds the sails.</p>", "sticky": True})
        self.see("revisions", self.editor.get(f"/index.php?rest_route=/wp/v2/posts/{first}/revisions&_fields=id", 401))
        page = self.editor.fill_in("/wp-admin/options-general.php", "blogname", {"blogname": "Mills", "timezone_string": "UTC"})
        self.see("settings", page)
        self._rest("users", {"username": "cy", "email": "cy@example.org", "password": PASSWORD, "roles": ["author"]})
        self._rest("pages", {"title": "About", "content": "us", "status": "publish", "menu_order": 3})

    def administer(self) -> None:
        for path in ("edit.php", "edit.php?post_type=page", "edit-tags.php?taxonomy=post_tag", "edit-tags.php?taxonomy=category", "users.php", "edit-comments.php",
                     "upload.php?mode=list", "themes.php", "plugins.php", "options-reading.php", "profile.php", "export.php?download=true&content=all",
                     "site-health.php"):  # fmt: skip
            self.see(f"administer {path}", self.editor.get(f"/wp-admin/{path}"))
