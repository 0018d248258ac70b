-- The tables of `graph.db`, a file of its own, as they were before the graph moved into `memory.db`.

-- Ids are TEXT (canonical UUIDs), times are microseconds since 1970 UTC, lists and objects are JSON.
-- `grp` is the entity's group. It is part of every key and of every foreign key, so that no row can name a row of
-- another group, and a CHECK holds it to the group of the file. Keys begin with the id: an index that leads with a
-- column of one value misleads SQLite's planner. A database of many groups leads with `grp`.
-- Full text is not here, and vectors are in tables of their own: rows of facts are small, and scans read them alone.

-- version 1
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

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
    PRIMARY KEY (uuid, grp)
);
CREATE INDEX node_by_name ON node (name, uuid);

-- A precision is 'instant', 'day', 'month' or 'year', and empty where the time is unknown.
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
    PRIMARY KEY (uuid, grp),
    FOREIGN KEY (subject, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE,
    FOREIGN KEY (object, grp) REFERENCES node (uuid, grp) ON DELETE CASCADE
);
-- With grp, so that walks read these indexes alone.
CREATE INDEX fact_by_subject ON fact (subject, object, uuid, grp);
CREATE INDEX fact_by_object ON fact (object, subject, uuid, grp);
CREATE INDEX fact_by_time ON fact (valid_at, uuid);

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
