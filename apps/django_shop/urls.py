# mypy: ignore-errors
"""The admin, and a basket kept in the session."""

from django.contrib import admin
from django.urls import path
from shop.views import basket, put

urlpatterns = [path("admin/", admin.site.urls), path("basket/", basket), path("basket/<int:product>/", put)]
