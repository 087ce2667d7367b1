DROP INDEX threads_by_owner;
