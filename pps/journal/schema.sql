-- The tables of memory.db, as forward migrations: those under "version n" bring a file from version n - 1 to n.
-- Append only: what was released never changes. The file's version is PRAGMA user_version.

-- Ids are TEXT (canonical UUIDs), times are INTEGER microseconds since 1970 UTC, lists are JSON.

-- version 1
-- `hash` folds white space; with its index, dedupe is one look-up inside the write transaction.
CREATE TABLE turns (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    actor TEXT NOT NULL,
    session TEXT NOT NULL,
    source TEXT NOT NULL,
    source_ref TEXT NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    tags TEXT NOT NULL,
    hash TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    chunk TEXT NOT NULL DEFAULT ''
);
CREATE INDEX turns_by_hash ON turns (hash, occurred_at);
CREATE INDEX turns_by_time ON turns (occurred_at, seq);
CREATE INDEX turns_by_kind ON turns (kind, occurred_at, seq);
CREATE INDEX turns_by_session ON turns (session, seq);
CREATE INDEX turns_by_session_time ON turns (session, occurred_at, seq);
-- Every column of a filter, so that a filter never reads the texts.
CREATE INDEX turns_by_origin ON turns (source, role, session, kind, occurred_at, uuid);
CREATE TABLE turn_tags (
    tag TEXT NOT NULL,
    turn TEXT NOT NULL REFERENCES turns (uuid) ON DELETE CASCADE,
    PRIMARY KEY (tag, turn)
) WITHOUT ROWID;
CREATE INDEX turn_tags_by_turn ON turn_tags (turn);

-- A job has two stages: 0, its turn is to be saved; 1, a model is to read it. Each stage is done in order.
-- `attempts` counts starts, crashes included; `failures` those that ended badly since it was last queued.
-- `next_at` is the earliest next attempt; what the attempt in hand has cost so far stands in the job.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    turn TEXT NOT NULL UNIQUE REFERENCES turns (uuid) ON DELETE CASCADE,
    payload TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed', 'dropped')),
    stage INTEGER NOT NULL DEFAULT 0 CHECK (stage IN (0, 1)),
    attempts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    code TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    queued_at INTEGER NOT NULL,
    began_at INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL DEFAULT 0,
    first_failed_at INTEGER NOT NULL DEFAULT 0,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0,
    result TEXT
);
CREATE INDEX jobs_open ON jobs (stage, id) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE TABLE attempts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    stage INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('done', 'again', 'failed')),
    began_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    code TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    tokens_in INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX attempts_by_job ON attempts (job, seq);
CREATE INDEX attempts_by_end ON attempts (ended_at, outcome);
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    UNIQUE (kind, id)
);

-- Every uuid of the mirror has a small number: filters over 100,000 facts join numbers, not texts.
CREATE TABLE mirror_id (id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE);
CREATE TABLE mirror_node (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX mirror_node_by_kind ON mirror_node (kind);
CREATE TABLE mirror_tag (
    tag TEXT NOT NULL,
    node INTEGER NOT NULL REFERENCES mirror_node (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, node)
) WITHOUT ROWID;
CREATE INDEX mirror_tag_by_node ON mirror_tag (node);
CREATE TABLE mirror_name (
    node INTEGER NOT NULL REFERENCES mirror_node (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    spelling TEXT NOT NULL,
    head TEXT NOT NULL,
    size INTEGER NOT NULL,
    is_alias INTEGER NOT NULL
);
CREATE INDEX mirror_name_by_node ON mirror_name (node);
CREATE INDEX mirror_name_by_folded ON mirror_name (folded);
CREATE INDEX mirror_name_by_spelling ON mirror_name (spelling);
CREATE INDEX mirror_name_by_head ON mirror_name (head, size);
CREATE TABLE mirror_fact (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL,
    subject INTEGER NOT NULL,
    object INTEGER NOT NULL,
    relation TEXT NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    valid_at INTEGER NOT NULL,
    invalid_at INTEGER NOT NULL,
    expired_at INTEGER NOT NULL
);
-- Unknown ends are the least and the greatest number, so that this index alone answers `as_of`.
CREATE INDEX mirror_fact_times ON mirror_fact (valid_at, invalid_at, expired_at, uuid);
CREATE INDEX mirror_fact_relations ON mirror_fact (id) WHERE kind = 'relation';
CREATE INDEX mirror_fact_by_end ON mirror_fact (invalid_at);
CREATE INDEX mirror_fact_by_at ON mirror_fact (at);
CREATE INDEX mirror_fact_by_relation ON mirror_fact (relation);
CREATE INDEX mirror_fact_by_ends ON mirror_fact (subject, object);
CREATE INDEX mirror_fact_by_object ON mirror_fact (object);
CREATE TABLE mirror_support (
    episode INTEGER NOT NULL,
    fact INTEGER NOT NULL REFERENCES mirror_fact (id) ON DELETE CASCADE,
    PRIMARY KEY (episode, fact)
) WITHOUT ROWID;
CREATE INDEX mirror_support_by_fact ON mirror_support (fact);

-- A record is a node with a turn as its source. Links are kept whether their title exists or not.
CREATE TABLE records (
    turn TEXT PRIMARY KEY REFERENCES turns (uuid) ON DELETE CASCADE,
    node TEXT NOT NULL UNIQUE
) WITHOUT ROWID;
CREATE TABLE turn_links (
    folded TEXT NOT NULL,
    turn TEXT NOT NULL REFERENCES turns (uuid) ON DELETE CASCADE,
    PRIMARY KEY (folded, turn)
) WITHOUT ROWID;
CREATE INDEX turn_links_by_turn ON turn_links (turn);
-- Every version of a text that was changed, the present one too.
CREATE TABLE versions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    turn TEXT NOT NULL REFERENCES turns (uuid) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    change TEXT NOT NULL CHECK (change IN ('created', 'modified', 'appended')),
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    tags TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (turn, number)
);

CREATE TABLE merges (
    id TEXT PRIMARY KEY,
    kept TEXT NOT NULL,
    gone TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('applying', 'applied', 'undoing', 'undone')),
    at INTEGER NOT NULL,
    change TEXT NOT NULL
);
CREATE TABLE spending (
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    texts INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    unmetered INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY (day, model)
) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE shown (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX shown_by_session ON shown (session, at, id);
CREATE INDEX shown_by_time ON shown (at);
CREATE TABLE marks (seq INTEGER PRIMARY KEY AUTOINCREMENT, mark TEXT NOT NULL UNIQUE);

-- version 2
-- The marks of packs are computed now, from a key of the entity's own.
DROP TABLE marks;

-- version 3
-- Nodes that were mirrored without their status are read again.
ALTER TABLE mirror_node ADD COLUMN status TEXT NOT NULL DEFAULT '';
CREATE INDEX mirror_node_by_status ON mirror_node (status);
INSERT OR IGNORE INTO outbox (kind, id) SELECT 'node', uuid FROM mirror_node;

-- version 4
-- A node's time is that of the turns that speak of it. What was indexed before is read again: the mentions are in the
-- graph, and the texts of records had no index entry.
CREATE TABLE mirror_mention (
    node INTEGER NOT NULL,
    turn INTEGER NOT NULL REFERENCES turns (seq) ON DELETE CASCADE,
    PRIMARY KEY (node, turn)
) WITHOUT ROWID;
CREATE INDEX mirror_mention_by_turn ON mirror_mention (turn);
INSERT OR IGNORE INTO outbox (kind, id) SELECT 'node', uuid FROM mirror_node;

-- version 5
-- Facts without a day get that of the first text that says them when they are mirrored anew.
INSERT OR IGNORE INTO outbox (kind, id) SELECT 'fact', uuid FROM mirror_fact WHERE valid_at < 0 AND kind = 'fact';

-- version 6
-- How much of a memory sessions were given, pack by pack.
CREATE TABLE injected (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    given TEXT NOT NULL CHECK (given IN ('startup', 'turn', 'compact')),
    tokens INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX injected_by_session ON injected (session, given, at);
CREATE INDEX injected_by_time ON injected (at);

-- version 7
-- Of which text each record's vectors are, and when those that are not made yet are due.
CREATE TABLE record_vectors (
    node TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    due INTEGER,
    failures INTEGER NOT NULL,
    error TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX record_vectors_by_due ON record_vectors (due) WHERE due IS NOT NULL;

-- version 8
-- Which part of a session's start it was; empty is a pack.
ALTER TABLE injected ADD COLUMN part TEXT NOT NULL DEFAULT '';

-- version 9
-- A pack's record is here from its first version on; of a relation, `pending` counts changes that the graph lacks.
ALTER TABLE records ADD COLUMN pack TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN pack_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN folded TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN summary TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN fields TEXT NOT NULL DEFAULT '{}';
ALTER TABLE records ADD COLUMN status TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN state TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE records ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN actor TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN author TEXT NOT NULL DEFAULT '';
CREATE INDEX records_by_title ON records (kind, folded) WHERE pack <> '';
CREATE INDEX records_by_folded ON records (folded) WHERE pack <> '';
ALTER TABLE versions ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN fields TEXT NOT NULL DEFAULT '{}';
ALTER TABLE versions ADD COLUMN status TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN state TEXT NOT NULL DEFAULT '';
CREATE TABLE record_field (
    node TEXT NOT NULL,
    field TEXT NOT NULL,
    number REAL,
    text TEXT,
    at INTEGER,
    PRIMARY KEY (node, field)
) WITHOUT ROWID;
CREATE INDEX record_field_by_number ON record_field (field, number);
CREATE INDEX record_field_by_text ON record_field (field, text);
CREATE INDEX record_field_by_at ON record_field (field, at);
CREATE TABLE record_relations (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    type TEXT NOT NULL,
    target TEXT NOT NULL,
    properties TEXT NOT NULL DEFAULT '{}',
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX record_relations_by_source ON record_relations (source);
CREATE INDEX record_relations_by_target ON record_relations (target);
CREATE INDEX record_relations_pending ON record_relations (pending) WHERE pending > 0;
CREATE TABLE transitions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    record TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    why TEXT NOT NULL
);
CREATE INDEX transitions_by_record ON transitions (record, seq);
CREATE TABLE record_cites (
    record TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('fact', 'turn', 'record')),
    gone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (record, id)
) WITHOUT ROWID;
CREATE INDEX record_cites_by_id ON record_cites (id);

-- version 10
-- What a squad's pool keeps of its records (`shared_cites` is a member's), see ``pool_rows``.
CREATE TABLE shared (
    record TEXT PRIMARY KEY,
    member TEXT NOT NULL,
    origin TEXT NOT NULL,
    at INTEGER NOT NULL,
    confidence REAL NOT NULL,
    trust TEXT NOT NULL,
    state TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX shared_by_member ON shared (member, origin);
CREATE INDEX shared_revoked ON shared (record) WHERE state = 'revoked';
CREATE TABLE shared_root (record TEXT NOT NULL, via TEXT NOT NULL, digest TEXT NOT NULL,
    confidence REAL NOT NULL, PRIMARY KEY (record, via, digest)) WITHOUT ROWID;
CREATE INDEX shared_root_by_via ON shared_root (via);
CREATE TABLE shared_use (record TEXT NOT NULL, member TEXT NOT NULL, at INTEGER NOT NULL,
    applied INTEGER NOT NULL, PRIMARY KEY (record, member)) WITHOUT ROWID;
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    member TEXT NOT NULL,
    record TEXT NOT NULL,
    why TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    acked INTEGER NOT NULL DEFAULT 0,
    UNIQUE (member, record, why)
);
CREATE INDEX inbox_due ON inbox (member, acked, due_at);
CREATE TABLE shared_cites (
    record TEXT NOT NULL,
    id TEXT NOT NULL,
    relation TEXT NOT NULL DEFAULT '',
    properties TEXT NOT NULL DEFAULT '{}',
    gone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (record, id, relation)
) WITHOUT ROWID;
CREATE INDEX shared_cites_by_id ON shared_cites (id);

-- version 11
-- What was forgotten and can be restored for a while, see ``bin_rows``.
CREATE TABLE bin (id TEXT PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, why TEXT NOT NULL,
    kinds TEXT NOT NULL, asked TEXT NOT NULL, ids TEXT NOT NULL, content TEXT NOT NULL);
CREATE INDEX bin_by_time ON bin (at);

-- version 12
-- Which turns belonged to which topic when, see ``topic_rows``.
CREATE TABLE topic_members (at INTEGER NOT NULL, topic TEXT NOT NULL,
    turn TEXT NOT NULL REFERENCES turns (uuid) ON DELETE CASCADE, agreement REAL NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (at, topic, turn)) WITHOUT ROWID;
CREATE INDEX topic_members_by_turn ON topic_members (turn);

-- version 13
-- What perspectives keep of an item, see ``perspective_rows``; version 0 is one that could not be made.
CREATE TABLE features (
    item TEXT NOT NULL,
    kind TEXT NOT NULL,
    perspective TEXT NOT NULL,
    version INTEGER NOT NULL,
    blob BLOB NOT NULL,
    PRIMARY KEY (item, perspective)
) WITHOUT ROWID;
CREATE INDEX features_failed ON features (perspective) WHERE version = 0;

-- version 14
-- How important a turn was said to be, see ``topics.importance``; half where nobody says.
ALTER TABLE turns ADD COLUMN importance REAL NOT NULL DEFAULT 0.5;

-- version 15
-- Statements that end facts (by their turns), and which fact was closed by what, see ``closing_rows``.
CREATE TABLE endings (
    turn TEXT NOT NULL REFERENCES turns (uuid) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    subject TEXT NOT NULL,
    object TEXT NOT NULL,
    relations TEXT NOT NULL,
    ended_at INTEGER,
    ended_before INTEGER,
    PRIMARY KEY (turn, number)
) WITHOUT ROWID;
CREATE INDEX endings_by_subject ON endings (subject);
CREATE INDEX endings_by_object ON endings (object);
CREATE TABLE closings (
    fact TEXT NOT NULL,
    by_fact TEXT NOT NULL,
    by_turn TEXT NOT NULL,
    cause TEXT NOT NULL CHECK (cause IN ('superseded', 'ended', 'corrected', 'explicit')),
    at INTEGER NOT NULL,
    closed_at INTEGER NOT NULL,
    own_end INTEGER,
    PRIMARY KEY (fact, by_turn, by_fact, cause, at)
) WITHOUT ROWID;
CREATE INDEX closings_by_turn ON closings (by_turn);
CREATE INDEX closings_by_fact ON closings (by_fact);

-- version 16
-- How precise times are: an instant, or a day, month or year kept as its midnight in UTC, see ``core.time``. Before,
-- midnight in UTC stood for a day. `utc_offset_s` is that of the clock that a turn was noted by, if it said so.
ALTER TABLE turns ADD COLUMN occurred_precision TEXT NOT NULL DEFAULT 'instant';
ALTER TABLE turns ADD COLUMN utc_offset_s INTEGER;
UPDATE turns SET occurred_precision = 'day' WHERE occurred_at % 86400000000 = 0;
ALTER TABLE endings ADD COLUMN ended_precision TEXT NOT NULL DEFAULT 'instant';
ALTER TABLE closings ADD COLUMN at_precision TEXT NOT NULL DEFAULT 'instant';
ALTER TABLE closings ADD COLUMN own_end_precision TEXT NOT NULL DEFAULT 'instant';
DROP INDEX turns_by_origin;
CREATE INDEX turns_by_origin ON turns (source, role, session, kind, occurred_at, occurred_precision, uuid);
ALTER TABLE mirror_fact ADD COLUMN valid_precision TEXT NOT NULL DEFAULT 'instant';
ALTER TABLE mirror_fact ADD COLUMN invalid_precision TEXT NOT NULL DEFAULT 'instant';
UPDATE mirror_fact SET valid_precision = 'day'
    WHERE valid_at % 86400000000 = 0 AND valid_at > -4611686018427387904;
UPDATE mirror_fact SET invalid_precision = 'day'
    WHERE invalid_at % 86400000000 = 0 AND invalid_at < 4611686018427387904;
DROP INDEX mirror_fact_times;
CREATE INDEX mirror_fact_times
    ON mirror_fact (valid_at, invalid_at, expired_at, valid_precision, invalid_precision, uuid);

-- version 17
-- The running time (of which clock, at how many seconds) at which a row of the bin was first seen to be over its age;
-- an empty clock says that it was not. It is erased when it is still over a day of running later, see ``bin_rows``.
ALTER TABLE bin ADD COLUMN seen_clock TEXT NOT NULL DEFAULT '';
ALTER TABLE bin ADD COLUMN seen_s REAL NOT NULL DEFAULT 0;

-- version 18
-- Confidence is the author's own; other records raise or lower it by what they state of it.
ALTER TABLE shared ADD COLUMN own_confidence REAL NOT NULL DEFAULT 0.5;
UPDATE shared SET own_confidence = COALESCE(
    (SELECT max(confidence) FROM shared_root AS r WHERE r.record = shared.record AND r.via = ''),
    (SELECT max(confidence) FROM shared_root AS r WHERE r.record = shared.record), confidence);
UPDATE shared SET confidence = own_confidence;
ALTER TABLE shared_root DROP COLUMN confidence;
CREATE TABLE shared_stance (
    record TEXT NOT NULL,
    target TEXT NOT NULL,
    relation TEXT NOT NULL,
    PRIMARY KEY (record, target, relation)
) WITHOUT ROWID;
CREATE INDEX shared_stance_by_target ON shared_stance (target);

-- version 19
-- Facts that a command found in several turns together, see ``tie_rows``.
CREATE TABLE fact_ties (
    fact TEXT NOT NULL,
    holder TEXT NOT NULL,
    needs TEXT NOT NULL,
    PRIMARY KEY (fact, holder, needs)
) WITHOUT ROWID;
CREATE INDEX fact_ties_by_holder ON fact_ties (holder);
CREATE INDEX fact_ties_by_needs ON fact_ties (needs);

-- version 20
-- Times that are a month or a year: few, and found by their beginning.
CREATE INDEX turns_of_months ON turns (occurred_at) WHERE occurred_precision IN ('month', 'year');
CREATE INDEX mirror_fact_of_months ON mirror_fact (at) WHERE valid_precision IN ('month', 'year');

-- version 21
-- Corrections that nothing said before them is known of, see ``closing_rows``; `due` when something has come in since.
CREATE TABLE corrections_waiting (
    turn TEXT PRIMARY KEY REFERENCES turns (uuid) ON DELETE CASCADE,
    due INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- version 22
-- Where in turns the phrases of a topic stand, see ``topic_rows``: no text is kept here either.
CREATE TABLE topic_phrases (
    topic TEXT NOT NULL,
    role TEXT NOT NULL,
    place INTEGER NOT NULL,
    turn TEXT NOT NULL REFERENCES turns (uuid) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    PRIMARY KEY (topic, role, place)
) WITHOUT ROWID;
CREATE INDEX topic_phrases_by_turn ON topic_phrases (turn);

-- version 23
-- Tables of features as data, what each of their rows is about, and how far followers are, see ``feature_tables``.
CREATE TABLE feature_tables (
    feature TEXT NOT NULL,
    name TEXT NOT NULL,
    columns TEXT NOT NULL,
    PRIMARY KEY (feature, name)
) WITHOUT ROWID;
CREATE TABLE feature_sources (
    row TEXT NOT NULL,
    item TEXT NOT NULL,
    PRIMARY KEY (row, item)
) WITHOUT ROWID;
CREATE INDEX feature_sources_by_item ON feature_sources (item);
CREATE TABLE feature_positions (
    feature TEXT NOT NULL,
    follower TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (feature, follower)
) WITHOUT ROWID;

-- version 24
-- The texts of anchors before each change; the present one is the file alone.
CREATE TABLE anchor_versions (
    slug TEXT NOT NULL,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    modified_at INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    PRIMARY KEY (slug, number)
) WITHOUT ROWID;
CREATE INDEX anchor_versions_by_time ON anchor_versions (replaced_at);

-- version 25
-- The graph. Lists and objects are JSON. `grp` is the entity's group: it is part of every key and of every foreign key,
-- so that no row can name a row of another group, and a CHECK holds it to the group of the file. Keys begin with the
-- id: an index that leads with a column of one value misleads SQLite's planner. A database of many groups leads with
-- `grp`. Full text is not here, and vectors are in tables of their own: rows of facts are small, and scans read them
-- alone. Where filters and look-ups by name read the graph, they read these tables: nothing of it is kept twice.
INSERT OR REPLACE INTO meta (key, value) SELECT 'scrub_due', '1' WHERE EXISTS (SELECT 1 FROM mirror_id);
DROP TABLE mirror_support;
DROP TABLE mirror_mention;
DROP TABLE mirror_fact;
DROP TABLE mirror_name;
DROP TABLE mirror_tag;
DROP TABLE mirror_node;
DROP TABLE mirror_id;

-- `attributes` are the user's own, `graphiti` those that Graphiti's pipeline wrote; `labels` those that Graphiti knows.
CREATE TABLE node (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    labels TEXT NOT NULL,
    summary TEXT NOT NULL,
    aliases TEXT NOT NULL,
    tags TEXT NOT NULL,
    attributes TEXT NOT NULL,
    graphiti TEXT NOT NULL DEFAULT '{}',
    created_at BIGINT NOT NULL,
    source TEXT NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (uuid, grp)
);
CREATE INDEX node_by_name ON node (name, uuid);
CREATE INDEX node_by_kind ON node (kind);
CREATE INDEX node_by_status ON node (status);

-- Derived from a node's row, for look-ups: its tags folded, and its name and aliases as `names` reads them.
CREATE TABLE node_tag (
    tag TEXT NOT NULL,
    node TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    PRIMARY KEY (tag, node, grp),
    FOREIGN KEY (node, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX node_tag_by_node ON node_tag (node);
CREATE TABLE node_name (
    node TEXT NOT NULL,
    place INTEGER NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    spelling TEXT NOT NULL,
    head TEXT NOT NULL,
    size INTEGER NOT NULL,
    is_alias INTEGER NOT NULL,
    PRIMARY KEY (node, place, grp),
    FOREIGN KEY (node, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX node_name_by_folded ON node_name (folded);
CREATE INDEX node_name_by_spelling ON node_name (spelling);
CREATE INDEX node_name_by_head ON node_name (head, size);

-- A precision is 'instant', 'day', 'month' or 'year', and 'instant' where the time is unknown. Of the computed columns,
-- `at` is what a fact is dated by; in the others an unknown beginning is the least number, an unknown end the greatest.
CREATE TABLE fact (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    subject TEXT NOT NULL,
    object TEXT NOT NULL,
    relation TEXT NOT NULL,
    text TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('fact', 'relation')),
    attributes TEXT NOT NULL,
    graphiti TEXT NOT NULL DEFAULT '{}',
    created_at BIGINT NOT NULL,
    valid_at BIGINT,
    valid_precision TEXT NOT NULL,
    invalid_at BIGINT,
    invalid_precision TEXT NOT NULL,
    expired_at BIGINT,
    reference_time BIGINT,
    at BIGINT GENERATED ALWAYS AS (coalesce(valid_at, created_at)) VIRTUAL,
    holds_from BIGINT GENERATED ALWAYS AS (coalesce(valid_at, -4611686018427387904)) VIRTUAL,
    holds_until BIGINT GENERATED ALWAYS AS (coalesce(invalid_at, 4611686018427387904)) VIRTUAL,
    believed_until BIGINT GENERATED ALWAYS AS (coalesce(expired_at, 4611686018427387904)) VIRTUAL,
    PRIMARY KEY (uuid, grp),
    FOREIGN KEY (subject, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE,
    FOREIGN KEY (object, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE
);
-- With grp, so that walks read these indexes alone.
CREATE INDEX fact_by_subject ON fact (subject, object, uuid, grp);
CREATE INDEX fact_by_object ON fact (object, subject, uuid, grp);
CREATE INDEX fact_by_time ON fact (valid_at, uuid);
-- This index alone answers what holds at a time.
CREATE INDEX fact_by_holding
    ON fact (holds_from, holds_until, believed_until, valid_precision, invalid_precision, uuid);
CREATE INDEX fact_by_end ON fact (invalid_at);
CREATE INDEX fact_by_at ON fact (at);
CREATE INDEX fact_of_months ON fact (at) WHERE valid_precision IN ('month', 'year');
CREATE INDEX fact_by_relation ON fact (relation);
CREATE INDEX fact_relations ON fact (uuid) WHERE kind = 'relation';

-- Which episodes state a fact, in order. An episode may be absent: a fact may name one that was never saved.
CREATE TABLE support (
    fact TEXT NOT NULL,
    place INTEGER NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    episode TEXT NOT NULL,
    PRIMARY KEY (fact, place, grp),
    FOREIGN KEY (fact, grp) REFERENCES fact (uuid, grp) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX support_by_episode ON support (episode, fact);

CREATE TABLE episode (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    source TEXT NOT NULL,
    description TEXT NOT NULL,
    facts TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    valid_at BIGINT NOT NULL,
    valid_precision TEXT NOT NULL,
    PRIMARY KEY (uuid, grp)
);
CREATE INDEX episode_by_time ON episode (valid_at, created_at);

CREATE TABLE mention (
    episode TEXT NOT NULL,
    node TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    uuid TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (episode, node, grp),
    FOREIGN KEY (episode, grp) REFERENCES episode (uuid, grp) ON DELETE CASCADE,
    FOREIGN KEY (node, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX mention_by_node ON mention (node, episode);

-- Vectors: float32, little endian, of the entity's pinned model. Derived; a fact is whole without its vector.
CREATE TABLE node_vector (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    vector BLOB NOT NULL,
    PRIMARY KEY (uuid, grp),
    FOREIGN KEY (uuid, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE
);
CREATE TABLE fact_vector (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    vector BLOB NOT NULL,
    PRIMARY KEY (uuid, grp),
    FOREIGN KEY (uuid, grp) REFERENCES fact (uuid, grp) ON DELETE CASCADE
);

-- What Graphiti alone makes: communities and sagas.
CREATE TABLE community (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    name TEXT NOT NULL,
    summary TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    vector BLOB,
    PRIMARY KEY (uuid, grp)
);
CREATE TABLE member (
    community TEXT NOT NULL,
    node TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    uuid TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (community, node, grp),
    FOREIGN KEY (community, grp) REFERENCES community (uuid, grp) ON DELETE CASCADE,
    FOREIGN KEY (node, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX member_by_node ON member (node, community);
CREATE TABLE saga (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    name TEXT NOT NULL,
    summary TEXT NOT NULL,
    first_episode TEXT,
    last_episode TEXT,
    created_at BIGINT NOT NULL,
    summarized_at BIGINT,
    summarized_valid_at BIGINT,
    PRIMARY KEY (uuid, grp)
);
CREATE TABLE saga_episode (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    saga TEXT NOT NULL,
    episode TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (uuid, grp),
    FOREIGN KEY (saga, grp) REFERENCES saga (uuid, grp) ON DELETE CASCADE,
    FOREIGN KEY (episode, grp) REFERENCES episode (uuid, grp) ON DELETE CASCADE
);
CREATE INDEX saga_episode_by_saga ON saga_episode (saga, episode);
CREATE INDEX saga_episode_by_episode ON saga_episode (episode);
CREATE TABLE episode_order (
    uuid TEXT NOT NULL,
    grp TEXT NOT NULL CHECK (grp = {group}),
    earlier TEXT NOT NULL,
    later TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (uuid, grp),
    FOREIGN KEY (earlier, grp) REFERENCES episode (uuid, grp) ON DELETE CASCADE,
    FOREIGN KEY (later, grp) REFERENCES episode (uuid, grp) ON DELETE CASCADE
);
CREATE INDEX episode_order_by_earlier ON episode_order (earlier);
CREATE INDEX episode_order_by_later ON episode_order (later);

-- version 26
-- The change log, see ``change_log``. Indexes that an earlier PPS made have no position of their own: they are where the
-- outbox was, behind position 1, which no entry has.
CREATE TABLE change_log (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    UNIQUE (kind, id)
);
INSERT INTO change_log (kind, id) VALUES ('node', '');
INSERT INTO change_log (kind, id) SELECT kind, id FROM outbox ORDER BY seq;
DELETE FROM change_log WHERE id = '';
INSERT OR REPLACE INTO meta (key, value)
    SELECT 'log_dropped', '1' WHERE EXISTS (SELECT 1 FROM turns) OR EXISTS (SELECT 1 FROM node);
DROP TABLE outbox;

-- version 27
-- Vectors are derived rows, and are kept once: in `vectors.db`, made after the commit.
INSERT OR REPLACE INTO meta (key, value) SELECT 'scrub_due', '1'
    WHERE EXISTS (SELECT 1 FROM node_vector) OR EXISTS (SELECT 1 FROM fact_vector);
DROP TABLE node_vector;
DROP TABLE fact_vector;

-- version 28
-- The row of a titled text is whole too, of the pack `events`: see `titled_rows`. Rows of before have turn and node alone;
-- the next opening completes them.
DROP INDEX records_by_title;
DROP INDEX records_by_folded;
CREATE INDEX records_by_title ON records (kind, folded) WHERE pack <> '' AND pack <> 'events';
CREATE INDEX records_by_folded ON records (folded) WHERE pack <> '' AND pack <> 'events';
CREATE INDEX records_to_complete ON records (turn) WHERE pack = '';
