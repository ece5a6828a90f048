-- Calls that clients have as tasks, until they expire.
CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    expires INTEGER NOT NULL,
    life TEXT NOT NULL,
    state TEXT NOT NULL
);
CREATE INDEX tasks_expires ON tasks (expires);
