-- Appending to the log.

-- Gives, for each partition, the sequence after which its events of this batch were put: they
-- follow in the order of the batch.
CREATE FUNCTION {schema}.append(
    p_stream text, p_now bigint, p_ids uuid[], p_partitions integer[], p_types text[],
    p_keys text[], p_payloads jsonb[], p_metadata jsonb[]
) RETURNS TABLE (partition integer, base bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_stream record := {schema}.find_stream(p_stream);
    v_partition integer := p_partitions[1];
    v_base bigint;
    v_bases bigint[] := '{}';
BEGIN
    PERFORM {schema}.check_session();

    IF v_partition = ALL (p_partitions) THEN
        PERFORM {schema}.lock_log(v_stream.stream_id, v_partition);
        v_base := {schema}.high_watermark(v_stream.stream_id, v_partition);
        INSERT INTO {schema}.events (stream_id, partition, sequence, event_id, event_type, key,
            payload, metadata, timestamp)
        SELECT v_stream.stream_id, v_partition, v_base + e.ordinal, e.id, e.type, e.key, e.payload,
            e.metadata, p_now
        FROM unnest(p_ids, p_types, p_keys, p_payloads, p_metadata)
            WITH ORDINALITY AS e (id, type, key, payload, metadata, ordinal);
        RETURN QUERY SELECT v_partition, v_base;
        RETURN;
    END IF;

    -- All locks before anything else, in one order for everybody.
    PERFORM {schema}.lock_log(v_stream.stream_id, p.partition)
    FROM (SELECT DISTINCT p FROM unnest(p_partitions) p ORDER BY p) AS p (partition);
    FOR v_partition IN SELECT DISTINCT p FROM unnest(p_partitions) p LOOP
        v_base := {schema}.high_watermark(v_stream.stream_id, v_partition);
        v_bases[v_partition] := v_base;
        RETURN QUERY SELECT v_partition, v_base;
    END LOOP;
    INSERT INTO {schema}.events (stream_id, partition, sequence, event_id, event_type, key,
        payload, metadata, timestamp)
    SELECT v_stream.stream_id, e.partition,
        v_bases[e.partition] + row_number() OVER (PARTITION BY e.partition ORDER BY e.ordinal),
        e.id, e.type, e.key, e.payload, e.metadata, p_now
    FROM unnest(p_ids, p_partitions, p_types, p_keys, p_payloads, p_metadata)
        WITH ORDINALITY AS e (id, partition, type, key, payload, metadata, ordinal);
END $$;

-- Reads a partition in order. Sequences have no gaps, so the limit is a bound.
CREATE FUNCTION {schema}.read(p_stream text, p_partition bigint, p_after bigint, p_limit bigint)
RETURNS TABLE (
    partition integer, sequence bigint, event_id uuid, event_type text, key text, payload jsonb,
    metadata jsonb, "timestamp" bigint
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_stream record := {schema}.find_stream(p_stream);
BEGIN
    PERFORM {schema}.check_partitions(
        'partition', ARRAY[p_partition], v_stream.partition_count);
    RETURN QUERY SELECT e.partition, e.sequence, e.event_id, e.event_type, e.key, e.payload,
        e.metadata, e.timestamp
    FROM {schema}.events e
    WHERE e.stream_id = v_stream.stream_id AND e.partition = p_partition
        AND e.sequence > p_after
        AND e.sequence <= p_after + least(p_limit, 9223372036854775807 - p_after)
    ORDER BY e.sequence;
END $$;
