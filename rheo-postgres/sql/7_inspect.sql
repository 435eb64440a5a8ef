-- Looking at a group.

CREATE FUNCTION {schema}.dead_letters(
    p_stream text, p_group text, p_after uuid, p_limit bigint
) RETURNS TABLE (
    partition integer, sequence bigint, event_id uuid, event_type text, key text, payload jsonb,
    metadata jsonb, "timestamp" bigint, attempt integer, reason text, dead_at bigint
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_group record := {schema}.find_group(p_stream, p_group);
    v_partition integer := -1;
    v_sequence bigint := 0;
BEGIN
    IF p_after IS NOT NULL THEN
        SELECT d.partition, d.sequence INTO v_partition, v_sequence
        FROM {schema}.events e JOIN {schema}.dead_letters d
            ON d.group_id = v_group.group_id AND d.partition = e.partition
                AND d.sequence = e.sequence
        WHERE e.stream_id = v_group.stream_id AND e.event_id = p_after;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no such dead letter' USING ERRCODE = 'RH009';
        END IF;
    END IF;
    RETURN QUERY SELECT e.partition, e.sequence, e.event_id, e.event_type, e.key, e.payload,
        e.metadata, e.timestamp, d.attempt, d.reason, d.dead_at
    FROM (
        SELECT * FROM {schema}.dead_letters d
        WHERE d.group_id = v_group.group_id
            AND (d.partition, d.sequence) > (v_partition, v_sequence)
        ORDER BY d.partition, d.sequence LIMIT p_limit
    ) AS d JOIN {schema}.events e
        ON e.stream_id = v_group.stream_id AND e.partition = d.partition
            AND e.sequence = d.sequence
    ORDER BY d.partition, d.sequence;
END $$;

-- How many leases a group has, and how many dead letters.
CREATE FUNCTION {schema}.group_info(
    p_stream text, p_group text, OUT max_attempts integer, OUT leased bigint, OUT dead bigint
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_group record := {schema}.find_group(p_stream, p_group);
BEGIN
    max_attempts := v_group.max_attempts;
    SELECT
        (SELECT coalesce(sum(upper(r) - lower(r)), 0) FROM {schema}.claims c, unnest(c.open) r
            WHERE c.group_id = v_group.group_id)
        + (SELECT count(*) FROM {schema}.deliveries d
            WHERE d.group_id = v_group.group_id AND d.token IS NOT NULL),
        (SELECT count(*) FROM {schema}.dead_letters d WHERE d.group_id = v_group.group_id)
    INTO leased, dead;
END $$;

CREATE FUNCTION {schema}.may_have_work(p_stream text, p_group text, p_now bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_group record := {schema}.find_group(p_stream, p_group);
BEGIN
    FOR v_partition IN 0 .. v_group.partition_count - 1 LOOP
        IF {schema}.is_claimable(v_group.stream_id, v_group.group_id, v_partition, p_now) THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;

CREATE FUNCTION {schema}.list_groups(p_stream text, p_after text, p_limit bigint)
RETURNS TABLE (name text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_stream record := {schema}.find_stream(p_stream);
BEGIN
    RETURN QUERY SELECT g.name::text FROM {schema}.groups g
    WHERE g.stream_id = v_stream.stream_id AND g.name > p_after ORDER BY g.name LIMIT p_limit;
END $$;
