-- What a service token, or another secret of one, came from: who made it, and with which secret if that was a service
-- token. When a member's rights end, what they caused ends with them. Null in rows of before.
ALTER TABLE service_tokens ADD COLUMN created_with bytea;
ALTER TABLE service_token_secrets
    ADD COLUMN created_by text,
    ADD COLUMN created_with bytea;
