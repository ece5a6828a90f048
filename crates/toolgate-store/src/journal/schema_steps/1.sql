CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    ended INTEGER,
    state TEXT NOT NULL,
    language TEXT NOT NULL,
    code TEXT NOT NULL,
    session TEXT NOT NULL,
    began INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    output TEXT NOT NULL DEFAULT '',
    error TEXT,
    process INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX runs_created ON runs (created);
CREATE TABLE calls (
    run TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    made INTEGER NOT NULL,
    verdict TEXT,
    rule TEXT,
    sent INTEGER NOT NULL DEFAULT 0,
    ended INTEGER,
    failed INTEGER NOT NULL DEFAULT 0,
    tool TEXT,
    result TEXT,
    flow TEXT,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE TABLE events (
    run TEXT NOT NULL,
    position INTEGER NOT NULL,
    call INTEGER,
    at INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    run TEXT,
    call INTEGER,
    question TEXT NOT NULL,
    state TEXT NOT NULL,
    answer TEXT,
    answered INTEGER
) WITHOUT ROWID;
CREATE INDEX approvals_subject ON approvals (subject);
CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    expires INTEGER,
    text TEXT NOT NULL
) WITHOUT ROWID;
