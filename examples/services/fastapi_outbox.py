"""An HTTP service that stores an order and schedules its reminder in one SQL transaction: both, or neither.

$ pip install 'light-scheduler[outbox]' fastapi uvicorn aiosqlite
$ uvicorn --app-dir examples/services fastapi_outbox:app
$ curl http://127.0.0.1:8000/orders --json '{"item": "lamp"}'
{"id":1,"reminder":"order-1"}
$ curl -X DELETE http://127.0.0.1:8000/orders/1
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import String
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from light_scheduler.outbox import Outbox, OutboxRelay

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
engine = create_async_engine(os.environ.get("DATABASE", "sqlite+aiosqlite:///shop.db"))


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str] = mapped_column(String(40))


outbox = Outbox(Base.metadata)


class NewOrder(BaseModel):
    item: str


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    relay = OutboxRelay(engine, KAFKA)  # processes of the service share the work; or run `light-scheduler outbox relay`
    running = asyncio.create_task(relay.run())
    yield
    relay.stop()
    await running


async def transaction() -> AsyncIterator[AsyncSession]:
    async with AsyncSession(engine) as session, session.begin():
        yield session


app = FastAPI(lifespan=lifespan)
Session = Annotated[AsyncSession, Depends(transaction, scope="function")]  # commits before the answer is sent


@app.post("/orders", status_code=201)
async def create(new: NewOrder, session: Session) -> dict[str, int | str]:
    session.add(order := Order(item=new.item))
    await session.flush()
    reminder = outbox.schedule(session, f"order-{order.id}", b"pay!", topic="reminders", after="2s")
    return {"id": order.id, "reminder": reminder}


@app.delete("/orders/{id}", status_code=204)
async def delete(id: int, session: Session) -> None:
    if (order := await session.get(Order, id)) is None:
        raise HTTPException(404, f"there is no order {id}")
    await session.delete(order)
    outbox.cancel(session, f"order-{id}")
