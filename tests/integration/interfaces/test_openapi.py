"""schemathesis over ``/openapi.json``: no 500, nothing undocumented, and what breaks a schema is refused."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from pps.app import App
from pps.config.packs import pack_files
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import operations_for
from pps.operations.openapi import document as document_of
from tests.integration.interfaces.serving import Served
from tests.sampling import sized

EXAMPLES = sized(10, 50)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@pytest.fixture(scope="module")
def headers(served: Served) -> dict[str, str]:
    return {"Authorization": f"Bearer {served.create('fuzzed')}"}


@pytest.fixture(scope="module")
def document(served: Served, headers: dict[str, str]) -> dict[str, Any]:
    found = requests.get(f"{served.run.url}/openapi.json", headers=headers, timeout=60).json()
    for schema in found["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    return cast("dict[str, Any]", found)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", operations_for("entity"))
def test_what_is_asked_as_documented_or_not_is_answered_as_documented(
    served: Served, headers: dict[str, str], document: dict[str, Any], name: str
) -> None:
    operation = schemathesis.openapi.from_dict(document)[f"/v1/{name}"]["POST"]
    cases = st.one_of(
        *(operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode)
    )

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def asked(case: schemathesis.Case) -> None:
        answer = case.call(base_url=served.run.url, headers=headers, timeout=60)
        case.validate_response(answer, checks=CHECKS, headers=headers)

    asked()


async def test_every_reference_of_the_document_leads_somewhere_for_each_pack(app: App) -> None:
    for pack in pack_files(app.settings.home):
        await app.create(f"a_{pack}", packs=[pack])
        offered = await Calls(app).operations(Caller(("entity",), f"a_{pack}"))
        made = document_of(offered.values())
        schemas = made["components"]["schemas"]
        referring = re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(made))
        assert [name for name in referring if name not in schemas] == [], pack
