-- Streams, groups and the log; then the three tables of delivery state.
--
-- Times are microseconds since 1970, UTC. Names compare byte by byte (COLLATE "C").

CREATE TABLE {schema}.streams (
    stream_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    partition_count integer NOT NULL
);

CREATE TABLE {schema}.groups (
    group_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id bigint NOT NULL REFERENCES {schema}.streams,
    name text COLLATE "C" NOT NULL,
    max_attempts integer NOT NULL,
    UNIQUE (stream_id, name)
);

CREATE TABLE {schema}.events (
    stream_id bigint NOT NULL,
    partition integer NOT NULL,
    sequence bigint NOT NULL,
    event_id uuid NOT NULL,
    event_type text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    payload jsonb NOT NULL,
    metadata jsonb NOT NULL,
    timestamp bigint NOT NULL,
    PRIMARY KEY (stream_id, partition, sequence),
    UNIQUE (stream_id, event_id)
);
CREATE INDEX events_by_time ON {schema}.events (stream_id, timestamp, sequence, partition);
CREATE INDEX events_by_type ON {schema}.events (stream_id, event_type, sequence, partition);
CREATE INDEX events_by_key ON {schema}.events (stream_id, key, sequence, partition)
    WHERE key IS NOT NULL;
CREATE INDEX events_by_payload ON {schema}.events USING gin (payload jsonb_path_ops);

-- One row per fetch and partition: the events first..last were claimed together, with one token,
-- and those in "open" are not settled yet. The row with the highest "first" is kept when nothing in
-- it is open any more, since its "last" is how far the group has claimed.
CREATE TABLE {schema}.claims (
    group_id bigint NOT NULL,
    partition integer NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    open int8multirange NOT NULL,
    token uuid NOT NULL,
    expires_at bigint NOT NULL,
    -- No claim of this group and partition begins below it.
    floor bigint NOT NULL,
    PRIMARY KEY (group_id, partition, first)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- Group and partition as one expression: an index that shares the key's columns would sometimes be
-- taken for the key by the planner, and then every claim of the partition would be read.
CREATE INDEX claims_by_expiry ON {schema}.claims ((group_id << 10 | partition), expires_at);

-- What left the ordinary way: one row per event that was retried, replayed by id, reclaimed, or
-- whose lease was renewed apart from the others. Leased while it has a token, else waiting.
CREATE TABLE {schema}.deliveries (
    group_id bigint NOT NULL,
    partition integer NOT NULL,
    sequence bigint NOT NULL,
    attempts integer NOT NULL,
    token uuid,
    due_at bigint NOT NULL,
    PRIMARY KEY (group_id, partition, sequence)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX deliveries_by_due ON {schema}.deliveries ((group_id << 10 | partition), due_at);

CREATE TABLE {schema}.dead_letters (
    group_id bigint NOT NULL,
    partition integer NOT NULL,
    sequence bigint NOT NULL,
    attempt integer NOT NULL,
    reason text NOT NULL,
    dead_at bigint NOT NULL,
    PRIMARY KEY (group_id, partition, sequence)
);
