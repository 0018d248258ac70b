"""What the tests of models that fail share: a server whose texts a language model reads, and questions to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

import httpx

from pps.server.link import OwnerConnection
from tests.integration.interfaces.serving import Served
from tests.model_server import ModelServer
from tests.waiting import PATIENCE_S, wait_until


def reading(model: ModelServer) -> dict[str, str]:
    """Return the settings of a server whose texts this model reads, and whose waits are short."""
    return {
        "PPS_EXTRACTOR__MODE": "model",
        "PPS_EXTRACTOR__PROVIDER": "compatible",
        "PPS_EXTRACTOR__MODEL": "m",
        "PPS_EXTRACTOR__BASE_URL": model.base_url,
        "PPS_JOBS__FIRST_WAIT_S": "0.05",
        "PPS_JOBS__LONGEST_WAIT_S": "1",
    }


def embedding(model: ModelServer) -> dict[str, str]:
    """Return the settings of a server whose texts this model embeds: while it is away, only the journal grows."""
    return {
        "PPS_EMBEDDER__NAME": "openai",
        "PPS_EMBEDDER__MODEL": "m",
        "PPS_EMBEDDER__BASE_URL": model.base_url,
        "PPS_EMBEDDER__DIMENSION": str(model.dimension),
    }


def data(served: Served, verb: str, entity: str = "ana", **arguments: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", served.link.call(verb, entity, arguments)["data"])


def asked(
    served: Served, method: str, path: str, body: dict[str, Any] | None = None
) -> tuple[int, str | None]:
    """Return a request's status and its Retry-After."""
    with closing(OwnerConnection(served.run, 30)) as connection:
        headers = {
            **connection.owner_headers(),
            "Content-Type": "application/json",
            "PPS-Entity": "ana",
        }
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
        return response.status, response.getheader("Retry-After")


def health(served: Served, token: str = "") -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = httpx.get(
        f"{served.run.url}/health", headers=headers, timeout=PATIENCE_S, trust_env=False
    )
    return answer.status_code, answer.json()


def health_to_owner(served: Served) -> tuple[int, dict[str, Any]]:
    with served.owner() as owner:
        answer = owner.get("/health")
        return answer.status_code, answer.json()


def reasons(served: Served) -> list[str]:
    return [one["problem"] for one in health_to_owner(served)[1]["problems"]]


def healthy(served: Served) -> bool:
    return asked(served, "GET", "/health")[0] == 200


def until(served: Served, seen: Callable[[], bool]) -> None:
    wait_until(seen, pause_s=0.1, state=lambda: data(served, "ingestion_stats"))


def idle(served: Served, entity: str = "ana") -> bool:
    stats = data(served, "ingestion_stats", entity)
    return not (stats["queued"] + stats["running"] + stats["index_lag"])
