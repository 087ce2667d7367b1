ALTER TABLE runs DROP COLUMN turn_order;
