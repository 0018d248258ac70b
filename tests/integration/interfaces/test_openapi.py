"""Requests made from ``/openapi.json``: no 500, no status and no answer that the document does not name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from pps.operations.catalog import operations_for
from tests.integration.interfaces.serving import Served

EXAMPLES = 12
WORDS = st.text(max_size=30) | st.sampled_from(
    ["Ana", "2026-01-05", "1b4e28ba-2fa1-5d2b-883f-0016d3cca427", "1b4e28ba"]
)
ANYTHING = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.lists(WORDS, max_size=3)


def made(schema: dict[str, Any], known: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values of a schema, and now and then one that is not: what is wrong must be refused as documented."""
    if "$ref" in schema:
        return made(known[schema["$ref"].rpartition("/")[2]], known)
    if "anyOf" in schema:
        return st.one_of(*(made(one, known) for one in schema["anyOf"]), ANYTHING)
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")])) | WORDS
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        fields = {name: made(one, known) for name, one in schema["properties"].items()}
        needed = {name: fields[name] for name in schema.get("required", ())}
        return st.fixed_dictionaries(needed, optional={name: one for name, one in fields.items() if name not in needed})
    if kind == "array":
        return st.lists(made(schema.get("items", {}), known), max_size=3)
    plain = {"string": WORDS, "integer": st.integers(-2, 1100), "number": st.floats(-2, 1100), "boolean": st.booleans()}
    return cast("st.SearchStrategy[Any]", plain.get(str(kind), st.dictionaries(WORDS, ANYTHING, max_size=3)))


@pytest.fixture(scope="module")
def http(served: Served) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {served.create('fuzzed')}"}
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=60, headers=headers) as client:
        yield client


@pytest.fixture(scope="module")
def document(http: httpx.Client) -> dict[str, Any]:
    found = http.get("/openapi.json").json()
    for schema in found["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", operations_for("entity"))
def test_what_is_asked_as_documented_is_answered_as_documented(
    http: httpx.Client, document: dict[str, Any], name: str
) -> None:
    known = document["components"]["schemas"]
    path = document["paths"][f"/v1/{name}"]["post"]
    registry = Registry().with_resource("urn:pps", DRAFT202012.create_resource(document))

    def check(schema: dict[str, Any], value: Any) -> None:
        absolute = {"$ref": "urn:pps" + schema["$ref"]}
        Draft202012Validator(absolute, registry=registry).validate(value)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(made(known[f"{name}.input"], known))
    def asked(arguments: dict[str, Any]) -> None:
        answer = http.post(f"/v1/{name}", json=arguments)
        assert answer.status_code != 500, answer.text
        response = path["responses"][str(answer.status_code)]
        if "$ref" in response:
            response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
        kind = answer.headers["content-type"].partition(";")[0]
        check(response["content"][kind]["schema"], answer.json())

    asked()
