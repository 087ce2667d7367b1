-- Older code does not know of cuts and would show what they took out.
DELETE FROM thread_items USING thread_cuts
    WHERE thread_items.thread_id = thread_cuts.thread_id
    AND thread_items.id > thread_cuts.behind AND thread_items.id < thread_cuts.id
    AND (thread_items.id < thread_cuts.messages_from
        OR thread_items.content NOT LIKE '{"type":"user\_message"%');
DROP TABLE thread_cuts;
