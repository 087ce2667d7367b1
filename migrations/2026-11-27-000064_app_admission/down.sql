DROP FUNCTION admit_app_run;
