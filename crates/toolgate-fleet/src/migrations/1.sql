-- Texts of scripts, servers and models are bytes: PostgreSQL has no text with a NUL.

-- The processes of the fleet. A node whose lease is over counts as dead.
CREATE TABLE node (
    id text PRIMARY KEY,
    version text NOT NULL,
    url text NOT NULL,
    started timestamptz NOT NULL DEFAULT now(),
    lease_until timestamptz NOT NULL
);

-- Increased by every change of a topic, so that nodes know when to read again.
CREATE TABLE version (topic text PRIMARY KEY, number bigint NOT NULL);

CREATE TABLE run (
    id text COLLATE "C" PRIMARY KEY,
    created bigint NOT NULL,
    ended bigint,
    state text NOT NULL,
    language text NOT NULL,
    code bytea NOT NULL,
    first_code bytea,
    session text NOT NULL,
    began bigint NOT NULL,
    seed bigint NOT NULL,
    output bytea NOT NULL DEFAULT '',
    error bytea,
    process bigint NOT NULL,
    owner text NOT NULL,
    epoch bigint NOT NULL DEFAULT 1,
    before bytea NOT NULL,
    namespace text NOT NULL,
    graph bytea
);
CREATE INDEX run_created ON run (created DESC, id);

CREATE TABLE run_call (
    run text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    name text NOT NULL,
    arguments bytea NOT NULL,
    made bigint NOT NULL,
    verdict text,
    rule text,
    sent boolean NOT NULL,
    marked boolean NOT NULL,
    ended bigint,
    failed boolean NOT NULL DEFAULT false,
    unknown boolean NOT NULL DEFAULT false,
    tool text,
    result bytea,
    flow bytea,
    origin bytea,
    PRIMARY KEY (run, number)
);

CREATE TABLE run_event (
    run text COLLATE "C" NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    call bigint,
    at bigint NOT NULL,
    PRIMARY KEY (run, position)
);

CREATE TABLE run_media (
    run text COLLATE "C" NOT NULL,
    handle text NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (run, handle)
);

CREATE TABLE approval (
    id text PRIMARY KEY,
    created bigint NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    run text COLLATE "C",
    call bigint,
    question bytea NOT NULL,
    state text NOT NULL,
    answer bytea,
    answered bigint
);
CREATE INDEX approval_subject ON approval (subject);
CREATE INDEX approval_open ON approval (created, id) WHERE state = 'open';

CREATE TABLE access_grant (
    id text PRIMARY KEY,
    created bigint NOT NULL,
    expires bigint,
    content bytea NOT NULL
);

CREATE TABLE task (
    id text PRIMARY KEY,
    owner text NOT NULL,
    expires bigint NOT NULL,
    node text NOT NULL,
    state bytea NOT NULL
);
CREATE INDEX task_expires ON task (expires);

-- One chain for the whole fleet. `hash` covers the hash before, the number and the line.
CREATE TABLE audit (number bigint PRIMARY KEY, hash bytea NOT NULL, line bytea NOT NULL);
CREATE TABLE audit_head (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    number bigint NOT NULL,
    hash bytea NOT NULL,
    missing bigint NOT NULL DEFAULT 0
);
INSERT INTO audit_head (number, hash) VALUES (0, '');

-- In the database, so that the chain is locked for no round trip. The transaction does not wait for the disk while the
-- chain is locked: the node sends a second one that does, and that waits together with those of other nodes.
CREATE FUNCTION append_audit(lines bytea[], absent bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    head audit_head;
    content bytea;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO STRICT head FROM audit_head FOR UPDATE;
    FOREACH content IN ARRAY lines LOOP
        head.number := head.number + 1;
        head.hash := sha256(head.hash || int8send(head.number) || content);
        INSERT INTO audit (number, hash, line) VALUES (head.number, head.hash, content);
    END LOOP;
    UPDATE audit_head SET number = head.number, hash = head.hash, missing = missing + absent;
    RETURN head.number;
END $$;

CREATE TABLE access_token (
    name text PRIMARY KEY,
    hash text NOT NULL,
    created bigint NOT NULL,
    expires bigint,
    namespaces text NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    last_use bigint
);

-- Small texts that are read often and changed seldom: choices and consents, learned types.
CREATE TABLE document (name text PRIMARY KEY, content bytea NOT NULL);

CREATE TABLE past_use (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    content bytea NOT NULL
);

CREATE TABLE quota (
    day bigint NOT NULL,
    "limit" text NOT NULL,
    caller text NOT NULL,
    used bigint NOT NULL DEFAULT 0,
    refused_until bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (day, "limit", caller)
);

CREATE TABLE timed_value (
    kind text NOT NULL,
    key text NOT NULL,
    owner text NOT NULL,
    content bytea NOT NULL,
    expires bigint NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE INDEX timed_value_expires ON timed_value (expires);

CREATE TABLE message (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sent timestamptz NOT NULL DEFAULT now(),
    topic text NOT NULL,
    key text NOT NULL,
    content bytea NOT NULL
);
