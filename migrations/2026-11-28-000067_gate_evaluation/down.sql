ALTER TABLE rollouts DROP COLUMN gate_evaluation;
