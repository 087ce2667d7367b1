DROP TABLE app_limits;
DROP INDEX runs_of_apps_unfinished;
DROP TABLE app_runs;
