"""Views in shared memory: one process writes, any number read, and nobody waits.

A view's filled keys and their encoded rows are in one file that lives in memory only
(`segment`): a header with an epoch counter, two hash indexes, one heap. The index of the
current epoch is never touched. The writer (`writer`) changes the other one and then moves the
epoch on; a reader (`reader`) notes the epoch, copies out what it needs, and checks that the
writer has not come back to its index meanwhile. If it has, the reader tries again.

What a writer replaced is free for reuse one epoch later, when no reader that could have seen
it would still pass that check. So readers leave no trace but a touched byte for each entry.

Stores must become visible in the order in which they are made, and loads must happen in
theirs. x86 processors promise this, so elsewhere nothing is shared: see `segment.is_possible`.
"""
