-- The node that runs a server that runs once. It has the server as long as the node lives.
CREATE TABLE server_lease (
    scope text PRIMARY KEY,
    server text NOT NULL,
    node text NOT NULL,
    url text NOT NULL,
    epoch bigint NOT NULL
);
