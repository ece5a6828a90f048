-- The beginning of what is kept of the audit log: the number of its first line, and the hash before it.
ALTER TABLE audit_head ADD COLUMN first bigint NOT NULL DEFAULT 1;
ALTER TABLE audit_head ADD COLUMN before_first bytea NOT NULL DEFAULT '';
ALTER TABLE audit_head ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
UPDATE audit_head SET bytes = (SELECT coalesce(sum(length(line)), 0) FROM audit);

CREATE OR REPLACE FUNCTION append_audit(lines bytea[], absent bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    head audit_head;
    content bytea;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO STRICT head FROM audit_head FOR UPDATE;
    FOREACH content IN ARRAY lines LOOP
        head.number := head.number + 1;
        head.hash := sha256(head.hash || int8send(head.number) || content);
        head.bytes := head.bytes + length(content);
        INSERT INTO audit (number, hash, line) VALUES (head.number, head.hash, content);
    END LOOP;
    UPDATE audit_head
        SET number = head.number, hash = head.hash, bytes = head.bytes, missing = missing + absent;
    RETURN head.number;
END $$;

-- Removes the oldest lines of a log with more than `most` bytes, until it has a tenth less, and at most `together`. The
-- last line stays. Returns how many it has removed.
CREATE FUNCTION prune_audit(most bigint, together bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    head audit_head;
    oldest record;
    removed bigint := 0;
BEGIN
    SELECT * INTO STRICT head FROM audit_head FOR UPDATE;
    IF head.bytes <= most THEN
        RETURN 0;
    END IF;
    FOR oldest IN SELECT number, hash, length(line) AS size FROM audit ORDER BY number LIMIT together LOOP
        EXIT WHEN head.bytes <= most - most / 10 OR oldest.number >= head.number;
        head.bytes := head.bytes - oldest.size;
        head.first := oldest.number + 1;
        head.before_first := oldest.hash;
        removed := removed + 1;
    END LOOP;
    DELETE FROM audit WHERE number < head.first;
    UPDATE audit_head SET bytes = head.bytes, first = head.first, before_first = head.before_first;
    RETURN removed;
END $$;
