DROP TABLE workflow_versions;
DROP TABLE workflows;
DROP TABLE workspaces;
