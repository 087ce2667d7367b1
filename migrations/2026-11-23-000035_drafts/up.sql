-- Draft versions: graphs that came with a request. They have no number, are never the latest version, and are deleted when
-- no run needs them. Numbered versions never change, as before.
ALTER TABLE workflow_versions
    ADD COLUMN draft boolean NOT NULL DEFAULT false,
    ALTER COLUMN number DROP NOT NULL,
    ADD CONSTRAINT workflow_versions_numbered CHECK (draft = (number IS NULL)) NOT VALID,
    DROP CONSTRAINT workflow_versions_workflow_id_identity_key;
CREATE UNIQUE INDEX workflow_versions_identity ON workflow_versions (workflow_id, identity) WHERE NOT draft;
CREATE INDEX workflow_versions_drafts ON workflow_versions (workflow_id, identity) WHERE draft;
DROP TRIGGER workflow_versions_append_only ON workflow_versions;
CREATE TRIGGER workflow_versions_append_only BEFORE UPDATE ON workflow_versions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER workflow_versions_kept BEFORE DELETE ON workflow_versions
    FOR EACH ROW WHEN (NOT OLD.draft) EXECUTE FUNCTION refuse_change();

-- The version that chats, triggers and sub-workflows run; null: the latest.
ALTER TABLE workflows ADD COLUMN live_version int;
