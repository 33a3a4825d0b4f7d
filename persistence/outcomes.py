"""The outcomes of transactions whose clients may still ask, in memory beside a shard's stored records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from dataflow.commit.epoch_messages import TransactionId

VERSION_BYTES = 8
SEQUENCE_BYTES = 8

Results = tuple[int, ...]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Results).decode


def outcome_name(transaction: TransactionId) -> bytes:
    """Under which a transaction's record is stored."""
    client, sequence = transaction
    return client + sequence.to_bytes(SEQUENCE_BYTES, "big")


def outcome_record(epoch: int, results: Results) -> bytes:
    """A transaction committed in that epoch; `results` are those of statements that the shard has run itself."""
    version = epoch.to_bytes(VERSION_BYTES, "big")
    return version + _encode(results) if results else version


class Outcomes:
    def __init__(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """`records` are all that are stored, with their names."""
        self._epochs: dict[bytes, dict[int, int]] = {}
        self._results: dict[TransactionId, Results] = {}
        for name, record in records:
            transaction = name[:-SEQUENCE_BYTES], int.from_bytes(name[-SEQUENCE_BYTES:], "big")
            results = _decode(record[VERSION_BYTES:]) if len(record) > VERSION_BYTES else ()
            self.add(int.from_bytes(record[:VERSION_BYTES], "big"), [transaction], {transaction: results} if results else {})

    def add(self, epoch: int, transactions: Iterable[TransactionId], results: Mapping[TransactionId, Results]) -> None:
        """These committed in that epoch."""
        for client, sequence in transactions:
            self._epochs.setdefault(client, {})[sequence] = epoch
        self._results.update(results)

    def epoch_of(self, transaction: TransactionId) -> int | None:
        client, sequence = transaction
        return self._epochs.get(client, {}).get(sequence)

    def results_of(self, transaction: TransactionId) -> Results:
        return self._results.get(transaction, ())

    def settled(self, settled: Mapping[bytes, int]) -> list[TransactionId]:
        """Those below the number that each client says it knows all outcomes up to."""
        return [
            (client, sequence)
            for client, below in settled.items()
            for sequence in self._epochs.get(client, ())
            if sequence < below
        ]

    def of_idle_clients(self, before: int) -> list[TransactionId]:
        """Those of clients that committed nothing since epoch `before`."""
        idle = [client for client, outcomes in self._epochs.items() if max(outcomes.values()) < before]
        return [(client, sequence) for client in idle for sequence in self._epochs[client]]

    def forget(self, transactions: Iterable[TransactionId]) -> None:
        for client, sequence in transactions:
            outcomes = self._epochs[client]
            del outcomes[sequence]
            self._results.pop((client, sequence), None)
            if not outcomes:
                del self._epochs[client]
