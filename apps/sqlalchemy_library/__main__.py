# mypy: ignore-errors
"""A year in the library, told in lines that are the same on every server."""

import sys
from datetime import date, timedelta
from decimal import Decimal

from sqlalchemy import case, create_engine, delete, exists, func, inspect, select, text, update
from sqlalchemy.dialects.mysql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased, joinedload, selectinload

from apps.sqlalchemy_library.models import Author, Base, Book, Loan, Member


def fill(session):
    authors = [Author(name=f"Author {n}") for n in range(6)]
    for n in range(24):
        book = Book(title=f"Book {n:02}", price=Decimal(n) + Decimal("0.99"), facts={"pages": 100 + n, "tags": ["a", "b"][: n % 3]})
        book.authors = [authors[n % 6], authors[(n + 2) % 6]] if n % 2 else [authors[n % 6]]
        session.add(book)
    members = [Member(email=f"m{n}@example.com", kind="child" if n % 4 == 0 else "adult") for n in range(8)]
    session.add_all(members)
    session.flush()
    books = session.scalars(select(Book).order_by(Book.title)).all()
    for n in range(40):
        taken = date(2024, 1, 1) + timedelta(days=7 * n)
        session.add(Loan(book=books[n * 5 % 24], member=members[n * 3 % 8], taken=taken, returned=taken + timedelta(days=9) if n % 3 else None))
    session.commit()


def ask(session):
    per_author = select(Author.name, func.count(Book.id), func.sum(Book.price)).join(Author.books).group_by(Author.id, Author.name).order_by(Author.name)
    yield from session.execute(per_author)
    yield from session.execute(
        select(Member.email, func.count(Loan.id).label("n"), func.max(Loan.taken)).outerjoin(Member.loans).group_by(Member.id, Member.email)
        .having(func.count(Loan.id) > 2).order_by(func.count(Loan.id).desc(), Member.email)
    )  # fmt: skip
    yield from session.execute(
        select(func.extract("month", Loan.taken), func.count(), func.sum(case((Loan.returned.is_(None), 1), else_=0)))
        .group_by(func.extract("month", Loan.taken)).order_by(func.extract("month", Loan.taken))
    )  # fmt: skip
    yield [book.title for book in session.scalars(select(Book).where(~exists().where(Loan.book_id == Book.id)).order_by(Book.title))]
    yield [book.title for book in session.scalars(select(Book).where(Book.facts["pages"].as_integer() > 119).order_by(Book.id))]
    for book in session.scalars(select(Book).options(selectinload(Book.authors)).order_by(Book.id).limit(4)):
        yield book.title, [author.name for author in book.authors]
    for loan in session.scalars(select(Loan).options(joinedload(Loan.book), joinedload(Loan.member)).order_by(Loan.taken).limit(3).offset(2)):
        yield loan.taken, loan.book.title, loan.member.email
    ranked = select(Book.title, func.rank().over(order_by=Book.price.desc()).label("place")).subquery()
    yield from session.execute(select(ranked).where(ranked.c.place <= 3).order_by(ranked.c.place))
    one, two = aliased(Loan), aliased(Loan)
    yield session.scalar(select(func.count()).select_from(one).join(two, (one.book_id == two.book_id) & (one.id < two.id)))


def change(session):
    yield session.execute(update(Book).where(Book.price < 5).values(price=Book.price * 2)).rowcount
    upsert = insert(Member).values([{"email": "m1@example.com", "kind": "child"}, {"email": "new@example.com", "kind": "adult"}])
    session.execute(upsert.on_duplicate_key_update(kind=upsert.inserted.kind))
    yield session.execute(select(Member.kind).where(Member.email.in_(["m1@example.com", "new@example.com"])).order_by(Member.email)).all()
    try:
        with session.begin_nested():
            session.add(Member(email="m2@example.com"))
    except IntegrityError as error:
        yield error.orig.args[0]
    try:
        with session.begin_nested():
            session.execute(delete(Book).where(Book.title == "Book 00"))
    except IntegrityError as error:
        yield error.orig.args[0]
    session.rollback()
    yield session.scalar(select(func.count()).select_from(Member))
    session.delete(session.scalars(select(Member).order_by(Member.id)).first())
    session.delete(session.scalars(select(Book).order_by(Book.id)).first())
    session.commit()
    yield tuple(session.scalar(select(func.count()).select_from(each)) for each in (Author, Book, Member, Loan))


def describe(engine):
    found = inspect(engine)
    for name in sorted(found.get_table_names()):
        yield name, [column["name"] for column in found.get_columns(name)], found.get_pk_constraint(name)["constrained_columns"]
        yield [(key["constrained_columns"], key["referred_table"], key["options"]) for key in sorted(found.get_foreign_keys(name), key=str)]


def main(address):
    engine = create_engine(address)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        fill(session)
        for line in (*ask(session), *change(session), *describe(engine)):
            print(line)
        print(session.execute(text("SELECT COUNT(*) FROM loan WHERE taken BETWEEN :a AND :b"), {"a": "2024-02-01", "b": "2024-03-01"}).scalar())
    Base.metadata.drop_all(engine)


if __name__ == "__main__":
    main(sys.argv[1])
