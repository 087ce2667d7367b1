-- The run that created an item, and the name by which graphs replace or remove it later. Null: a user's message, or an
-- item of a build that did not store them.
ALTER TABLE thread_items ADD COLUMN run_id uuid;
ALTER TABLE thread_items ADD COLUMN key text;
-- The run of a later turn that changed the item last, and what the item contained before: the change of an attempt that
-- fails is taken back, also after a crash.
ALTER TABLE thread_items ADD COLUMN changed_by uuid;
ALTER TABLE thread_items ADD COLUMN before text;
CREATE INDEX thread_items_by_key ON thread_items (thread_id, key, id) WHERE key IS NOT NULL;
