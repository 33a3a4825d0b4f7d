# mypy: ignore-errors
"""All models in the admin, orders with their lines."""

from django.contrib import admin

from shop.models import Category, Customer, Line, Order, Product


class LineInline(admin.TabularInline):
    model = Line


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    inlines = [LineInline]
    list_display = ["id", "customer", "placed", "is_paid"]
    list_filter = ["is_paid", "placed"]
    date_hierarchy = None


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    list_display = ["name", "category", "price"]
    search_fields = ["name", "category__name"]
    list_filter = ["category"]


admin.site.register([Category, Customer])
