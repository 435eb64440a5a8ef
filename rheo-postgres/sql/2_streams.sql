-- What the functions have in common, and making streams and groups.
--
-- Errors of Rheo's own have SQLSTATEs of class RH; the adapter's table of errors lists them.

-- Every writing function calls it first: a statement must see what was committed before it began,
-- and a commit must reach the disk, whatever the session's defaults are.
CREATE FUNCTION {schema}.check_session() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'isolation' USING ERRCODE = 'RH010';
    END IF;
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;

-- The advisory lock under which a partition is appended to. Held until the commit is visible, so
-- that the order of commits is the order of sequences.
CREATE FUNCTION {schema}.lock_log(p_stream_id bigint, p_partition integer) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashoid('{schema}.events'::regclass),
        ((p_stream_id << 10 | p_partition) % 2147483647)::integer)
$$;

-- The advisory lock under which a group claims in a partition.
CREATE FUNCTION {schema}.lock_group(p_group_id bigint, p_partition integer) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashoid('{schema}.claims'::regclass),
        ((p_group_id << 10 | p_partition) % 2147483647)::integer)
$$;

CREATE FUNCTION {schema}.try_lock_group(p_group_id bigint, p_partition integer) RETURNS boolean
LANGUAGE sql AS $$
    SELECT pg_try_advisory_xact_lock(hashoid('{schema}.claims'::regclass),
        ((p_group_id << 10 | p_partition) % 2147483647)::integer)
$$;

-- Not max(): without statistics the planner would read the whole partition for it.
CREATE FUNCTION {schema}.high_watermark(p_stream_id bigint, p_partition integer) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT e.sequence FROM {schema}.events e
        WHERE e.stream_id = p_stream_id AND e.partition = p_partition
        ORDER BY e.sequence DESC LIMIT 1), 0);
END $$;

-- The members of a set of sequences, ascending.
CREATE FUNCTION {schema}.members(p_set int8multirange) RETURNS SETOF bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT s FROM unnest(p_set) AS r, generate_series(lower(r), upper(r) - 1) AS s
$$;

-- The stream with its number of partitions; raises when it is missing.
CREATE FUNCTION {schema}.find_stream(
    p_stream text, OUT stream_id bigint, OUT partition_count integer
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    SELECT s.stream_id, s.partition_count INTO find_stream.stream_id, find_stream.partition_count
    FROM {schema}.streams s WHERE s.name = p_stream;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no such stream' USING ERRCODE = 'RH001';
    END IF;
END $$;

-- A group with its stream; raises when one is missing, the stream first.
CREATE FUNCTION {schema}.find_group(
    p_stream text, p_group text,
    OUT stream_id bigint, OUT partition_count integer, OUT group_id bigint, OUT max_attempts integer
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    SELECT s.stream_id, s.partition_count, g.group_id, g.max_attempts
    INTO find_group.stream_id, find_group.partition_count, find_group.group_id,
        find_group.max_attempts
    FROM {schema}.streams s LEFT JOIN {schema}.groups g
        ON g.stream_id = s.stream_id AND g.name = p_group
    WHERE s.name = p_stream;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no such stream' USING ERRCODE = 'RH001';
    ELSIF find_group.group_id IS NULL THEN
        RAISE EXCEPTION 'no such group' USING ERRCODE = 'RH002';
    END IF;
END $$;

-- Raises unless the stream has all these partitions; NULL stands for all of them.
CREATE FUNCTION {schema}.check_partitions(
    p_argument text, p_partitions bigint[], p_count integer
) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_partition bigint;
BEGIN
    FOREACH v_partition IN ARRAY coalesce(p_partitions, '{}') LOOP
        IF v_partition NOT BETWEEN 0 AND p_count - 1 THEN
            RAISE EXCEPTION 'partition' USING ERRCODE = 'RH006',
                DETAIL = p_argument || ' ' || v_partition || ' ' || p_count;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION {schema}.create_stream(p_stream text, p_partition_count integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {schema}.check_session();
    INSERT INTO {schema}.streams (name, partition_count) VALUES (p_stream, p_partition_count)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the stream exists' USING ERRCODE = 'RH003';
    END IF;
END $$;

-- Where a group starts in a partition. The start is one of: beginning, end, at (a time), after (a
-- sequence), each (the sequences of the partitions in p_each, else the beginning).
CREATE FUNCTION {schema}.resolve_start(
    p_stream_id bigint, p_partition integer, p_start text, p_value bigint, p_each jsonb
) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_high bigint := {schema}.high_watermark(p_stream_id, p_partition);
    v_start bigint;
BEGIN
    CASE p_start
        WHEN 'beginning' THEN v_start := 0;
        WHEN 'end' THEN v_start := v_high;
        WHEN 'after' THEN v_start := p_value;
        WHEN 'each' THEN v_start := coalesce((p_each ->> p_partition::text)::bigint, 0);
        WHEN 'at' THEN
            SELECT coalesce(min(e.sequence) - 1, v_high) INTO v_start FROM {schema}.events e
            WHERE e.stream_id = p_stream_id AND e.partition = p_partition
                AND e.timestamp >= p_value AND e.sequence <= v_high;
    END CASE;
    IF v_start > v_high THEN
        RAISE EXCEPTION 'start' USING ERRCODE = 'RH007',
            DETAIL = p_partition || ' ' || v_start || ' ' || v_high;
    END IF;
    RETURN v_start;
END $$;

-- Forgets what was delivered in a partition and starts after a sequence.
CREATE FUNCTION {schema}.start_after(p_group_id bigint, p_partition integer, p_start bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Claims first: what a settle on its way takes out of a claim, it puts into the others.
    DELETE FROM {schema}.claims WHERE group_id = p_group_id AND partition = p_partition;
    DELETE FROM {schema}.deliveries WHERE group_id = p_group_id AND partition = p_partition;
    DELETE FROM {schema}.dead_letters WHERE group_id = p_group_id AND partition = p_partition;
    IF p_start > 0 THEN
        PERFORM {schema}.mark_cursor(p_group_id, p_partition, p_start, 0);
    END IF;
END $$;

-- A claim of nothing that says how far the group has claimed.
CREATE FUNCTION {schema}.mark_cursor(
    p_group_id bigint, p_partition integer, p_cursor bigint, p_floor bigint
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO {schema}.claims (group_id, partition, first, last, open, token, expires_at, floor)
    VALUES (p_group_id, p_partition, p_cursor, p_cursor, '{}', gen_random_uuid(),
        9223372036854775807, p_floor)
    ON CONFLICT DO NOTHING
$$;

CREATE FUNCTION {schema}.create_group(
    p_stream text, p_group text, p_max_attempts integer, p_start text, p_value bigint, p_each jsonb
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_stream record := {schema}.find_stream(p_stream);
    v_group_id bigint;
    v_partition integer;
BEGIN
    PERFORM {schema}.check_session();
    INSERT INTO {schema}.groups (stream_id, name, max_attempts)
    VALUES (v_stream.stream_id, p_group, p_max_attempts)
    ON CONFLICT DO NOTHING RETURNING group_id INTO v_group_id;
    PERFORM {schema}.check_partitions('start', array_agg(k::bigint), v_stream.partition_count)
    FROM jsonb_object_keys(p_each) k;
    FOR v_partition IN 0 .. v_stream.partition_count - 1 LOOP
        DECLARE
            v_start bigint := {schema}.resolve_start(
                v_stream.stream_id, v_partition, p_start, p_value, p_each);
        BEGIN
            IF v_start > 0 AND v_group_id IS NOT NULL THEN
                PERFORM {schema}.mark_cursor(v_group_id, v_partition, v_start, 0);
            END IF;
        END;
    END LOOP;
    IF v_group_id IS NULL THEN
        RAISE EXCEPTION 'the group exists' USING ERRCODE = 'RH004';
    END IF;
END $$;
