-- The node that runs a server that runs once. It has the server as long as the node lives.
CREATE TABLE server_lease (
    scope text PRIMARY KEY,
    server text NOT NULL,
    node text NOT NULL,
    url text NOT NULL,
    epoch bigint NOT NULL
);

-- The definitions of servers that a node has listed: by the server, and the contents by their fingerprints.
CREATE TABLE definition_entry (
    key text PRIMARY KEY,
    server text NOT NULL,
    memory bytea NOT NULL,
    fingerprint text NOT NULL
);
CREATE INDEX definition_entry_fingerprint ON definition_entry (fingerprint);
CREATE TABLE definition_content (fingerprint text PRIMARY KEY, content bytea NOT NULL);

-- The oldest runs, for their removal by age.
CREATE INDEX run_oldest ON run (created);

-- Removes the lines that are older than `oldest`, in milliseconds since 1970, and at most `together`. The last line
-- stays. Each line begins with its time. Returns how many it has removed.
CREATE FUNCTION prune_audit_before(oldest bigint, together bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    head audit_head;
    old record;
    removed bigint := 0;
BEGIN
    SELECT * INTO STRICT head FROM audit_head FOR UPDATE;
    FOR old IN SELECT number, hash, length(line) AS size,
        substring(encode(substring(line FROM 1 FOR 40), 'escape') FROM '"time":([0-9]{1,18})')::bigint AS time
        FROM audit ORDER BY number LIMIT together LOOP
        EXIT WHEN old.time IS NULL OR old.time >= oldest OR old.number >= head.number;
        head.bytes := head.bytes - old.size;
        head.first := old.number + 1;
        head.before_first := old.hash;
        removed := removed + 1;
    END LOOP;
    DELETE FROM audit WHERE number < head.first;
    UPDATE audit_head SET bytes = head.bytes, first = head.first, before_first = head.before_first;
    RETURN removed;
END $$;
