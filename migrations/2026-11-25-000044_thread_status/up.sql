-- Why a thread is locked or closed, for people; and the hosts that images of widgets may come from, a JSON array. Null: none.
ALTER TABLE threads ADD COLUMN status_reason text;
ALTER TABLE threads ADD COLUMN image_domains text;
