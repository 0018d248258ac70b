-- The tables of all entities in one PostgreSQL database (15 or later), as forward migrations: those under "version n"
-- bring it from version n - 1 to n. Append only: what was released never changes.
--
-- They are the tables of `schema.sql` in its newest version (a test holds them together), with the entity's group `grp`
-- in front of every key, every index and every foreign key, so that no row can name a row of another group. Where a
-- statement does not name `grp`, the group of its transaction (`pps.grp`) is put in. Row-level security is forced on
-- every table: without a group nothing is seen and nothing can be written.

-- version 1
-- What SQLite has and statements of PPS use. Lists are JSON, and what is no list has no items.
CREATE FUNCTION sqlite_json_each(doc text, place text DEFAULT '$')
    RETURNS TABLE (key bigint, value text, type text) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20
    AS $$
        SELECT item.ordinality - 1, item.value #>> '{}', jsonb_typeof(item.value)
        FROM (SELECT jsonb_path_query_first(doc::jsonb, place::jsonpath) AS list) AS found,
            jsonb_array_elements(CASE jsonb_typeof(list) WHEN 'array' THEN list END) WITH ORDINALITY AS item
    $$;
CREATE FUNCTION sqlite_json_extract(doc text, place text)
    RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT jsonb_path_query_first(doc::jsonb, place::jsonpath) #>> '{}' $$;
CREATE FUNCTION sqlite_json_type(doc text, place text)
    RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT jsonb_typeof(jsonb_path_query_first(doc::jsonb, place::jsonpath)) $$;
CREATE FUNCTION sqlite_json_array_length(doc text, place text)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
        SELECT CASE jsonb_typeof(list) WHEN 'array' THEN jsonb_array_length(list) ELSE 0 END
        FROM (SELECT jsonb_path_query_first(doc::jsonb, place::jsonpath) AS list) AS found
        WHERE list IS NOT NULL
    $$;
CREATE FUNCTION json_list(items text[])
    RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT coalesce(array_to_json(items)::text, '[]') $$;
CREATE AGGREGATE sqlite_json_group_array (text) (SFUNC = array_append, STYPE = text[], FINALFUNC = json_list);
CREATE FUNCTION sqlite_instr(hay text, needle text)
    RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT strpos(hay, needle) $$;

-- Numbers of rows count for each group by itself, so that none tells how much others write. None is given twice, and the
-- change log begins at 2, as in a file. Who writes holds the lock of the group.
CREATE TABLE counter (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    name TEXT COLLATE "C" NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (grp, name)
);
CREATE FUNCTION next_number(wanted text)
    RETURNS bigint LANGUAGE sql VOLATILE
    AS $$
        INSERT INTO counter AS c (name, value) VALUES (wanted, CASE wanted WHEN 'change_log' THEN 2 ELSE 1 END)
        ON CONFLICT (grp, name) DO UPDATE SET value = c.value + 1 RETURNING value
    $$;

CREATE TABLE turns (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    seq BIGINT NOT NULL DEFAULT next_number('turns'),
    uuid TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    source_ref TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    occurred_at BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    chunk TEXT COLLATE "C" NOT NULL DEFAULT '',
    importance DOUBLE PRECISION NOT NULL DEFAULT 0.5,
    occurred_precision TEXT COLLATE "C" NOT NULL DEFAULT 'instant',
    utc_offset_s BIGINT,
    PRIMARY KEY (grp, seq),
    UNIQUE (grp, uuid)
);
CREATE INDEX turns_by_hash ON turns (grp, hash, occurred_at);
CREATE INDEX turns_by_time ON turns (grp, occurred_at, seq);
CREATE INDEX turns_by_kind ON turns (grp, kind, occurred_at, seq);
CREATE INDEX turns_by_session ON turns (grp, session, seq);
CREATE INDEX turns_by_session_time ON turns (grp, session, occurred_at, seq);
CREATE INDEX turns_by_origin ON turns (grp, source, role, session, kind, occurred_at, occurred_precision, uuid);
CREATE INDEX turns_of_months ON turns (grp, occurred_at) WHERE occurred_precision IN ('month', 'year');

CREATE TABLE turn_tags (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    tag TEXT COLLATE "C" NOT NULL,
    turn TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, tag, turn),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX turn_tags_by_turn ON turn_tags (grp, turn);

CREATE TABLE jobs (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    id BIGINT NOT NULL DEFAULT next_number('jobs'),
    turn TEXT COLLATE "C" NOT NULL,
    payload TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed', 'dropped')),
    stage BIGINT NOT NULL DEFAULT 0 CHECK (stage IN (0, 1)),
    attempts BIGINT NOT NULL DEFAULT 0,
    failures BIGINT NOT NULL DEFAULT 0,
    code TEXT COLLATE "C" NOT NULL DEFAULT '',
    error TEXT COLLATE "C" NOT NULL DEFAULT '',
    queued_at BIGINT NOT NULL,
    began_at BIGINT NOT NULL DEFAULT 0,
    next_at BIGINT NOT NULL DEFAULT 0,
    first_failed_at BIGINT NOT NULL DEFAULT 0,
    tokens_in BIGINT NOT NULL DEFAULT 0,
    tokens_out BIGINT NOT NULL DEFAULT 0,
    cost_micros BIGINT NOT NULL DEFAULT 0,
    result TEXT COLLATE "C",
    PRIMARY KEY (grp, id),
    UNIQUE (grp, turn),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX jobs_open ON jobs (grp, stage, id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_by_state ON jobs (grp, state, id);

CREATE TABLE attempts (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    seq BIGINT NOT NULL DEFAULT next_number('attempts'),
    job BIGINT NOT NULL,
    stage BIGINT NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL CHECK (outcome IN ('done', 'again', 'failed')),
    began_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    code TEXT COLLATE "C" NOT NULL DEFAULT '',
    error TEXT COLLATE "C" NOT NULL DEFAULT '',
    tokens_in BIGINT NOT NULL DEFAULT 0,
    tokens_out BIGINT NOT NULL DEFAULT 0,
    cost_micros BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, seq),
    FOREIGN KEY (grp, job) REFERENCES jobs (grp, id) ON DELETE CASCADE
);
CREATE INDEX attempts_by_job ON attempts (grp, job, seq);
CREATE INDEX attempts_by_end ON attempts (grp, ended_at, outcome);

CREATE TABLE records (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    turn TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    pack TEXT COLLATE "C" NOT NULL DEFAULT '',
    pack_version BIGINT NOT NULL DEFAULT 0,
    kind TEXT COLLATE "C" NOT NULL DEFAULT '',
    title TEXT COLLATE "C" NOT NULL DEFAULT '',
    folded TEXT COLLATE "C" NOT NULL DEFAULT '',
    summary TEXT COLLATE "C" NOT NULL DEFAULT '',
    fields TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    status TEXT COLLATE "C" NOT NULL DEFAULT '',
    state TEXT COLLATE "C" NOT NULL DEFAULT '',
    version BIGINT NOT NULL DEFAULT 1,
    updated_at BIGINT NOT NULL DEFAULT 0,
    actor TEXT COLLATE "C" NOT NULL DEFAULT '',
    author TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (grp, turn),
    UNIQUE (grp, node),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX records_by_title ON records (grp, kind, folded) WHERE pack <> '';
CREATE INDEX records_by_folded ON records (grp, folded) WHERE pack <> '';

CREATE TABLE turn_links (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    folded TEXT COLLATE "C" NOT NULL,
    turn TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, folded, turn),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX turn_links_by_turn ON turn_links (grp, turn);

CREATE TABLE versions (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    seq BIGINT NOT NULL DEFAULT next_number('versions'),
    turn TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    change TEXT COLLATE "C" NOT NULL CHECK (change IN ('created', 'modified', 'appended')),
    title TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL DEFAULT '',
    fields TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    status TEXT COLLATE "C" NOT NULL DEFAULT '',
    state TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (grp, seq),
    UNIQUE (grp, turn, number),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);

CREATE TABLE merges (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    id TEXT COLLATE "C" NOT NULL,
    kept TEXT COLLATE "C" NOT NULL,
    gone TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('applying', 'applied', 'undoing', 'undone')),
    at BIGINT NOT NULL,
    change TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, id)
);

CREATE TABLE spending (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    day TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    texts BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    unmetered BIGINT NOT NULL,
    tokens_in BIGINT NOT NULL,
    tokens_out BIGINT NOT NULL,
    cost_micros BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,
    PRIMARY KEY (grp, day, model)
);

CREATE TABLE meta (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, key)
);

CREATE TABLE shown (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    seq BIGINT NOT NULL DEFAULT next_number('shown'),
    session TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (grp, seq)
);
CREATE INDEX shown_by_session ON shown (grp, session, at, id);
CREATE INDEX shown_by_time ON shown (grp, at);

CREATE TABLE injected (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    seq BIGINT NOT NULL DEFAULT next_number('injected'),
    session TEXT COLLATE "C" NOT NULL,
    given TEXT COLLATE "C" NOT NULL CHECK (given IN ('startup', 'turn', 'compact')),
    tokens BIGINT NOT NULL,
    at BIGINT NOT NULL,
    part TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (grp, seq)
);
CREATE INDEX injected_by_session ON injected (grp, session, given, at);
CREATE INDEX injected_by_time ON injected (grp, at);

CREATE TABLE record_vectors (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    node TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    due BIGINT,
    failures BIGINT NOT NULL,
    error TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, node)
);
CREATE INDEX record_vectors_by_due ON record_vectors (grp, due) WHERE due IS NOT NULL;

CREATE TABLE record_field (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    node TEXT COLLATE "C" NOT NULL,
    field TEXT COLLATE "C" NOT NULL,
    number DOUBLE PRECISION,
    text TEXT COLLATE "C",
    at BIGINT,
    PRIMARY KEY (grp, node, field)
);
CREATE INDEX record_field_by_number ON record_field (grp, field, number);
CREATE INDEX record_field_by_text ON record_field (grp, field, text);
CREATE INDEX record_field_by_at ON record_field (grp, field, at);

CREATE TABLE record_relations (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    id TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    properties TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    actor TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL DEFAULT 0,
    pending BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, id)
);
CREATE INDEX record_relations_by_source ON record_relations (grp, source);
CREATE INDEX record_relations_by_target ON record_relations (grp, target);
CREATE INDEX record_relations_pending ON record_relations (grp, pending) WHERE pending > 0;

CREATE TABLE transitions (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    seq BIGINT NOT NULL DEFAULT next_number('transitions'),
    record TEXT COLLATE "C" NOT NULL,
    before TEXT COLLATE "C" NOT NULL,
    after TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    why TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, seq)
);
CREATE INDEX transitions_by_record ON transitions (grp, record, seq);

CREATE TABLE record_cites (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    record TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('fact', 'turn', 'record')),
    gone BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, record, id)
);
CREATE INDEX record_cites_by_id ON record_cites (grp, id);

CREATE TABLE shared (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    record TEXT COLLATE "C" NOT NULL,
    member TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    confidence DOUBLE PRECISION NOT NULL,
    trust TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    own_confidence DOUBLE PRECISION NOT NULL DEFAULT 0.5,
    PRIMARY KEY (grp, record)
);
CREATE INDEX shared_by_member ON shared (grp, member, origin);
CREATE INDEX shared_revoked ON shared (grp, record) WHERE state = 'revoked';

CREATE TABLE shared_root (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    record TEXT COLLATE "C" NOT NULL,
    via TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, record, via, digest)
);
CREATE INDEX shared_root_by_via ON shared_root (grp, via);

CREATE TABLE shared_use (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    record TEXT COLLATE "C" NOT NULL,
    member TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    applied BIGINT NOT NULL,
    PRIMARY KEY (grp, record, member)
);

CREATE TABLE inbox (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    seq BIGINT NOT NULL DEFAULT next_number('inbox'),
    member TEXT COLLATE "C" NOT NULL,
    record TEXT COLLATE "C" NOT NULL,
    why TEXT COLLATE "C" NOT NULL,
    due_at BIGINT NOT NULL,
    acked BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, seq),
    UNIQUE (grp, member, record, why)
);
CREATE INDEX inbox_due ON inbox (grp, member, acked, due_at);

CREATE TABLE shared_cites (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    record TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    relation TEXT COLLATE "C" NOT NULL DEFAULT '',
    properties TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    gone BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, record, id, relation)
);
CREATE INDEX shared_cites_by_id ON shared_cites (grp, id);

CREATE TABLE bin (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    id TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    why TEXT COLLATE "C" NOT NULL,
    kinds TEXT COLLATE "C" NOT NULL,
    asked TEXT COLLATE "C" NOT NULL,
    ids TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    seen_clock TEXT COLLATE "C" NOT NULL DEFAULT '',
    seen_s DOUBLE PRECISION NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, id)
);
CREATE INDEX bin_by_time ON bin (grp, at);

CREATE TABLE topic_members (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    at BIGINT NOT NULL,
    topic TEXT COLLATE "C" NOT NULL,
    turn TEXT COLLATE "C" NOT NULL,
    agreement DOUBLE PRECISION NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (grp, at, topic, turn),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX topic_members_by_turn ON topic_members (grp, turn);

CREATE TABLE features (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    item TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    perspective TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    blob BYTEA NOT NULL,
    PRIMARY KEY (grp, item, perspective)
);
CREATE INDEX features_failed ON features (grp, perspective) WHERE version = 0;

CREATE TABLE endings (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    turn TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    object TEXT COLLATE "C" NOT NULL,
    relations TEXT COLLATE "C" NOT NULL,
    ended_at BIGINT,
    ended_before BIGINT,
    ended_precision TEXT COLLATE "C" NOT NULL DEFAULT 'instant',
    PRIMARY KEY (grp, turn, number),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX endings_by_subject ON endings (grp, subject);
CREATE INDEX endings_by_object ON endings (grp, object);

CREATE TABLE closings (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    fact TEXT COLLATE "C" NOT NULL,
    by_fact TEXT COLLATE "C" NOT NULL,
    by_turn TEXT COLLATE "C" NOT NULL,
    cause TEXT COLLATE "C" NOT NULL CHECK (cause IN ('superseded', 'ended', 'corrected', 'explicit')),
    at BIGINT NOT NULL,
    closed_at BIGINT NOT NULL,
    own_end BIGINT,
    at_precision TEXT COLLATE "C" NOT NULL DEFAULT 'instant',
    own_end_precision TEXT COLLATE "C" NOT NULL DEFAULT 'instant',
    PRIMARY KEY (grp, fact, by_turn, by_fact, cause, at)
);
CREATE INDEX closings_by_turn ON closings (grp, by_turn);
CREATE INDEX closings_by_fact ON closings (grp, by_fact);

CREATE TABLE shared_stance (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    record TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    relation TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, record, target, relation)
);
CREATE INDEX shared_stance_by_target ON shared_stance (grp, target);

CREATE TABLE fact_ties (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    fact TEXT COLLATE "C" NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    needs TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, fact, holder, needs)
);
CREATE INDEX fact_ties_by_holder ON fact_ties (grp, holder);
CREATE INDEX fact_ties_by_needs ON fact_ties (grp, needs);

CREATE TABLE corrections_waiting (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    turn TEXT COLLATE "C" NOT NULL,
    due BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, turn),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);

CREATE TABLE topic_phrases (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    topic TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    place BIGINT NOT NULL,
    turn TEXT COLLATE "C" NOT NULL,
    start BIGINT NOT NULL,
    stop BIGINT NOT NULL,
    PRIMARY KEY (grp, topic, role, place),
    FOREIGN KEY (grp, turn) REFERENCES turns (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX topic_phrases_by_turn ON topic_phrases (grp, turn);

CREATE TABLE feature_tables (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    feature TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    columns TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, feature, name)
);

CREATE TABLE feature_sources (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    "row" TEXT COLLATE "C" NOT NULL,
    item TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, "row", item)
);
CREATE INDEX feature_sources_by_item ON feature_sources (grp, item);

CREATE TABLE feature_positions (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    feature TEXT COLLATE "C" NOT NULL,
    follower TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (grp, feature, follower)
);

CREATE TABLE anchor_versions (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    slug TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    modified_at BIGINT NOT NULL,
    replaced_at BIGINT NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, slug, number)
);
CREATE INDEX anchor_versions_by_time ON anchor_versions (grp, replaced_at);

CREATE TABLE node (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    uuid TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    labels TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C" NOT NULL,
    aliases TEXT COLLATE "C" NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    attributes TEXT COLLATE "C" NOT NULL,
    graphiti TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    created_at BIGINT NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, uuid)
);
CREATE INDEX node_by_name ON node (grp, name, uuid);
CREATE INDEX node_by_kind ON node (grp, kind);
CREATE INDEX node_by_status ON node (grp, status);

CREATE TABLE node_tag (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    tag TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, tag, node),
    FOREIGN KEY (grp, node) REFERENCES node (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX node_tag_by_node ON node_tag (grp, node);

CREATE TABLE node_name (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    node TEXT COLLATE "C" NOT NULL,
    place BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    folded TEXT COLLATE "C" NOT NULL,
    spelling TEXT COLLATE "C" NOT NULL,
    head TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    is_alias BIGINT NOT NULL,
    PRIMARY KEY (grp, node, place),
    FOREIGN KEY (grp, node) REFERENCES node (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX node_name_by_folded ON node_name (grp, folded);
CREATE INDEX node_name_by_spelling ON node_name (grp, spelling);
CREATE INDEX node_name_by_head ON node_name (grp, head, size);

CREATE TABLE fact (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    uuid TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    object TEXT COLLATE "C" NOT NULL,
    relation TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('fact', 'relation')),
    attributes TEXT COLLATE "C" NOT NULL,
    graphiti TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    created_at BIGINT NOT NULL,
    valid_at BIGINT,
    valid_precision TEXT COLLATE "C" NOT NULL,
    invalid_at BIGINT,
    invalid_precision TEXT COLLATE "C" NOT NULL,
    expired_at BIGINT,
    reference_time BIGINT,
    at BIGINT GENERATED ALWAYS AS (coalesce(valid_at, created_at)) STORED,
    holds_from BIGINT GENERATED ALWAYS AS (coalesce(valid_at, -4611686018427387904)) STORED,
    holds_until BIGINT GENERATED ALWAYS AS (coalesce(invalid_at, 4611686018427387904)) STORED,
    believed_until BIGINT GENERATED ALWAYS AS (coalesce(expired_at, 4611686018427387904)) STORED,
    PRIMARY KEY (grp, uuid),
    FOREIGN KEY (grp, subject) REFERENCES node (grp, uuid) ON DELETE CASCADE,
    FOREIGN KEY (grp, object) REFERENCES node (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX fact_by_subject ON fact (grp, subject, object, uuid);
CREATE INDEX fact_by_object ON fact (grp, object, subject, uuid);
CREATE INDEX fact_by_time ON fact (grp, valid_at, uuid);
CREATE INDEX fact_by_holding ON fact (grp, holds_from, holds_until, believed_until, valid_precision, invalid_precision, uuid);
CREATE INDEX fact_by_end ON fact (grp, invalid_at);
CREATE INDEX fact_by_at ON fact (grp, at);
CREATE INDEX fact_of_months ON fact (grp, at) WHERE valid_precision IN ('month', 'year');
CREATE INDEX fact_by_relation ON fact (grp, relation);
CREATE INDEX fact_relations ON fact (grp, uuid) WHERE kind = 'relation';

CREATE TABLE support (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    fact TEXT COLLATE "C" NOT NULL,
    place BIGINT NOT NULL,
    episode TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, fact, place),
    FOREIGN KEY (grp, fact) REFERENCES fact (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX support_by_episode ON support (grp, episode, fact);

CREATE TABLE episode (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    uuid TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    facts TEXT COLLATE "C" NOT NULL,
    metadata TEXT COLLATE "C" NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    valid_at BIGINT NOT NULL,
    valid_precision TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, uuid)
);
CREATE INDEX episode_by_time ON episode (grp, valid_at, created_at);

CREATE TABLE mention (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    episode TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    uuid TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (grp, episode, node),
    FOREIGN KEY (grp, episode) REFERENCES episode (grp, uuid) ON DELETE CASCADE,
    FOREIGN KEY (grp, node) REFERENCES node (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX mention_by_node ON mention (grp, node, episode);

CREATE TABLE community (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    uuid TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    vector BYTEA,
    PRIMARY KEY (grp, uuid)
);

CREATE TABLE member (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    community TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    uuid TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (grp, community, node),
    FOREIGN KEY (grp, community) REFERENCES community (grp, uuid) ON DELETE CASCADE,
    FOREIGN KEY (grp, node) REFERENCES node (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX member_by_node ON member (grp, node, community);

CREATE TABLE saga (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    uuid TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C" NOT NULL,
    first_episode TEXT COLLATE "C",
    last_episode TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    summarized_at BIGINT,
    summarized_valid_at BIGINT,
    PRIMARY KEY (grp, uuid)
);

CREATE TABLE saga_episode (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    uuid TEXT COLLATE "C" NOT NULL,
    saga TEXT COLLATE "C" NOT NULL,
    episode TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (grp, uuid),
    FOREIGN KEY (grp, saga) REFERENCES saga (grp, uuid) ON DELETE CASCADE,
    FOREIGN KEY (grp, episode) REFERENCES episode (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX saga_episode_by_saga ON saga_episode (grp, saga, episode);
CREATE INDEX saga_episode_by_episode ON saga_episode (grp, episode);

CREATE TABLE episode_order (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    uuid TEXT COLLATE "C" NOT NULL,
    earlier TEXT COLLATE "C" NOT NULL,
    later TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (grp, uuid),
    FOREIGN KEY (grp, earlier) REFERENCES episode (grp, uuid) ON DELETE CASCADE,
    FOREIGN KEY (grp, later) REFERENCES episode (grp, uuid) ON DELETE CASCADE
);
CREATE INDEX episode_order_by_earlier ON episode_order (grp, earlier);
CREATE INDEX episode_order_by_later ON episode_order (grp, later);

CREATE TABLE change_log (
    grp TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
    position BIGINT NOT NULL DEFAULT next_number('change_log'),
    kind TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (grp, position),
    UNIQUE (grp, kind, id)
);

-- version 2
-- Entries of the change log for each row of the graph that is written, as `pps/store/graph_tables.py` has them in a file: in
-- transactions of a memory whose graph is published (`pps.logs_graph`, which who begins to write sets) and in no other.
CREATE FUNCTION log_graph_row(changed text, of_kind text)
    RETURNS void LANGUAGE sql VOLATILE
    AS $$
        DELETE FROM change_log WHERE kind = of_kind AND id = changed; INSERT INTO change_log (kind, id) VALUES (of_kind, changed)
    $$;
CREATE FUNCTION log_graph_item()
    RETURNS trigger LANGUAGE plpgsql
    AS $$
        BEGIN IF TG_OP = 'DELETE' THEN PERFORM log_graph_row(OLD.uuid, TG_ARGV[0]); ELSE PERFORM log_graph_row(NEW.uuid, TG_ARGV[0]); END IF; RETURN NULL; END
    $$;
CREATE FUNCTION log_graph_mention()
    RETURNS trigger LANGUAGE plpgsql
    AS $$
        BEGIN IF TG_OP = 'DELETE' THEN PERFORM log_graph_row(OLD.episode, 'graph_episode'); ELSE PERFORM log_graph_row(NEW.episode, 'graph_episode'); END IF; RETURN NULL; END
    $$;
CREATE TRIGGER log_node AFTER INSERT OR UPDATE OR DELETE ON node FOR EACH ROW
    WHEN (current_setting('pps.logs_graph', true) = 'on') EXECUTE FUNCTION log_graph_item('graph_node');
CREATE TRIGGER log_fact AFTER INSERT OR UPDATE OR DELETE ON fact FOR EACH ROW
    WHEN (current_setting('pps.logs_graph', true) = 'on') EXECUTE FUNCTION log_graph_item('graph_fact');
CREATE TRIGGER log_episode AFTER INSERT OR UPDATE OR DELETE ON episode FOR EACH ROW
    WHEN (current_setting('pps.logs_graph', true) = 'on') EXECUTE FUNCTION log_graph_item('graph_episode');
CREATE TRIGGER log_mention AFTER INSERT OR UPDATE OR DELETE ON mention FOR EACH ROW
    WHEN (current_setting('pps.logs_graph', true) = 'on') EXECUTE FUNCTION log_graph_mention();

-- version 3
-- The row of a titled text is whole too, as in version 28 of a file.
DROP INDEX records_by_title;
DROP INDEX records_by_folded;
CREATE INDEX records_by_title ON records (grp, kind, folded) WHERE pack <> '' AND pack <> 'events';
CREATE INDEX records_by_folded ON records (grp, folded) WHERE pack <> '' AND pack <> 'events';
CREATE INDEX records_to_complete ON records (grp, turn) WHERE pack = '';
