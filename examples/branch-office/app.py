"""The page and its endpoints. Endpoints run in threads, as the clients block, and so does the sync."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from running import application, posted, serve
from shop import PRODUCTS, Office, Shop, SoldOut
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

HERE = Path(__file__).parent


def make_app(shop: Shop) -> Starlette:
    """The application."""

    def office(form: dict[str, str]) -> Office:
        return shop.offices[form["office"]]

    def product(form: dict[str, str]) -> str:
        if form["product"] not in PRODUCTS:
            raise ValueError(f"there is no {form['product']}")
        return form["product"]

    def index(request: Request) -> Response:
        return FileResponse(HERE / "page.html")

    def state(request: Request) -> Response:
        return JSONResponse(shop.state())

    def sell(form: dict[str, str]) -> Any:
        return office(form).sell(product(form))

    def rush(form: dict[str, str]) -> Any:
        return len(office(form).rush(20))

    def price(form: dict[str, str]) -> Any:
        price = Decimal(form["price"]) if form["price"].replace(".", "", 1).isdecimal() else Decimal(-1)
        if not 0 < price < 1_000:
            raise ValueError("a price is from 0.01 to 999.99")
        return office(form).set_price(product(form), f"{price:.2f}")

    def line(form: dict[str, str]) -> Any:
        return shop.line.cut(form["cut"] == "yes")

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with shop:
            shop.start()
            yield

    actions = [
        Route(f"/{work.__name__}", posted(work), methods=["POST"]) for work in (sell, rush, price, line)
    ]
    routes = [Route("/", index), Route("/state", state), *actions]
    return application(routes, {SoldOut: 409}, lifespan=lifespan)


if __name__ == "__main__":
    serve(make_app(Shop()))
