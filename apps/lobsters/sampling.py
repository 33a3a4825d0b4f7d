"""Who acts on what: items drawn as often as the site's own histograms say.

A histogram (`data/*.dat`) counts items by how often they were voted for or commented on. Items are numbered
bin by bin, so the largest number is the most popular item. `scale` multiplies the number of items in each bin.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from importlib import resources
from random import Random

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
SLUG_LENGTH = 6
SLUGS = len(DIGITS) ** SLUG_LENGTH


class HistogramSampler:
    """Draws item i in proportion to the mean count of its bin."""

    def __init__(self, file: str, bin_width: int, scale: float) -> None:
        self._first: list[int] = []
        self._count: list[int] = []
        self._start: list[int] = []
        position = item = 0
        for line in resources.files("apps.lobsters").joinpath("data", file).read_text().splitlines():
            center, items = map(int, line.split())
            items = int(items * scale + 0.5)
            if not items:
                continue
            self._start.append(position)
            self._first.append(item)
            self._count.append(items)
            position += items * (4 * center or bin_width)  # quarters: items of bin 0 average a quarter of its width
            item += items
        self._total = position
        self.items = item

    def draw(self, random: Random) -> int:
        at = random.randrange(self._total)
        number = bisect_right(self._start, at) - 1
        return self._first[number] + at % self._count[number]


@dataclass(frozen=True)
class Samplers:
    """Of one scale: 1 is the site in 2018."""

    users: HistogramSampler
    stories: HistogramSampler
    comments: HistogramSampler
    commented: HistogramSampler

    @property
    def story_count(self) -> int:
        return max(self.stories.items, self.commented.items)


def samplers(scale: float) -> Samplers:
    return Samplers(
        HistogramSampler("votes_per_user.dat", 100, scale),
        HistogramSampler("votes_per_story.dat", 10, scale),
        HistogramSampler("votes_per_comment.dat", 10, scale),
        HistogramSampler("comments_per_story.dat", 10, scale),
    )


def slug(number: int) -> str:
    """The short id of a story or comment, in base 36."""
    digits = []
    for _ in range(SLUG_LENGTH):
        number, digit = divmod(number, 36)
        digits.append(DIGITS[digit])
    return "".join(reversed(digits))
