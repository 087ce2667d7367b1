-- The place of a resumed turn among the turns of its thread: an id of the moment in which it left the queue. Null: its own id.
ALTER TABLE runs ADD COLUMN turn_order uuid;
