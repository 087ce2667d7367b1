ALTER TABLE threads DROP COLUMN image_domains;
ALTER TABLE threads DROP COLUMN status_reason;
