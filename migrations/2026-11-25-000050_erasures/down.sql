DROP INDEX attachments_by_owner;
DROP INDEX threads_erased;
DROP INDEX threads_of_workflow;
DROP TABLE erasures;
