"""Every setting of PPS, its default and its bounds.

The shipped ``config/pps.toml`` documents them.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic.fields import FieldInfo

from pps.config.zones import checked_zone

Hours: TypeAlias = Annotated[float, Field(ge=0, le=24)]
Week: TypeAlias = Annotated[
    tuple[Hours, Hours, Hours, Hours, Hours, Hours, Hours], Field(strict=False)
]
"""Hours a day, Monday first."""
TimeZone: TypeAlias = Annotated[str, AfterValidator(checked_zone)]

MAX_PERSON_CHARS = 100


def checked_person(name: str) -> str:
    """Return a person's name without the space around it; it may be empty.

    Raises:
        ValueError: The name breaks a rule; the rule is named.
    """
    name = name.strip()
    if len(name) > MAX_PERSON_CHARS:
        raise ValueError(f"must have at most {MAX_PERSON_CHARS} characters, has {len(name)}")
    if not name.isprintable():
        raise ValueError("must be one line of characters that are seen")
    return name


PersonName: TypeAlias = Annotated[str, AfterValidator(checked_person)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Neo4jSettings(_Section):
    """How to reach Neo4j; used for graphs that are published there."""

    uri: str = Field(default="bolt://127.0.0.1:7687", min_length=1)
    user: str = "neo4j"
    password: SecretStr = SecretStr("")
    database: str = Field(default="neo4j", min_length=1)


class PostgresqlSettings(_Section):
    """How to reach PostgreSQL; used when ``store`` is ``postgresql``.

    Attributes:
        url: ``postgresql://USER:PASSWORD@HOST/DATABASE`` of the role that reads and writes rows. It
            owns no table and has no BYPASSRLS.
        owner_url: The same of the role that owns the tables: it makes and upgrades them, and
            vacuums what is forgotten.
    """

    url: SecretStr = SecretStr("")
    owner_url: SecretStr = SecretStr("")


class EmbedderSettings(_Section):
    """Which model turns text into vectors.

    Attributes:
        model: A model's name; empty is the default of ``name``.
        path: A file or folder to load the model from instead of finding it.
        base_url, api_key: For ``openai``: any server that speaks its embeddings protocol.
        dimension: Length of the vectors; needed for ``openai``, free for ``hash``, else fixed by
            the model.
        threads: For ``minilm`` and ``bge-small``: threads of one call; None takes the machine's, at
            most 4.
        drift: ``scheduled`` embeds records anew to see whether the model still makes of them what
            it did: weekly those of priority P0 and P1, monthly the rest. ``pps doctor`` says what
            has changed.
    """

    name: Literal[
        "minilm", "bge-small", "e5", "sentence-transformers", "openai", "hash", "none"
    ] = "minilm"
    model: str = ""
    path: Path | None = None
    base_url: str = ""
    api_key: SecretStr | None = None
    dimension: int | None = Field(default=None, ge=8, le=8192)
    threads: int | None = Field(default=None, ge=1, le=64)
    drift: Literal["off", "scheduled"] = "off"


class RerankerSettings(_Section):
    """Which model reads the best of a channel together with the query, and for how long it may.

    Attributes:
        model: A cross-encoder's name or folder; needed for ``cross-encoder``.
        path: For ``minilm``: a file or folder to load the model from instead of finding it.
        deadline_ms: Past it the other lists are joined without it, and the answer says so.
        batch: Pairs scored between two looks at the clock.
        threads: For ``minilm``: batches scored side by side; None takes the machine's, at most 4.
    """

    name: Literal["none", "minilm", "cross-encoder"] = "none"
    model: str = ""
    path: Path | None = None
    deadline_ms: int = Field(default=500, ge=1, le=60_000)
    batch: int = Field(default=4, ge=1, le=256)
    threads: int | None = Field(default=None, ge=1, le=64)


class ColbertSettings(_Section):
    """Late interaction: each word of a question beside the nearest word of a turn.

    It is the perspective ``colbert``.

    Attributes:
        name: ``auto``: on where the model's file is there and an embedder that reads meaning is
            set; ``none``: off.
        path: A file or folder to load the model from instead of finding it.
    """

    name: Literal["auto", "none"] = "auto"
    path: Path | None = None


class ExtractorSettings(_Section):
    """Where nodes and facts come from when ``remember`` gets text.

    Attributes:
        mode: ``given``: only what the caller passes. ``rules``: that, and for turns of people
            without given facts what their sentences say plainly; offline and deterministic.
            ``command``: a program that answers prompts. ``model``: Graphiti's pipeline on a
            language model.
        command: For ``command``: a name of ``config/extractors.toml``, or the words of any program
            that reads a prompt on stdin and writes JSON on stdout.
        command_timeout_s: For one prompt.
        group_tokens: Turns that wait to be read are read in one prompt as soon as they have so many
            tokens …
        idle_s: … or when none has come for so long, or a session has ended.
        model, small_model: Empty is the provider's default.
        base_url: Needed for ``compatible``; ``ollama`` has its usual local address.
        tokens_per_day: Budget of an entity's readings by a model, in and out together, for a day in
            UTC; past it they wait until the next. 0 is none. An entity's ``entity.toml`` may set
            its own.
    """

    mode: Literal["given", "rules", "command", "model"] = "rules"
    command: str | tuple[str, ...] = ""
    command_timeout_s: float = Field(default=180.0, gt=0, le=3_600)
    group_tokens: int = Field(default=3_000, ge=100, le=100_000)
    idle_s: float = Field(default=60.0, ge=0, le=200)
    provider: Literal["openai", "anthropic", "gemini", "groq", "ollama", "compatible"] = "openai"
    model: str = ""
    small_model: str = ""
    base_url: str = ""
    api_key: SecretStr | None = None
    timeout_s: float = Field(default=60.0, gt=0, le=600)
    tokens_per_day: int = Field(default=0, ge=0, le=1_000_000_000_000)


class ServerSettings(_Section):
    """The one process that owns the embedded files.

    Attributes:
        host: Loopback unless told otherwise.
        port: 0 takes any free port. When it is in use, `pps serve` refuses, and a server that was
            started by need takes another.
        idle_stop_s: A server that was started by need stops after this long without a request.
        open_entities: Most entities open at once; the least recently used one is closed.
        sessions: Most sessions of the MCP's older era that one entity or router has; beyond, the
            idlest is ended.
        allowed_hosts, allowed_origins: Names beside the loopback ones that a request's Host and
            Origin may carry, such as ``memory.example.org`` and ``https://memory.example.org``.
    """

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8377, ge=0, le=65_535)
    idle_stop_s: int = Field(default=1800, ge=1, le=604_800)
    open_entities: int = Field(default=32, ge=1, le=1000)
    sessions: int = Field(default=64, ge=1, le=10_000)
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


class LogSettings(_Section):
    """How logs are written.

    Where: ``pps serve`` to stderr, a server that was started by need to ``server.log``.

    Attributes:
        format: ``text``: a line to read; ``json``: an object a line (time, level, logger, request,
            message, fields).
        max_bytes: ``server.log`` is moved to ``server.log.1`` before it grows beyond this …
        files: … and of the moved ones so many are kept.
    """

    format: Literal["text", "json"] = "text"
    max_bytes: int = Field(default=5_000_000, ge=10_000, le=100_000_000)
    files: int = Field(default=3, ge=1, le=100)


class JobsSettings(_Section):
    """How what was acknowledged is taken into graph and indexes, and when that counts as unwell.

    Attributes:
        first_wait_s, longest_wait_s: After the n-th failure a job waits a random time between 0 and
            ``min(longest, first * 2 ** (n - 1))`` seconds; later jobs of its entity wait with it.
        attempts: Failures of its own after which a job is parked; an outage of a store or a model
            does not count.
        give_up_s: A job that an outage has kept for so long is parked too.
        breaker_failures: Failures in a row after which a store or model is left alone for a while.
        read_at_once: Most entities whose texts a language model reads at the same time, one text
            each.
        queue_entity, queue_total: Most unfinished jobs of one entity and of all that are open; more
            is refused.
        red_after_s: An entity is unwell when nothing of its queue has ended for so long.
        red_oldest_s: … or when its oldest unfinished job came so long ago, whatever ended
            meanwhile.
        red_failure_rate, red_window_s: … or when this share of at least 10 turns tried within the
            window fails.
    """

    first_wait_s: float = Field(default=0.5, gt=0, le=60)
    longest_wait_s: float = Field(default=60.0, ge=1, le=3_600)
    attempts: int = Field(default=5, ge=1, le=100)
    give_up_s: int = Field(default=86_400, ge=1, le=2_592_000)
    breaker_failures: int = Field(default=5, ge=1, le=100)
    read_at_once: int = Field(default=8, ge=1, le=1_000)
    queue_entity: int = Field(default=20_000, ge=1, le=10_000_000)
    queue_total: int = Field(default=200_000, ge=1, le=100_000_000)
    red_after_s: float = Field(default=300.0, gt=0, le=604_800)
    red_oldest_s: float = Field(default=3_600.0, gt=0, le=604_800)
    red_failure_rate: float = Field(default=0.5, gt=0, le=1)
    red_window_s: int = Field(default=600, ge=1, le=86_400)


class RecallSettings(_Section):
    """How an ambient recall weighs what it found.

    Attributes:
        novelty_weight: What this session was shown within ``novelty_window_s`` keeps
            ``(1 - novelty_weight) ** times`` of its score; 0 turns it off.
        freshness_half_life_d, freshness_weight: ``score * ((1 - w) + w * 2 ** (-age /
            half_life))``.
        budget_tokens: Size of a pack when the caller names none.
    """

    novelty_weight: float = Field(default=0.5, ge=0, le=1)
    novelty_window_s: int = Field(default=1800, ge=0, le=604_800)
    freshness_half_life_d: float = Field(default=14.0, gt=0, le=36_500)
    freshness_weight: float = Field(default=0.3, ge=0, le=1)
    budget_tokens: int = Field(default=2000, ge=100, le=100_000)


class HooksSettings(_Section):
    """What the packs of agents' hooks hold beside what is near the prompt.

    Attributes:
        nodes: Nodes beside the facts and turns of a prompt's pack.
        topics: The topics of what was found.
        alerts: That the session has left its subject; often enough it has not, so it is off.
        explore: At most 15 % of a pack for memories of topics that a prompt does not ask for.
    """

    nodes: bool = False
    topics: bool = False
    alerts: bool = False
    explore: bool = False


class TextSettings(_Section):
    """Full text.

    Attributes:
        language: Whose stems and stop words the index uses; scripts without spaces need none.
    """

    language: str = Field(default="english", pattern=r"^[a-z]{2,20}$")


class VectorSettings(_Section):
    """Vectors.

    Attributes:
        in_memory: Most vectors of a collection (turns, facts, nodes, …) that are kept in memory and
            scanned, 4 bytes a dimension and 400 more each; a larger collection is searched in
            Chroma.
    """

    in_memory: int = Field(default=262_144, ge=0, le=100_000_000)


class ForgettingSettings(_Section):
    """What was forgotten and can be restored.

    Attributes:
        restorable_d: For so many days; then it is erased for good.
    """

    restorable_d: int = Field(default=30, ge=1, le=3_650)


class CalendarSettings(_Section):
    """Which calendars say when a person is busy, and how many hours a day has.

    An entity may set its own.

    Attributes:
        files: ICS files; relative ones begin at the data folder, an entity's own at its folder.
        urls: Addresses of ICS files; fetched by nothing but a workload, never from this machine or
            its net.
        hours: Of a day for work; or seven of them, Monday first.
        time_zone: Whose days and hours these are, such as ``Europe/Lisbon``; None is the entity's
            own.
    """

    files: tuple[Path, ...] = Field(default=(), max_length=50)
    urls: tuple[SecretStr, ...] = Field(default=(), max_length=50)
    hours: Hours | Week = 10.0
    time_zone: TimeZone | None = None


class Settings(_Section):
    """All settings, checked; made by ``load``, or directly in a program and in tests.

    Attributes:
        home: The data folder (``$PPS_HOME``).
        store: ``embedded`` (tables in the entity's ``memory.db``), ``postgresql`` (rows of one
            database) or ``neo4j`` (embedded, with the graph published on Neo4j); new entities are
            made there.
        redaction: Whether secrets are taken out of what comes in before any of it is kept.
        time_zone: Of new entities, and of those whose ``entity.toml`` names none; `pps init` sets
            the machine's.
        person: The name of the person whose installation it is; new entities are told it. Empty:
            none.
    """

    home: Path
    store: Literal["embedded", "postgresql", "neo4j"] = "embedded"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    redaction: Literal["on", "off"] = "on"
    time_zone: TimeZone = "UTC"
    person: PersonName = ""
    neo4j: Neo4jSettings = Neo4jSettings()
    postgresql: PostgresqlSettings = PostgresqlSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    reranker: RerankerSettings = RerankerSettings()
    colbert: ColbertSettings = ColbertSettings()
    extractor: ExtractorSettings = ExtractorSettings()
    server: ServerSettings = ServerSettings()
    logs: LogSettings = LogSettings()
    jobs: JobsSettings = JobsSettings()
    recall: RecallSettings = RecallSettings()
    hooks: HooksSettings = HooksSettings()
    text: TextSettings = TextSettings()
    vectors: VectorSettings = VectorSettings()
    forgetting: ForgettingSettings = ForgettingSettings()
    calendar: CalendarSettings = CalendarSettings()

    def told(self) -> dict[str, str]:
        """Return variable → value for all settings but secrets; ``PPS_EMBEDDER__NAME`` is one."""
        return {
            **{name: text for name, (text, is_secret) in self._flat().items() if not is_secret},
            **self._of_neo4j(),
        }

    def told_secrets(self) -> dict[str, str]:
        """Return variable → ``salt$digest`` for secret settings, to compare but not reveal them."""
        return {
            name: salted_digest(text)
            for name, (text, is_secret) in self._flat().items()
            if is_secret
        }

    def _of_neo4j(self) -> dict[str, str]:
        if self.store != "neo4j":
            return {}
        neo4j = self.neo4j
        return {
            "NEO4J_URI": neo4j.uri,
            "NEO4J_USER": neo4j.user,
            "NEO4J_DATABASE": neo4j.database,
        }

    def _flat(self) -> dict[str, tuple[str, bool]]:
        settings: dict[str, tuple[str, bool]] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, BaseModel):
                for key, field in type(value).model_fields.items():
                    text = as_text(getattr(value, key))
                    settings[f"PPS_{name}__{key}".upper()] = text, is_secret_field(field)
            elif name != "home":
                settings[f"PPS_{name}".upper()] = as_text(value), False
        return settings


def salted_digest(text: str, salt: str = "") -> str:
    """Return ``salt$digest`` of a text; equal texts have equal digests under the same salt."""
    salt = salt or secrets.token_hex(8)
    return f"{salt}${hashlib.sha256(f'{salt}{text}'.encode()).hexdigest()}"


def is_secret_field(field: FieldInfo) -> bool:
    """Return whether a setting holds a secret."""
    return "SecretStr" in repr(field.annotation)


def as_text(value: object) -> str:
    """Return a value in the form in which a variable sets it."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return ",".join(map(as_text, cast("tuple[object, ...]", value)))
    return "" if value is None else str(value)
