-- Who did what, or was kept from it. No foreign keys: what a row names may be gone, the row stays.
CREATE TABLE audit_log (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL,
    actor_kind text NOT NULL,
    actor_id text,
    action text NOT NULL,
    target_kind text,
    target_id text,
    workspace_id uuid,
    outcome text NOT NULL CHECK (outcome IN ('success', 'denied')),
    reason text,
    address text,
    request_id text
);
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
