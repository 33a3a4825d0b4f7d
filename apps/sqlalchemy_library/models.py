# mypy: ignore-errors
"""Authors, books, copies, members and loans."""

from datetime import date
from decimal import Decimal

from sqlalchemy import JSON, Column, Date, Enum, ForeignKey, Numeric, String, Table, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    pass


written = Table(
    "written",
    Base.metadata,
    Column("author_id", ForeignKey("author.id", ondelete="CASCADE"), primary_key=True),
    Column("book_id", ForeignKey("book.id", ondelete="CASCADE"), primary_key=True),
)


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80), index=True)
    books: Mapped[list["Book"]] = relationship(secondary=written, back_populates="authors", order_by="Book.id")


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(200))
    summary: Mapped[str | None] = mapped_column(Text)
    price: Mapped[Decimal] = mapped_column(Numeric(8, 2))
    facts: Mapped[dict] = mapped_column(JSON, default=dict)
    authors: Mapped[list[Author]] = relationship(secondary=written, back_populates="books", order_by=Author.id)
    loans: Mapped[list["Loan"]] = relationship(back_populates="book", cascade="all, delete-orphan")


class Member(Base):
    __tablename__ = "member"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(120), unique=True)
    kind: Mapped[str] = mapped_column(Enum("child", "adult", name="kind"), default="adult")
    loans: Mapped[list["Loan"]] = relationship(back_populates="member", passive_deletes=True)


class Loan(Base):
    __tablename__ = "loan"
    __table_args__ = (UniqueConstraint("book_id", "member_id", "taken"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    member_id: Mapped[int] = mapped_column(ForeignKey("member.id", ondelete="CASCADE"))
    taken: Mapped[date] = mapped_column(Date)
    returned: Mapped[date | None] = mapped_column(Date)
    book: Mapped[Book] = relationship(back_populates="loans")
    member: Mapped[Member] = relationship(back_populates="loans")
