DROP TABLE run_steps;
DROP TABLE runs;
