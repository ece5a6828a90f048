-- The bytes of each run when it ended last. Runs of the versions before have none, and do not count.
ALTER TABLE run ADD COLUMN bytes bigint NOT NULL DEFAULT 0;

-- The bytes of all runs are the sum of this. Each node adds to its own row, so that no node waits for another. What is
-- removed is subtracted from the row without a node, whichever version removes it.
CREATE TABLE run_bytes (node text PRIMARY KEY, bytes bigint NOT NULL);

CREATE FUNCTION subtract_run_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO run_bytes (node, bytes) SELECT '', -sum(gone.bytes)::bigint FROM gone HAVING sum(gone.bytes) > 0
        ON CONFLICT (node) DO UPDATE SET bytes = run_bytes.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER run_removed AFTER DELETE ON run REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION subtract_run_bytes();

-- The questions about calls of a run.
CREATE INDEX approval_run ON approval (run) WHERE run IS NOT NULL;
