ALTER TABLE threads DROP COLUMN requires_cookie;
