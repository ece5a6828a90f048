-- A lookup in a table without rowid reads the whole rows that it passes. With large rows that made every
-- later call slow.
DROP INDEX runs_created;
ALTER TABLE runs RENAME TO runs_6;
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    ended INTEGER,
    state TEXT NOT NULL,
    language TEXT NOT NULL,
    session TEXT NOT NULL,
    began INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    process INTEGER NOT NULL DEFAULT 0,
    life TEXT NOT NULL DEFAULT '',
    place TEXT NOT NULL DEFAULT '',
    sum INTEGER,
    error TEXT,
    before TEXT NOT NULL DEFAULT '',
    code TEXT NOT NULL,
    first_code TEXT,
    output TEXT NOT NULL DEFAULT ''
);
INSERT INTO runs (id, created, ended, state, language, session, began, seed, process, life, place, sum, error, before,
                  code, first_code, output)
SELECT id, created, ended, state, language, session, began, seed, process, life, place, sum, error, before,
       code, first_code, output FROM runs_6;
DROP TABLE runs_6;
CREATE INDEX runs_created ON runs (created);

ALTER TABLE calls RENAME TO calls_6;
CREATE TABLE calls (
    run TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    made INTEGER NOT NULL,
    verdict TEXT,
    rule TEXT,
    sent INTEGER NOT NULL DEFAULT 0,
    ended INTEGER,
    failed INTEGER NOT NULL DEFAULT 0,
    unknown INTEGER NOT NULL DEFAULT 0,
    marked INTEGER NOT NULL DEFAULT 0,
    sum INTEGER,
    tool TEXT,
    flow TEXT,
    origin TEXT,
    arguments TEXT NOT NULL,
    result TEXT,
    PRIMARY KEY (run, number)
);
INSERT INTO calls (run, number, name, made, verdict, rule, sent, ended, failed, unknown, marked, sum, tool, flow, origin,
                   arguments, result)
SELECT run, number, name, made, verdict, rule, sent, ended, failed, unknown, marked, sum, tool, flow, origin,
       arguments, result FROM calls_6;
DROP TABLE calls_6;

ALTER TABLE media RENAME TO media_6;
CREATE TABLE media (
    run TEXT NOT NULL,
    handle TEXT NOT NULL,
    sum INTEGER,
    data TEXT NOT NULL,
    PRIMARY KEY (run, handle)
);
INSERT INTO media (run, handle, sum, data) SELECT run, handle, sum, data FROM media_6;
DROP TABLE media_6;

ALTER TABLE flows RENAME TO flows_6;
CREATE TABLE flows (
    run TEXT PRIMARY KEY,
    sum INTEGER,
    graph TEXT NOT NULL
);
INSERT INTO flows (run, sum, graph) SELECT run, sum, graph FROM flows_6;
DROP TABLE flows_6;

DROP INDEX approvals_subject;
ALTER TABLE approvals RENAME TO approvals_6;
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    run TEXT,
    call INTEGER,
    state TEXT NOT NULL,
    answered INTEGER,
    sum INTEGER,
    answer TEXT,
    question TEXT NOT NULL
);
INSERT INTO approvals (id, created, kind, subject, run, call, state, answered, sum, answer, question)
SELECT id, created, kind, subject, run, call, state, answered, sum, answer, question FROM approvals_6;
DROP TABLE approvals_6;
CREATE INDEX approvals_subject ON approvals (subject);

-- Large arguments, results and media, each content once. A column then has the hash instead of the text.
CREATE TABLE contents (
    hash BLOB NOT NULL UNIQUE,
    data TEXT NOT NULL
);
CREATE TABLE content_uses (
    run TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (run, hash)
) WITHOUT ROWID;
CREATE INDEX content_uses_hash ON content_uses (hash);
