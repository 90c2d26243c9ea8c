"""What holds for every test: asyncio, and no model request leaves the machine."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def _no_real_models() -> None:  # pyright: ignore[reportUnusedFunction]
    from pydantic_ai import models

    models.ALLOW_MODEL_REQUESTS = False
