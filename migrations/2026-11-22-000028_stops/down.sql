DROP TABLE run_stops;
ALTER TABLE runs DROP COLUMN parked;
