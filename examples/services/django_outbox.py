"""A Django view that stores an order and schedules its reminder in one transaction of Django: both, or neither.

$ pip install 'light-scheduler[outbox]' django
$ python examples/services/django_outbox.py
$ light-scheduler outbox relay --name shop_outbox --database sqlite:///shop.db
$ curl -X POST 'http://127.0.0.1:8000/orders?item=lamp'
{"id": 1, "reminder": "order-1"}
"""

import os
import sys
from typing import Any

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.db import connection, models, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from sqlalchemy import MetaData, create_engine

from light_scheduler.outbox import Outbox

DATABASE = os.environ.get("DATABASE", "shop.db")
settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATABASE}},
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.urandom(32).hex(),
)
django.setup()


class Order(models.Model):
    item = models.CharField(max_length=40)

    class Meta:
        app_label = "shop"


tables = MetaData()
outbox = Outbox(tables, name="shop_outbox", notify=False)


class DjangoTransaction:
    """Inserts the rows of the outbox in Django's open transaction."""

    def add(self, row: Any) -> None:
        names = [column.name for column in outbox.tables.commands.columns if column.name in vars(row)]
        marks = ", ".join(["%s"] * len(names))
        statement = f"INSERT INTO {outbox.tables.commands.name} ({', '.join(names)}) VALUES ({marks})"
        with connection.cursor() as cursor:
            cursor.execute(statement, [getattr(row, name) for name in names])


def orders(request: HttpRequest) -> JsonResponse:
    with transaction.atomic():
        order = Order.objects.create(item=request.GET["item"])
        reminder = outbox.schedule(DjangoTransaction(), f"order-{order.pk}", b"pay!", topic="reminders", after="2s")
    return JsonResponse({"id": order.pk, "reminder": reminder}, status=201)


urlpatterns = [path("orders", orders)]

if __name__ == "__main__":
    # In your own project: a migration for the tables of the outbox, and `manage.py runserver`.
    tables.create_all(create_engine(f"sqlite:///{DATABASE}"))
    with connection.schema_editor() as editor:
        if Order._meta.db_table not in connection.introspection.table_names():
            editor.create_model(Order)
    execute_from_command_line(["", "runserver", "--noreload", *sys.argv[1:]])
