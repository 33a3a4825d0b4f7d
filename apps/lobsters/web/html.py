"""The pages as HTML. All that comes from the database is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from apps.lobsters.pages import Result, Visit

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Foot:
    """How long a page took, how many statements it ran, and where their rows came from: None if the server does not say."""

    server: str
    seconds: float
    statements: int
    sources: Mapping[str, int] | None


def records(result: Result) -> list[Record]:
    return [{name: row[place] for name, place in result.columns.items()} for row in result.rows]


def shell(title: str, body: str, foot: Foot, root: str) -> str:
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"></head><body>
<header><b>L</b><a href="{root}/"><strong>Lobsters</strong></a><a href="{root}/submit">Submit a story</a><span></span><small class="by">on {escape(foot.server)}</small></header>
<main>{body}</main>{_foot(foot)}</body></html>"""


def _foot(foot: Foot) -> str:
    if not foot.statements:
        return "<footer>This page asked nothing of the database.</footer>"
    said = f'<footer>This page took <b id="took">{1000 * foot.seconds:.1f} ms</b> for {foot.statements} statements on {escape(foot.server)}.'
    if foot.sources is not None:
        names = {"memory": "from shared memory", "view": "asked of a maintained view", "tables": "evaluated on the tables"}
        said += "".join(f'<i class="{name}"></i><b id="{name}">{foot.sources[name]}</b> {text}' for name, text in names.items())
        if writes := foot.statements - sum(foot.sources.values()):
            said += f'<i class="write"></i><b id="write">{writes}</b> written'
    return said + "</footer>"


def front_page(visit: Visit, root: str) -> str:
    found = visit.results
    stories = {each["id"]: each for each in records(found["frontpage.stories"])}
    authors = {each["id"]: each["username"] for each in records(found["frontpage.authors"])}
    tags = _tags(found["frontpage.taggings"], found["frontpage.tags"])
    mine = {each["story_id"] for each in records(found["frontpage.my_votes"])}
    order = [each["id"] for each in records(found["frontpage.ids"]) if each["id"] in stories]
    return "<ol>" + "".join(_story(stories[number], authors, tags, number in mine, root) for number in order) + "</ol>"


def _tags(taggings: Result, tags: Result) -> dict[int, list[str]]:
    names = {each["id"]: each["tag"] for each in records(tags)}
    found: dict[int, list[str]] = {}
    for each in records(taggings):
        found.setdefault(each["story_id"], []).append(str(names.get(each["tag_id"], "")))
    return found


def _story(story: Record, authors: Mapping[int, str], tags: Mapping[int, Sequence[str]], voted: bool, root: str) -> str:
    name, author = escape(str(story["short_id"])), escape(str(authors.get(story["user_id"], "somebody")))
    labels = "".join(f'<span class="tag">{escape(each)}</span>' for each in tags.get(story["id"], ()))
    return f"""<li class="story"><form class="vote" method="post" action="{root}/story/{name}/vote"><button title="upvote"{' disabled' if voted else ''}>▲</button>
<b>{story["score"]}</b></form><div><a class="title" href="{root}/story/{name}">{escape(str(story["title"]))}</a>{labels}
<div class="by">by <a href="{root}/user/{author}">{author}</a> at {escape(str(story["created_at"]))}</div></div></li>"""


def story_page(visit: Visit, root: str) -> str:
    found = visit.results
    [story] = records(found["story.by_slug"])
    authors = {each["id"]: each["username"] for each in [*records(found["story.author"]), *records(found["story.commenters"])]}
    voted = bool(found["story.my_vote"].rows)
    comments = "".join(_comment(each, authors, root) for each in records(found["story.comments"]))
    name = escape(str(story["short_id"]))
    return f"""<ol>{_story(story, authors, _tags(found["story.taggings"], found["story.tags"]), voted, root)}</ol>
<p>{escape(str(story["description"] or ""))}</p>
<form class="write" method="post" action="{root}/story/{name}/comment"><button>Leave a comment</button></form>{comments}"""


def _comment(comment: Record, authors: Mapping[int, str], root: str) -> str:
    author = escape(str(authors.get(comment["user_id"], "somebody")))
    place = "comment reply" if comment["parent_comment_id"] else "comment"
    return f"""<div class="{place}"><div class="by"><b>{comment["score"]}</b> · <a href="{root}/user/{author}">{author}</a> at {escape(str(comment["created_at"]))}</div>
{escape(str(comment["comment"]))}</div>"""


def user_page(visit: Visit) -> str:
    found = visit.results
    [user] = records(found["user.by_name"])
    stats = next(iter(records(found["user.stats"])), {"stories": 0, "comments": 0})
    tag = next(iter(records(found["user.tag"])), {"tag": "none"})
    return f"""<h1>{escape(str(user["username"]))}</h1><p>since {escape(str(user["created_at"]))}</p>
<p><b>{stats["stories"]}</b> stories, <b>{stats["comments"]}</b> comments, writes most about <span class="tag">{escape(str(tag["tag"]))}</span></p>"""


def submit_page(root: str) -> str:
    return f"""<h1>Submit a story</h1><form class="write" method="post" action="{root}/submit"><input name="title" placeholder="title" required maxlength="100" autofocus>
<button>Submit</button></form>"""
