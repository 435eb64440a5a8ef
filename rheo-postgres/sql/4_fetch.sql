-- Claiming events for a consumer.

-- How a group stands in a partition: what is above "last" was never claimed, and "low" is the
-- lowest claim with something open. It takes one snapshot, so that all of it fits together.
CREATE FUNCTION {schema}.standing(
    p_stream_id bigint, p_group_id bigint, p_partition integer, p_now bigint,
    OUT high bigint, OUT last bigint, OUT top bigint, OUT floor bigint, OUT low bigint,
    OUT is_expired boolean, OUT is_due boolean
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    SELECT c.last, c.first, c.floor INTO standing.last, standing.top, standing.floor
    FROM {schema}.claims c WHERE c.group_id = p_group_id AND c.partition = p_partition
    ORDER BY c.first DESC LIMIT 1;
    standing.last := coalesce(standing.last, 0);
    standing.floor := coalesce(standing.floor, 0);
    SELECT
        coalesce((SELECT e.sequence FROM {schema}.events e
            WHERE e.stream_id = p_stream_id AND e.partition = p_partition
            ORDER BY e.sequence DESC LIMIT 1), 0),
        (SELECT c.first FROM {schema}.claims c
            WHERE c.group_id = p_group_id AND c.partition = p_partition
                AND c.first >= standing.floor AND NOT isempty(c.open)
            ORDER BY c.first LIMIT 1),
        EXISTS (SELECT FROM {schema}.claims c
            WHERE (c.group_id << 10 | c.partition) = (p_group_id << 10 | p_partition)
                AND c.expires_at <= p_now AND NOT isempty(c.open)),
        EXISTS (SELECT FROM {schema}.deliveries d
            WHERE (d.group_id << 10 | d.partition) = (p_group_id << 10 | p_partition)
                AND d.due_at <= p_now)
    INTO standing.high, standing.low, standing.is_expired, standing.is_due;
END $$;

CREATE FUNCTION {schema}.is_claimable(
    p_stream_id bigint, p_group_id bigint, p_partition integer, p_now bigint
) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_at record := {schema}.standing(p_stream_id, p_group_id, p_partition, p_now);
BEGIN
    RETURN v_at.high > v_at.last OR v_at.is_expired OR v_at.is_due;
END $$;

-- Claims the lowest claimable events of a partition, whose lock the caller holds: what left the
-- ordinary way first, since all of that is below what was never claimed.
CREATE FUNCTION {schema}.claim(
    p_stream_id bigint, p_group_id bigint, p_max_attempts integer, p_partition integer,
    p_limit integer, p_token uuid, p_now bigint, p_expires_at bigint
) RETURNS TABLE (
    partition integer, sequence bigint, event_id uuid, event_type text, key text, payload jsonb,
    metadata jsonb, "timestamp" bigint, attempt integer, first bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_at record;
    v_room integer := p_limit;
    v_claimed bigint[] := '{}';
    v_due bigint[];
    v_broken_up bigint;
    v_first bigint;
    v_last bigint;
BEGIN
    v_at := {schema}.standing(p_stream_id, p_group_id, p_partition, p_now);

    IF v_at.is_expired OR v_at.is_due THEN
        -- What is broken up may all be given up on: then there is room for more.
        LOOP
            v_broken_up := {schema}.break_up(
                p_group_id, p_partition, v_at.top, v_room, p_now);
            v_due := {schema}.claim_due(p_group_id, p_partition, p_max_attempts, v_room, p_token,
                p_now, p_expires_at);
            v_claimed := v_claimed || v_due;
            v_room := v_room - cardinality(v_due);
            EXIT WHEN v_room = 0 OR v_broken_up = 0;
        END LOOP;
        RETURN QUERY SELECT e.partition, e.sequence, e.event_id, e.event_type, e.key, e.payload,
            e.metadata, e.timestamp, d.attempts, 0::bigint
        FROM unnest(v_claimed) AS w (sequence)
        CROSS JOIN LATERAL (SELECT * FROM {schema}.deliveries d
            WHERE d.group_id = p_group_id AND d.partition = p_partition
                AND d.sequence = w.sequence LIMIT 1) AS d
        CROSS JOIN LATERAL (SELECT * FROM {schema}.events e
            WHERE e.stream_id = p_stream_id AND e.partition = p_partition
                AND e.sequence = w.sequence LIMIT 1) AS e
        ORDER BY w.sequence;
    END IF;

    v_first := v_at.last + 1;
    v_last := least(v_at.last + v_room, v_at.high);
    IF v_first > v_last THEN
        RETURN;
    END IF;
    v_at.low := coalesce(v_at.low, v_first);
    INSERT INTO {schema}.claims (group_id, partition, first, last, open, token, expires_at, floor)
    VALUES (p_group_id, p_partition, v_first, v_last,
        int8multirange(int8range(v_first, v_last + 1)), p_token, p_expires_at, v_at.low);
    -- Nothing is open there, and the new claim says how far the group has claimed.
    DELETE FROM {schema}.claims c
    WHERE c.group_id = p_group_id AND c.partition = p_partition
        AND c.first >= v_at.floor AND c.first < v_at.low;
    -- Above what is open, only the last one before can have nothing open, and by a race the one below
    -- it: the others went with their last ack. Else a lease that is held for long would keep them all.
    -- It is searched no further down than "low": below are dead rows, as many as an old snapshot keeps.
    IF v_at.low < v_first THEN
        DELETE FROM {schema}.claims c
        WHERE c.group_id = p_group_id AND c.partition = p_partition AND isempty(c.open)
            AND c.first < v_first
            AND c.first >= coalesce((SELECT below.first FROM {schema}.claims below
                WHERE below.group_id = p_group_id AND below.partition = p_partition
                    AND below.first < v_at.top AND below.first >= v_at.low
                ORDER BY below.first DESC LIMIT 1), v_at.top);
    END IF;
    RETURN QUERY SELECT e.partition, e.sequence, e.event_id, e.event_type, e.key, e.payload,
        e.metadata, e.timestamp, 1, v_first
    FROM {schema}.events e
    WHERE e.stream_id = p_stream_id AND e.partition = p_partition
        AND e.sequence BETWEEN v_first AND v_last
    ORDER BY e.sequence;
END $$;

-- Makes rows of their own of what is open in expired claims, the lowest first, until there are
-- enough; gives how many. The leases stay current: they keep token and expiry. A claim that is being
-- settled at this moment is left alone.
CREATE FUNCTION {schema}.break_up(
    p_group_id bigint, p_partition integer, p_top bigint, p_enough integer, p_now bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    c_many CONSTANT integer := 1000;
    v_expired bigint[];
    v_first bigint;
    v_claim record;
    v_open bigint;
    v_count bigint := 0;
BEGIN
    v_expired := ARRAY(SELECT c.first FROM {schema}.claims c
        WHERE (c.group_id << 10 | c.partition) = (p_group_id << 10 | p_partition)
            AND c.expires_at <= p_now AND NOT isempty(c.open)
        ORDER BY c.expires_at LIMIT c_many);
    IF cardinality(v_expired) = c_many THEN
        -- With that many, the lowest are found sooner in the order of the key.
        v_expired := ARRAY(SELECT c.first FROM {schema}.claims c
            WHERE c.group_id = p_group_id AND c.partition = p_partition
                AND c.expires_at <= p_now AND NOT isempty(c.open)
            ORDER BY c.first LIMIT p_enough);
    END IF;
    FOR v_first IN SELECT f FROM unnest(v_expired) f ORDER BY f LOOP
        SELECT c.open, c.token, c.expires_at INTO v_claim FROM {schema}.claims c
        WHERE c.group_id = p_group_id AND c.partition = p_partition AND c.first = v_first
            AND c.expires_at <= p_now AND NOT isempty(c.open)
        FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        INSERT INTO {schema}.deliveries (group_id, partition, sequence, attempts, token, due_at)
        SELECT p_group_id, p_partition, s, 1, v_claim.token, v_claim.expires_at
        FROM {schema}.members(v_claim.open) s;
        GET DIAGNOSTICS v_open = ROW_COUNT;
        IF v_first = p_top THEN
            UPDATE {schema}.claims SET open = '{}' WHERE group_id = p_group_id
                AND partition = p_partition AND first = v_first;
        ELSE
            DELETE FROM {schema}.claims WHERE group_id = p_group_id
                AND partition = p_partition AND first = v_first;
        END IF;
        v_count := v_count + v_open;
        EXIT WHEN v_count >= p_enough;
    END LOOP;
    RETURN v_count;
END $$;

-- Claims what waits and is due, and what has an expired lease; of the latter, those whose attempts
-- are used up become dead letters instead. Gives the sequences that it claimed, ascending.
CREATE FUNCTION {schema}.claim_due(
    p_group_id bigint, p_partition integer, p_max_attempts integer, p_limit integer, p_token uuid,
    p_now bigint, p_expires_at bigint
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    c_many CONSTANT integer := 1000;
    v_room integer := p_limit;
    v_claimed bigint[] := '{}';
    v_due bigint[];
    v_sequence bigint;
    v_delivery record;
    v_may_be_more boolean;
BEGIN
    LOOP
        v_due := ARRAY(SELECT d.sequence FROM {schema}.deliveries d
            WHERE (d.group_id << 10 | d.partition) = (p_group_id << 10 | p_partition)
                AND d.due_at <= p_now
            ORDER BY d.due_at LIMIT c_many);
        IF cardinality(v_due) = c_many THEN
            -- With that many, the lowest are found sooner in the order of the key.
            v_due := ARRAY(SELECT d.sequence FROM {schema}.deliveries d
                WHERE d.group_id = p_group_id AND d.partition = p_partition AND d.due_at <= p_now
                ORDER BY d.sequence LIMIT v_room);
        END IF;
        v_may_be_more := false;
        FOR v_sequence IN SELECT w FROM unnest(v_due) w ORDER BY w LOOP
            SELECT d.attempts, d.token IS NOT NULL AND d.attempts >= p_max_attempts AS is_used_up
            INTO v_delivery FROM {schema}.deliveries d
            WHERE d.group_id = p_group_id AND d.partition = p_partition
                AND d.sequence = v_sequence AND d.due_at <= p_now
            FOR UPDATE SKIP LOCKED;
            CONTINUE WHEN NOT FOUND;
            IF v_delivery.is_used_up THEN
                v_may_be_more := true;
                DELETE FROM {schema}.deliveries WHERE group_id = p_group_id
                    AND partition = p_partition AND sequence = v_sequence;
                INSERT INTO {schema}.dead_letters
                    (group_id, partition, sequence, attempt, reason, dead_at)
                VALUES (p_group_id, p_partition, v_sequence, v_delivery.attempts,
                    'lease expired at the last attempt', p_now);
            ELSE
                UPDATE {schema}.deliveries
                SET token = p_token, attempts = attempts + 1, due_at = p_expires_at
                WHERE group_id = p_group_id AND partition = p_partition AND sequence = v_sequence;
                v_claimed := v_claimed || v_sequence;
                v_room := v_room - 1;
                EXIT WHEN v_room = 0;
            END IF;
        END LOOP;
        EXIT WHEN v_room = 0 OR NOT v_may_be_more;
    END LOOP;
    RETURN v_claimed;
END $$;

-- Claims at most p_limit events, partition by partition from p_from on. The lease ids are made of
-- the token and of "first": the claim that an event is in, 0 for one with a row of its own.
CREATE FUNCTION {schema}.fetch(
    p_stream text, p_group text, p_partitions bigint[], p_from integer, p_limit integer,
    p_token uuid, p_now bigint, p_expires_at bigint
) RETURNS TABLE (
    partition integer, sequence bigint, event_id uuid, event_type text, key text, payload jsonb,
    metadata jsonb, "timestamp" bigint, attempt integer, first bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_group record := {schema}.find_group(p_stream, p_group);
    v_room integer := p_limit;
    v_partition integer;
    v_busy integer;
    v_holds_lock boolean := false;
    v_claimed integer;
BEGIN
    PERFORM {schema}.check_session();
    PERFORM {schema}.check_partitions('partitions', p_partitions, v_group.partition_count);
    FOR v_step IN 0 .. v_group.partition_count - 1 LOOP
        EXIT WHEN v_room <= 0;
        v_partition := (p_from + v_step) % v_group.partition_count;
        CONTINUE WHEN p_partitions IS NOT NULL AND v_partition <> ALL (p_partitions);
        CONTINUE WHEN NOT {schema}.is_claimable(
            v_group.stream_id, v_group.group_id, v_partition, p_now);
        IF NOT {schema}.try_lock_group(v_group.group_id, v_partition) THEN
            v_busy := coalesce(v_busy, v_partition);
            CONTINUE;
        END IF;
        v_holds_lock := true;
        RETURN QUERY SELECT * FROM {schema}.claim(v_group.stream_id, v_group.group_id,
            v_group.max_attempts, v_partition, v_room, p_token, p_now, p_expires_at);
        GET DIAGNOSTICS v_claimed = ROW_COUNT;
        v_room := v_room - v_claimed;
    END LOOP;
    -- Others fetch wherever there is work: wait for one of them, but only with no lock in hand, so
    -- that no two fetches wait for each other.
    IF v_room = p_limit AND v_busy IS NOT NULL AND NOT v_holds_lock THEN
        PERFORM {schema}.lock_group(v_group.group_id, v_busy);
        RETURN QUERY SELECT * FROM {schema}.claim(v_group.stream_id, v_group.group_id,
            v_group.max_attempts, v_busy, v_room, p_token, p_now, p_expires_at);
    END IF;
END $$;
