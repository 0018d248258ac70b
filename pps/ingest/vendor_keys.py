"""Keys that are told by how they begin, of vendors that detect-secrets does not know: data, and nothing else."""

from __future__ import annotations

_HEX = "[a-f0-9]"
_ANY = "[A-Za-z0-9_-]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

VENDOR_KEYS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("Age Secret Key", ("AGE-SECRET-KEY-",), "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("Airtable Token", ("pat",), f"pat[A-Za-z0-9]{{14}}\\.{_HEX}{{64}}"),
    ("Atlassian Token", ("ATATT3",), "ATATT3[A-Za-z0-9_=-]{60,300}"),
    ("Cloudflare Key", ("v1.0-",), f"v1\\.0-{_HEX}{{24}}-{_HEX}{{146}}"),
    ("Databricks Token", ("dapi",), f"dapi{_HEX}{{32}}"),
    ("Docker Token", ("dckr_",), f"dckr_[po]at_{_ANY}{{20,60}}"),
    ("Doppler Token", ("dp.",), r"dp\.(?:ct|pt|st|sa|scim|audit)\.[A-Za-z0-9.]{40,60}"),
    ("Figma Token", ("figd_",), f"figd_{_ANY}{{38,60}}"),
    ("Fly Token", ("fo1_",), f"fo1_{_ANY}{{43}}"),
    ("Google OAuth Secret", ("GOCSPX-",), f"GOCSPX-{_ANY}{{28}}"),
    ("Google OAuth Token", ("ya29.", "1//0"), rf"(?:ya29\.|1//0){_ANY}{{30,500}}"),
    ("Grafana Token", ("glsa_", "glc_ey"), "(?:glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_ey[A-Za-z0-9+/=]{30,400})"),
    ("HubSpot Token", ("pat-",), rf"pat-(?:na|eu)\d-{_UUID}"),
    ("LangSmith API Key", ("lsv2_",), f"lsv2_[ps][tk]_{_HEX}{{32}}_{_HEX}{{10}}"),
    ("Langfuse API Key", ("sk-lf-",), f"sk-lf-{_UUID}"),
    ("Linear API Key", ("lin_",), "lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    ("Mailgun API Key", ("key-",), f"key-{_HEX}{{32}}"),
    ("New Relic API Key", ("NRAK-",), "NRAK-[A-Z0-9]{27}"),
    ("Notion Token", ("ntn_", "secret_"), "(?:ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43})"),
    ("NVIDIA API Key", ("nvapi-",), f"nvapi-{_ANY}{{60,80}}"),
    ("Perplexity API Key", ("pplx-",), "pplx-[A-Za-z0-9]{40,64}"),
    ("Pinecone API Key", ("pcsk_",), "pcsk_[A-Za-z0-9_]{40,100}"),
    ("PlanetScale Token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    ("Postman API Key", ("PMAK-",), f"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    ("Sentry Token", ("sntrys_", "sntryu_"), "sntry[su]_[A-Za-z0-9+/=_-]{40,300}"),
    ("Shopify Token", ("shpat_", "shpca_", "shppa_", "shpss_"), "shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    ("Supabase Token", ("sbp_", "sb_secret_"), f"(?:sbp_{_HEX}{{40}}|sb_secret_{_ANY}{{20,60}})"),
    ("Tavily API Key", ("tvly-",), "tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}"),
    ("Vault Token", ("hvs.", "hvb.", "hvr."), rf"hv[sbr]\.{_ANY}{{24,300}}"),
)
"""(kind, what a text with one holds, what it looks like)."""

WORDS = frozenset({"Airtable Token", "Databricks Token", "Doppler Token", "Mailgun API Key"})
"""Of these, those whose beginning is a word that names end with, such as ``cache-key-``: they stand alone."""
