-- The logins at servers, encrypted with a key that the database never has. The label is a keyed hash of whose login it is.
CREATE TABLE login (label text PRIMARY KEY, sealed text NOT NULL);

-- Locked by the node that renews a login. Apart from the login, which that node writes meanwhile.
CREATE TABLE login_lock (label text PRIMARY KEY);

-- The logins that wait for a browser. All names are keyed hashes.
CREATE TABLE waiting_login (
    id text PRIMARY KEY,
    login text NOT NULL,
    state text NOT NULL,
    sealed text NOT NULL,
    expires bigint NOT NULL,
    -- The browser that may end it.
    browser text,
    -- When a node began to end it.
    taken bigint,
    -- How it ended, encrypted too.
    outcome text
);
CREATE UNIQUE INDEX waiting_login_open ON waiting_login (login) WHERE outcome IS NULL;
CREATE INDEX waiting_login_state ON waiting_login (state);
CREATE INDEX waiting_login_expires ON waiting_login (expires);

-- What all nodes must have in common, as fingerprints.
CREATE TABLE fingerprint (name text PRIMARY KEY, value text NOT NULL);
