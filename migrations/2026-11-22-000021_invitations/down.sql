ALTER TABLE workspace_members DROP COLUMN invited_until;
