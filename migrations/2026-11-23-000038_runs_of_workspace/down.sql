DROP INDEX runs_by_workspace;
