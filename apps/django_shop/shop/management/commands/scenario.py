# mypy: ignore-errors
"""A day in the shop, told in lines that are the same on every server."""

from datetime import UTC, datetime
from decimal import Decimal

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand
from django.db import IntegrityError, transaction
from django.db.models import Avg, Count, Exists, F, Max, OuterRef, Q, Subquery, Sum, Window
from django.db.models.deletion import ProtectedError
from django.db.models.functions import Rank, TruncMonth
from django.test import Client

from shop.models import Category, Customer, Line, Order, Product


class Command(BaseCommand):
    help = "Fill the shop, use it through the ORM, the admin and the session, and print what comes out"

    def handle(self, **options):
        for step in (self.fill, self.query, self.change, self.use_admin, self.use_session, self.delete):
            self.stdout.write(f"# {step.__name__}")
            step()

    def say(self, *values):
        self.stdout.write(" ".join(map(str, values)))

    def fill(self):
        home = Category.objects.create(name="Home")
        kitchen, garden = (Category.objects.create(name=name, parent=home) for name in ("Kitchen", "Garden"))
        Product.objects.bulk_create(
            Product(name=f"Thing {n}", category=garden if n % 3 else kitchen, price=Decimal(n) * Decimal("1.25"),
                    attributes={"colour": ["red", "green", "blue"][n % 3], "size": n})
            for n in range(1, 31)
        )  # fmt: skip
        products = list(Product.objects.order_by("id"))
        for number in range(10):
            customer = Customer.objects.create(email=f"customer{number}@example.com")
            customer.favourites.set(products[number : number + 3])
            for month in range(1, number % 4 + 1):
                order = customer.orders.create(placed=datetime(2024, month, number + 1, 12, tzinfo=UTC), is_paid=month % 2)
                Line.objects.bulk_create(
                    Line(order=order, product=products[(number * month + each) % 30], quantity=each + 1) for each in range(3)
                )
        self.say(*(model.objects.count() for model in (Category, Product, Customer, Order, Line)))

    def query(self):
        total = Sum(F("lines__quantity") * F("lines__product__price"))
        for order in Order.objects.annotate(total=total).order_by("-total", "id")[:5]:
            self.say(order.customer, order.placed, order.total)
        for row in Category.objects.values("name").annotate(n=Count("products"), a=Avg("products__price"), m=Max("products__price")).order_by("name"):
            self.say(row["name"], row["n"], row["a"], row["m"])
        months = Order.objects.annotate(month=TruncMonth("placed")).values("month").annotate(n=Count("id")).order_by("month")
        self.say([(row["month"].isoformat(), row["n"]) for row in months])
        unpaid = Order.objects.filter(customer=OuterRef("pk"), is_paid=False)
        self.say(list(Customer.objects.filter(Exists(unpaid)).order_by("email").values_list("email", flat=True)))
        latest = Order.objects.filter(customer=OuterRef("pk")).order_by("-placed").values("placed")[:1]
        self.say([str(each.latest) for each in Customer.objects.annotate(latest=Subquery(latest)).order_by("id")])
        self.say(list(Product.objects.filter(attributes__colour="red", attributes__size__gt=20).order_by("id").values_list("name", flat=True)))
        self.say(list(Product.objects.filter(Q(name__icontains="thing 1") & ~Q(category__name="Garden")).order_by("id").values_list("id", flat=True)))
        ranked = Product.objects.annotate(rank=Window(Rank(), partition_by="category", order_by=F("price").desc()))
        self.say([(each.name, each.rank) for each in ranked.order_by("category_id", "rank")[:4]])
        self.say(list(Customer.objects.filter(favourites__category__parent__name="Home").distinct().order_by("id").values_list("id", flat=True)))
        self.say(list(Product.objects.filter(line__isnull=True).order_by("id").values_list("id", flat=True)))
        self.say([(order.id, [line.product.name for line in order.lines.all()]) for order in Order.objects.prefetch_related("lines__product").order_by("id")[:3]])

    def change(self):
        self.say(Product.objects.filter(category__name="Kitchen").update(price=F("price") + 1))
        self.say(Customer.objects.get_or_create(email="customer3@example.com")[1])
        self.say(Customer.objects.update_or_create(email="new@example.com", defaults={})[1])
        for wrong in (lambda: Customer.objects.create(email="new@example.com"), lambda: Product.objects.filter(id=1).update(price=-1),
                      lambda: Line.objects.create(order_id=10_000, product_id=1, quantity=1)):  # fmt: skip
            try:
                with transaction.atomic():
                    wrong()
                self.say("accepted")
            except Exception as error:  # the servers differ in which class a CHECK raises
                self.say("refused", isinstance(error, IntegrityError) or error.args[0])
        try:
            with transaction.atomic():
                Product.objects.select_for_update().get(id=1)
                Product.objects.filter(id=1).update(name="Other")
                with transaction.atomic():
                    Product.objects.filter(id=2).update(name="Other too")
                raise RuntimeError
        except RuntimeError:
            self.say(list(Product.objects.filter(id__in=(1, 2)).order_by("id").values_list("name", flat=True)))

    def use_admin(self):
        User.objects.create_superuser("admin", "admin@example.com", "secret")
        client = Client(HTTP_HOST="localhost")
        self.say(client.login(username="admin", password="secret"))
        for path in ("", "shop/product/", "shop/product/?q=thing+2", "shop/order/?is_paid__exact=1", "shop/order/1/change/", "auth/user/"):
            self.say(path or "index", client.get(f"/admin/{path}").status_code)
        made = client.post("/admin/shop/category/add/", {"name": "Cellar", "parent": "1"})
        self.say(made.status_code, Category.objects.filter(name="Cellar", parent=1).count())
        gone = client.post(f"/admin/shop/category/{Category.objects.get(name='Cellar').pk}/delete/", {"post": "yes"})
        self.say(gone.status_code, Category.objects.filter(name="Cellar").count())

    def use_session(self):
        client = Client(HTTP_HOST="localhost")
        for product in (3, 5, 3):
            answer = client.get(f"/basket/{product}/")
        self.say(answer.json(), Session.objects.count())

    def delete(self):
        try:
            Category.objects.get(name="Home").delete()
        except ProtectedError as error:
            self.say("protected", len(error.protected_objects))
        deleted = Customer.objects.filter(email__startswith="customer").delete()
        self.say(deleted[0], sorted(deleted[1].items()))
        self.say(Category.objects.filter(name="Home").delete() if not Product.objects.all().delete() else Category.objects.all().delete()[0])
