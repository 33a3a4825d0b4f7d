"""The page itself: a few files that are read once, sent to anybody, and ask for data with the account that is given in the page.

Nothing is loaded from anywhere else, and the browser is told to refuse that. The browser keeps no credentials: they are in the
page's session storage and travel in a header that no other site can make it send.
"""

from __future__ import annotations

from hashlib import sha256
from importlib import resources

from aiohttp import web

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "txt": "text/plain"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class PageFiles:
    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, str, str]] = {}
        folder = resources.files("backend.http") / "page"
        for place, prefix in ((folder, ""), (folder / "vendor", "vendor/")):
            for each in place.iterdir():
                kind = _TYPES.get(each.name.rpartition(".")[2])
                if kind is not None and each.is_file():
                    content = each.read_bytes()
                    self._files[prefix + each.name] = (content, kind, f'"{sha256(content).hexdigest()[:20]}"')

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/page/{name:[a-z_./]+}", self._show)]

    async def _show(self, request: web.Request) -> web.Response:
        return self.file(request, request.match_info["name"])

    def file(self, request: web.Request, name: str) -> web.Response:
        found = self._files.get(name)
        if found is None:
            raise web.HTTPNotFound(reason="no such file")
        content, kind, tag = found
        headers = _HEADERS | {"ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=content, content_type=kind, charset="utf-8", headers=headers)
