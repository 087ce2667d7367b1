DROP FUNCTION admit_app_run;
DROP INDEX runs_of_apps_unfinished_by_workflow;
