ALTER TABLE service_token_secrets
    DROP COLUMN created_with,
    DROP COLUMN created_by;
ALTER TABLE service_tokens DROP COLUMN created_with;
