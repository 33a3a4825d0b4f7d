# mypy: ignore-errors
"""A basket in the session."""

from django.http import JsonResponse

from shop.models import Product


def put(request, product):
    found = request.session.get("basket", {})
    found[str(product)] = found.get(str(product), 0) + 1
    request.session["basket"] = found
    return basket(request)


def basket(request):
    found = request.session.get("basket", {})
    products = Product.objects.in_bulk([int(key) for key in found])
    return JsonResponse({products[int(key)].name: count for key, count in sorted(found.items())})
