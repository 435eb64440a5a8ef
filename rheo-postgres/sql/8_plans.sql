-- How the statements in the functions are planned: by index, in the order of the index.
--
-- The planner takes tables without statistics for small ones, and reads them, or sorts what it reads,
-- where the first row of an index is wanted. Nothing here is ever served better by that. The settings
-- hold for all that the functions call.
--
-- What runs all the time is planned once in a session: else the planner thinks that it does better
-- with the values of each call, and planning costs more than a small statement itself.

DECLARE
    v_function text;
BEGIN
    FOREACH v_function IN ARRAY ARRAY['append', 'read', 'fetch', 'ack', 'retry', 'reject', 'renew',
        'is_current', 'lag', 'replay', 'replay_events', 'reset_group', 'create_group',
        'dead_letters', 'group_info', 'may_have_work', 'list_groups']
    LOOP
        EXECUTE format('ALTER FUNCTION {schema}.%I SET enable_seqscan = off '
            'SET enable_bitmapscan = off SET jit = off', v_function);
    END LOOP;
    FOREACH v_function IN ARRAY ARRAY['append', 'read', 'fetch', 'ack', 'retry', 'reject', 'renew']
    LOOP
        EXECUTE format('ALTER FUNCTION {schema}.%I SET plan_cache_mode = force_generic_plan',
            v_function);
    END LOOP;
END;
