-- Of versions with the same content only the newest keeps the identity: the version before finds that one.
ALTER TABLE workflow_versions DISABLE TRIGGER workflow_versions_append_only;
UPDATE workflow_versions v SET identity = sha256(v.identity || convert_to(v.id::text, 'UTF8'))
WHERE NOT v.draft AND EXISTS (
    SELECT FROM workflow_versions n
    WHERE n.workflow_id = v.workflow_id AND n.identity = v.identity AND NOT n.draft AND n.number > v.number);
ALTER TABLE workflow_versions ENABLE TRIGGER workflow_versions_append_only;
CREATE UNIQUE INDEX workflow_versions_identity ON workflow_versions (workflow_id, identity) WHERE NOT draft;
DROP INDEX workflow_versions_content;
