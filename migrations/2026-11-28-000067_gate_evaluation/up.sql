-- JSON: the object `evaluation` of the gate's evaluations, with the ids and versions of the dataset and of workflows that judge, as
-- they were when the gate was set. Null: there is no gate, or an earlier release has set it.
ALTER TABLE rollouts ADD COLUMN gate_evaluation text;
