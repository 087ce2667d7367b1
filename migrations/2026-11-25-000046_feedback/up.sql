-- The turns that feedback is about, copied when the feedback is stored: it outlives runs and items.
CREATE TABLE feedback_turns (
    thread_id uuid NOT NULL,
    run_id uuid NOT NULL,
    version_id uuid NOT NULL,
    inputs text NOT NULL,
    messages text NOT NULL,
    output text,
    output_text text NOT NULL,
    PRIMARY KEY (thread_id, run_id)
);

ALTER TABLE item_feedback ADD COLUMN id uuid;
ALTER TABLE item_feedback ADD COLUMN workflow_id uuid;
ALTER TABLE item_feedback ADD COLUMN run_id uuid;
ALTER TABLE item_feedback ADD COLUMN comment text;
-- What the item's id begins with.
ALTER TABLE item_feedback ADD COLUMN prefix text NOT NULL DEFAULT 'msg';
-- UUIDv7: their order is that of time.
UPDATE item_feedback f SET workflow_id = t.workflow_id,
    id = (lpad(to_hex(floor(extract(epoch FROM f.created_at) * 1000)::bigint), 12, '0') || '7'
        || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid
    FROM threads t WHERE t.id = f.thread_id;
DELETE FROM item_feedback WHERE id IS NULL;
ALTER TABLE item_feedback ALTER COLUMN id SET NOT NULL;
ALTER TABLE item_feedback ALTER COLUMN workflow_id SET NOT NULL;
CREATE UNIQUE INDEX item_feedback_of_workflow ON item_feedback (workflow_id, id);
