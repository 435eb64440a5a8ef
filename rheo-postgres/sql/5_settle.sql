-- Settling and renewing leases.
--
-- Leases come in chunks: those of one group, partition, claim ("first", 0 for one with a row of its
-- own) and token are a set of sequences. Each function takes chunks as parallel arrays and serves
-- them in the given order, which the adapter keeps the same for everybody, so that two batches never
-- wait for each other.
--
-- A delivery only ever moves from claims to deliveries to dead_letters, and no row is removed to be
-- inserted again. So who waits for a row and then finds it changed looks into the next table, and
-- finds there whatever was moved meanwhile.

-- Takes sequences out of a claim, if all of them are open in it. A claim with nothing left goes,
-- unless it is the one that says how far the group has claimed.
CREATE FUNCTION {schema}.take_out(
    p_group_id bigint, p_partition integer, p_first bigint, p_token uuid, p_taken int8multirange
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM {schema}.claims c
    WHERE c.group_id = p_group_id AND c.partition = p_partition AND c.first = p_first
        AND c.token = p_token AND c.open = p_taken
        AND EXISTS (SELECT FROM {schema}.claims higher WHERE higher.group_id = p_group_id
            AND higher.partition = p_partition AND higher.first > p_first);
    IF NOT FOUND THEN
        UPDATE {schema}.claims c SET open = c.open - p_taken
        WHERE c.group_id = p_group_id AND c.partition = p_partition AND c.first = p_first
            AND c.token = p_token AND c.open @> p_taken;
    END IF;
    RETURN FOUND;
END $$;

-- Gives current leases of a claim rows of their own, with the same token and expiry. A claim that has
-- none of them is not locked: a fetch that removes it would wait.
CREATE FUNCTION {schema}.set_apart(
    p_group_id bigint, p_partition integer, p_first bigint, p_token uuid, p_wanted int8multirange
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_open int8multirange;
    v_expires_at bigint;
BEGIN
    SELECT c.open * p_wanted, c.expires_at INTO v_open, v_expires_at FROM {schema}.claims c
    WHERE c.group_id = p_group_id AND c.partition = p_partition AND c.first = p_first
        AND c.token = p_token AND c.open && p_wanted
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM {schema}.take_out(p_group_id, p_partition, p_first, p_token, v_open);
    INSERT INTO {schema}.deliveries (group_id, partition, sequence, attempts, token, due_at)
    SELECT p_group_id, p_partition, s, 1, p_token, v_expires_at FROM {schema}.members(v_open) s;
END $$;

-- The group of a lease, or no row when stream or group do not exist.
CREATE FUNCTION {schema}.group_of(p_stream text, p_group text) RETURNS TABLE (
    group_id bigint, max_attempts integer
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT g.group_id, g.max_attempts
    FROM {schema}.streams s JOIN {schema}.groups g ON g.stream_id = s.stream_id
    WHERE s.name = p_stream AND g.name = p_group;
END $$;

-- Gives the leases that were not current; most often none.
CREATE FUNCTION {schema}.ack(
    p_streams text[], p_groups text[], p_partitions integer[], p_firsts bigint[], p_tokens uuid[],
    p_wanted text[]
) RETURNS TABLE (chunk integer, sequence bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_group_id bigint;
    v_wanted int8multirange;
    v_range int8range;
    v_acked int8multirange;
BEGIN
    PERFORM {schema}.check_session();
    FOR i IN 1 .. cardinality(p_streams) LOOP
        IF i = 1 OR (p_streams[i], p_groups[i]) <> (p_streams[i - 1], p_groups[i - 1]) THEN
            SELECT g.group_id INTO v_group_id
            FROM {schema}.streams s JOIN {schema}.groups g ON g.stream_id = s.stream_id
            WHERE s.name = p_streams[i] AND g.name = p_groups[i];
        END IF;
        v_wanted := p_wanted[i]::int8multirange;
        CONTINUE WHEN p_firsts[i] > 0 AND {schema}.take_out(
            v_group_id, p_partitions[i], p_firsts[i], p_tokens[i], v_wanted);
        PERFORM {schema}.set_apart(
            v_group_id, p_partitions[i], p_firsts[i], p_tokens[i], v_wanted);
        FOR v_range IN SELECT r FROM unnest(v_wanted) r LOOP
            WITH acked AS (
                DELETE FROM {schema}.deliveries d
                WHERE d.group_id = v_group_id AND d.partition = p_partitions[i]
                    AND d.sequence >= lower(v_range) AND d.sequence < upper(v_range)
                    AND d.token = p_tokens[i]
                RETURNING d.sequence
            )
            SELECT coalesce(range_agg(int8range(acked.sequence, acked.sequence, '[]')), '{}')
            INTO v_acked FROM acked;
            RETURN QUERY SELECT i, s
            FROM {schema}.members(int8multirange(v_range) - v_acked) s;
        END LOOP;
    END LOOP;
END $$;

-- Gives the leases that were current, and whether they are dead letters now.
CREATE FUNCTION {schema}.retry(
    p_streams text[], p_groups text[], p_partitions integer[], p_firsts bigint[], p_tokens uuid[],
    p_wanted text[], p_due_at bigint, p_reason text, p_now bigint
) RETURNS TABLE (chunk integer, sequence bigint, is_dead boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_group record;
    v_wanted int8multirange;
    v_range int8range;
BEGIN
    PERFORM {schema}.check_session();
    FOR i IN 1 .. cardinality(p_streams) LOOP
        SELECT * INTO v_group FROM {schema}.group_of(p_streams[i], p_groups[i]);
        v_wanted := p_wanted[i]::int8multirange;
        PERFORM {schema}.set_apart(
            v_group.group_id, p_partitions[i], p_firsts[i], p_tokens[i], v_wanted);
        FOR v_range IN SELECT r FROM unnest(v_wanted) r LOOP
            RETURN QUERY WITH dead AS (
                DELETE FROM {schema}.deliveries d
                WHERE d.group_id = v_group.group_id AND d.partition = p_partitions[i]
                    AND d.sequence >= lower(v_range) AND d.sequence < upper(v_range)
                    AND d.token = p_tokens[i] AND d.attempts >= v_group.max_attempts
                RETURNING d.sequence, d.attempts
            )
            INSERT INTO {schema}.dead_letters AS l
                (group_id, partition, sequence, attempt, reason, dead_at)
            SELECT v_group.group_id, p_partitions[i], dead.sequence, dead.attempts, p_reason,
                p_now
            FROM dead
            RETURNING i, l.sequence, true;
            RETURN QUERY UPDATE {schema}.deliveries d SET token = NULL, due_at = p_due_at
            WHERE d.group_id = v_group.group_id AND d.partition = p_partitions[i]
                AND d.sequence >= lower(v_range) AND d.sequence < upper(v_range)
                AND d.token = p_tokens[i]
            RETURNING i, d.sequence, false;
        END LOOP;
    END LOOP;
END $$;

-- Gives the leases that were current.
CREATE FUNCTION {schema}.reject(
    p_streams text[], p_groups text[], p_partitions integer[], p_firsts bigint[], p_tokens uuid[],
    p_wanted text[], p_reason text, p_now bigint
) RETURNS TABLE (chunk integer, sequence bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_group record;
    v_wanted int8multirange;
    v_range int8range;
BEGIN
    PERFORM {schema}.check_session();
    FOR i IN 1 .. cardinality(p_streams) LOOP
        SELECT * INTO v_group FROM {schema}.group_of(p_streams[i], p_groups[i]);
        v_wanted := p_wanted[i]::int8multirange;
        PERFORM {schema}.set_apart(
            v_group.group_id, p_partitions[i], p_firsts[i], p_tokens[i], v_wanted);
        FOR v_range IN SELECT r FROM unnest(v_wanted) r LOOP
            RETURN QUERY WITH dead AS (
                DELETE FROM {schema}.deliveries d
                WHERE d.group_id = v_group.group_id AND d.partition = p_partitions[i]
                    AND d.sequence >= lower(v_range) AND d.sequence < upper(v_range)
                    AND d.token = p_tokens[i]
                RETURNING d.sequence, d.attempts
            )
            INSERT INTO {schema}.dead_letters AS l
                (group_id, partition, sequence, attempt, reason, dead_at)
            SELECT v_group.group_id, p_partitions[i], dead.sequence, dead.attempts, p_reason,
                p_now
            FROM dead
            RETURNING i, l.sequence;
        END LOOP;
    END LOOP;
END $$;

-- Gives the leases that were current. A claim whose open leases are all renewed stays one; what is
-- renewed apart from the others gets a row of its own.
CREATE FUNCTION {schema}.renew(
    p_streams text[], p_groups text[], p_partitions integer[], p_firsts bigint[], p_tokens uuid[],
    p_wanted text[], p_expires_at bigint
) RETURNS TABLE (chunk integer, sequence bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_group record;
    v_wanted int8multirange;
    v_range int8range;
    v_renewed int8multirange;
BEGIN
    PERFORM {schema}.check_session();
    FOR i IN 1 .. cardinality(p_streams) LOOP
        SELECT * INTO v_group FROM {schema}.group_of(p_streams[i], p_groups[i]);
        v_wanted := p_wanted[i]::int8multirange;
        UPDATE {schema}.claims c SET expires_at = p_expires_at
        WHERE c.group_id = v_group.group_id AND c.partition = p_partitions[i]
            AND c.first = p_firsts[i] AND c.token = p_tokens[i]
            AND c.open <@ v_wanted AND NOT isempty(c.open)
        RETURNING c.open INTO v_renewed;
        IF FOUND THEN
            RETURN QUERY SELECT i, s FROM {schema}.members(v_renewed) s;
            v_wanted := v_wanted - v_renewed;
        ELSE
            PERFORM {schema}.set_apart(
                v_group.group_id, p_partitions[i], p_firsts[i], p_tokens[i], v_wanted);
        END IF;
        FOR v_range IN SELECT r FROM unnest(v_wanted) r LOOP
            RETURN QUERY UPDATE {schema}.deliveries d SET due_at = p_expires_at
            WHERE d.group_id = v_group.group_id AND d.partition = p_partitions[i]
                AND d.sequence >= lower(v_range) AND d.sequence < upper(v_range)
                AND d.token = p_tokens[i]
            RETURNING i, d.sequence;
        END LOOP;
    END LOOP;
END $$;

-- Whether a lease is current; changes nothing.
CREATE FUNCTION {schema}.is_current(
    p_stream text, p_group text, p_partition integer, p_first bigint, p_token uuid,
    p_sequence bigint
) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_group_id bigint := (SELECT g.group_id FROM {schema}.group_of(p_stream, p_group) g);
BEGIN
    RETURN EXISTS (SELECT FROM {schema}.claims c
            WHERE c.group_id = v_group_id AND c.partition = p_partition AND c.first = p_first
                AND c.token = p_token AND c.open @> p_sequence)
        OR EXISTS (SELECT FROM {schema}.deliveries d
            WHERE d.group_id = v_group_id AND d.partition = p_partition
                AND d.sequence = p_sequence AND d.token = p_token);
END $$;
