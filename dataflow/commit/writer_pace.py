"""The number of writers that an epoch waits for, where each epoch costs a write to the disk.

Writers that were just answered come again at once, as a rule. Waiting for most of them, for a moment, makes one
write of what would have been two. Where they do not come, it is not tried again for a while: twice as long each time.
"""

from __future__ import annotations

EPOCHS_SKIPPED_MAX = 256


class WriterPace:
    """No clock: whoever waits says when it was in vain."""

    def __init__(self) -> None:
        self._expected = 0
        self._skips = 0
        self._skips_after = 4

    def is_enough(self, waiting: int) -> bool:
        """Whether an epoch may be opened with so many statements."""
        if waiting < self._expected:
            return False
        if self._expected:
            self._skips_after = 4
        return True

    @property
    def is_waiting(self) -> bool:
        return self._expected > 0

    def in_vain(self) -> None:
        """They have not come."""
        self._expected = 0
        self._skips = self._skips_after
        self._skips_after = min(2 * self._skips_after, EPOCHS_SKIPPED_MAX)

    def answered(self, count: int, waiting: int) -> None:
        """An epoch is over: so many statements were answered, and so many have come meanwhile."""
        if self._skips:
            self._skips -= 1
            self._expected = 0
        else:
            self._expected = (count + waiting) * 3 // 4
