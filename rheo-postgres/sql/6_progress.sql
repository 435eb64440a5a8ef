-- A group's progress, and going back.

-- Frontier and high watermark of every partition.
CREATE FUNCTION {schema}.lag(p_stream text, p_group text) RETURNS TABLE (
    partition integer, frontier bigint, high_watermark bigint
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_group record := {schema}.find_group(p_stream, p_group);
    v_at record;
    v_lowest bigint;
BEGIN
    FOR v_partition IN 0 .. v_group.partition_count - 1 LOOP
        v_at := {schema}.standing(v_group.stream_id, v_group.group_id, v_partition, 0);
        SELECT least(
            (SELECT lower(c.open) FROM {schema}.claims c
                WHERE c.group_id = v_group.group_id AND c.partition = v_partition
                    AND c.first = v_at.low),
            (SELECT d.sequence FROM {schema}.deliveries d
                WHERE d.group_id = v_group.group_id AND d.partition = v_partition
                ORDER BY d.sequence LIMIT 1))
        INTO v_lowest;
        partition := v_partition;
        frontier := coalesce(v_lowest - 1, v_at.last);
        high_watermark := v_at.high;
        RETURN NEXT;
    END LOOP;
END $$;

-- Everything that was delivered above a sequence is as if it had never been claimed. Never moves
-- forward.
CREATE FUNCTION {schema}.replay_after(p_group_id bigint, p_partition integer, p_after bigint)
RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_top record;
    v_token uuid;
BEGIN
    PERFORM {schema}.lock_group(p_group_id, p_partition);
    SELECT c.last, c.floor INTO v_top FROM {schema}.claims c
    WHERE c.group_id = p_group_id AND c.partition = p_partition ORDER BY c.first DESC LIMIT 1;
    IF NOT FOUND OR v_top.last <= p_after THEN
        RETURN;
    END IF;
    -- Claims first: what a settle on its way takes out of a claim, it puts into the others.
    DELETE FROM {schema}.claims c
    WHERE c.group_id = p_group_id AND c.partition = p_partition AND c.first > p_after;
    UPDATE {schema}.claims c
    SET last = p_after, open = c.open * int8multirange(int8range(NULL, p_after, '[]'))
    WHERE c.group_id = p_group_id AND c.partition = p_partition AND c.last > p_after;
    DELETE FROM {schema}.deliveries d
    WHERE d.group_id = p_group_id AND d.partition = p_partition AND d.sequence > p_after;
    DELETE FROM {schema}.dead_letters d
    WHERE d.group_id = p_group_id AND d.partition = p_partition AND d.sequence > p_after;
    -- The cursor gets a row that no settle removes: one that is on its way may still see a higher
    -- claim and take its own for one that is not needed.
    IF p_after > 0 THEN
        SELECT c.token INTO v_token FROM {schema}.claims c
        WHERE c.group_id = p_group_id AND c.partition = p_partition AND c.first = p_after
        FOR UPDATE;
        PERFORM {schema}.set_apart(p_group_id, p_partition, p_after, v_token,
            int8multirange(int8range(p_after, p_after, '[]')));
        PERFORM {schema}.mark_cursor(
            p_group_id, p_partition, p_after, least(v_top.floor, p_after));
    END IF;
END $$;

-- Replays in p_partitions (NULL: in all) after p_after, or after the sequence in p_each.
CREATE FUNCTION {schema}.replay(
    p_stream text, p_group text, p_partitions bigint[], p_after bigint, p_each jsonb
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_group record := {schema}.find_group(p_stream, p_group);
BEGIN
    PERFORM {schema}.check_session();
    PERFORM {schema}.check_partitions('partitions', p_partitions, v_group.partition_count);
    FOR v_partition IN 0 .. v_group.partition_count - 1 LOOP
        IF p_partitions IS NULL OR v_partition = ANY (p_partitions) THEN
            PERFORM {schema}.replay_after(v_group.group_id, v_partition,
                coalesce((p_each ->> v_partition::text)::bigint, p_after));
        END IF;
    END LOOP;
END $$;

-- Replays just these events, except those that were never claimed.
CREATE FUNCTION {schema}.replay_events(p_stream text, p_group text, p_ids uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_group record := {schema}.find_group(p_stream, p_group);
    v_missing uuid;
    v_place record;
    v_last bigint;
BEGIN
    PERFORM {schema}.check_session();
    SELECT wanted.id INTO v_missing FROM unnest(p_ids) AS wanted (id)
    WHERE NOT EXISTS (SELECT FROM {schema}.events e
        WHERE e.stream_id = v_group.stream_id AND e.event_id = wanted.id)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'no such event' USING ERRCODE = 'RH008', DETAIL = v_missing::text;
    END IF;
    FOR v_place IN
        SELECT e.partition, array_agg(e.sequence ORDER BY e.sequence) AS sequences,
            range_agg(int8range(e.sequence, e.sequence, '[]')) AS set
        FROM {schema}.events e
        WHERE e.stream_id = v_group.stream_id AND e.event_id = ANY (p_ids)
        GROUP BY e.partition ORDER BY e.partition
    LOOP
        PERFORM {schema}.lock_group(v_group.group_id, v_place.partition);
        v_last := coalesce((SELECT c.last FROM {schema}.claims c
            WHERE c.group_id = v_group.group_id AND c.partition = v_place.partition
            ORDER BY c.first DESC LIMIT 1), 0);
        -- Claims first: what a settle on its way takes out of a claim, it puts into the others.
        UPDATE {schema}.claims c SET open = c.open - v_place.set
        WHERE c.group_id = v_group.group_id AND c.partition = v_place.partition
            AND c.open && v_place.set;
        DELETE FROM {schema}.deliveries d
        WHERE d.group_id = v_group.group_id AND d.partition = v_place.partition
            AND d.sequence = ANY (v_place.sequences);
        DELETE FROM {schema}.dead_letters d
        WHERE d.group_id = v_group.group_id AND d.partition = v_place.partition
            AND d.sequence = ANY (v_place.sequences);
        -- Due whatever the time is, also when a clock goes back.
        INSERT INTO {schema}.deliveries (group_id, partition, sequence, attempts, token, due_at)
        SELECT v_group.group_id, v_place.partition, s, 0, NULL, -9223372036854775808
        FROM unnest(v_place.sequences) s WHERE s <= v_last;
    END LOOP;
END $$;

-- Forgets everything in the selected partitions and starts again.
CREATE FUNCTION {schema}.reset_group(
    p_stream text, p_group text, p_partitions bigint[], p_start text, p_value bigint, p_each jsonb
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_group record := {schema}.find_group(p_stream, p_group);
BEGIN
    PERFORM {schema}.check_session();
    PERFORM {schema}.check_partitions('partitions', p_partitions, v_group.partition_count);
    PERFORM {schema}.check_partitions('start', array_agg(k::bigint), v_group.partition_count)
    FROM jsonb_object_keys(p_each) k;
    PERFORM {schema}.check_partitions('start', array_agg(k::bigint), 0)
    FROM jsonb_object_keys(p_each) k WHERE k::bigint <> ALL (p_partitions);
    FOR v_partition IN 0 .. v_group.partition_count - 1 LOOP
        IF p_partitions IS NULL OR v_partition = ANY (p_partitions) THEN
            PERFORM {schema}.lock_group(v_group.group_id, v_partition);
            PERFORM {schema}.start_after(v_group.group_id, v_partition, {schema}.resolve_start(
                v_group.stream_id, v_partition, p_start, p_value, p_each));
        END IF;
    END LOOP;
END $$;
