ALTER TABLE workflows DROP COLUMN live_version;
DROP TRIGGER workflow_versions_kept ON workflow_versions;
DROP TRIGGER workflow_versions_append_only ON workflow_versions;
DELETE FROM workflow_versions WHERE draft;
DROP INDEX workflow_versions_drafts;
DROP INDEX workflow_versions_identity;
ALTER TABLE workflow_versions
    ADD CONSTRAINT workflow_versions_workflow_id_identity_key UNIQUE (workflow_id, identity),
    DROP CONSTRAINT workflow_versions_numbered,
    ALTER COLUMN number SET NOT NULL,
    DROP COLUMN draft;
CREATE TRIGGER workflow_versions_append_only BEFORE UPDATE OR DELETE ON workflow_versions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
