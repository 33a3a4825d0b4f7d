"""Options to addresses: passwords are shown nowhere, and what is wrong is named."""

from __future__ import annotations

import pytest

from backend.spark.options import address_of, is_set, whole_number


def test_an_address_is_what_its_url_says() -> None:
    found = address_of({"url": "mysql://ann:p%40ss@db.example:3310/shop?sslMode=verify_ca&sslCa=ca.pem"})
    assert (found.host, found.port, found.user, found.password, found.database) == ("db.example", 3310, "ann", "p@ss", "shop")
    assert (found.tls_mode, found.tls_ca) == ("VERIFY_CA", "ca.pem")
    assert "p@ss" not in repr(found) and "p%40ss" not in repr(found)


def test_jdbc_urls_and_options_do_as_well() -> None:
    found = address_of({"url": "jdbc:mysql://db.example/shop?user=ann", "password": "known"})
    assert (found.port, found.user, found.password, found.database) == (3307, "ann", "known", "shop")


@pytest.mark.parametrize("url", ["", "db.example", "postgres://db/shop", "mysql:///shop", "mysql://db/shop?sslMode=maybe"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"url|sslMode"):
        address_of({"url": url})


def test_options_have_values_of_their_kind() -> None:
    assert is_set({"truncate": "TRUE"}, "truncate") and not is_set({}, "truncate")
    assert whole_number({"n": "3"}, "n", 1) == 3
    with pytest.raises(ValueError, match="truncate"):
        is_set({"truncate": "yes"}, "truncate")
    with pytest.raises(ValueError, match="numPartitions"):
        whole_number({"numPartitions": "-1"}, "numPartitions", 1)
