-- Contract of migration 35: a version may have the content of an older one, because saving earlier content again is a revert.
-- Only the latest version is compared with what is saved. The index is still used to find the version of a graph in a request.
CREATE INDEX workflow_versions_content ON workflow_versions (workflow_id, identity) WHERE NOT draft;
DROP INDEX workflow_versions_identity;
