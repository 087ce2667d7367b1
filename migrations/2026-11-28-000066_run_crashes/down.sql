DROP TABLE run_crashes;
