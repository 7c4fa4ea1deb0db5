-- Posts and papers as vectors (EMB-3, EMB-5, EMB-6). src/engine/search/collection.h and
-- collection_apply.c tell what the columns promise together. The stores of points are copies of point_vector.

-- A row for each collection. Every transaction that changes points locks it first: so the numbers of
-- point_change become visible in their order.
CREATE TABLE IF NOT EXISTS vector_collection (
    name VARCHAR(32) COLLATE @EXACT@ NOT NULL PRIMARY KEY COMMENT 'blog_posts, papers',
    number BIGINT NOT NULL DEFAULT 0 COMMENT 'of the last row of point_change'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
INSERT IGNORE INTO vector_collection (name) VALUES ('blog_posts'), ('papers');

-- What vectors are comparable in. The columns alive and active are NULL instead of 0, so that any
-- number of rows may have that, but only one is active.
CREATE TABLE IF NOT EXISTS vector_space (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    collection VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    model VARCHAR(127) COLLATE @EXACT@ NOT NULL COMMENT 'by the name that replies give it',
    dimension INT NOT NULL,
    asked VARCHAR(255) COLLATE @EXACT@ NOT NULL COMMENT 'ai.embedding.model of that time',
    asked_dimensions INT NOT NULL COMMENT 'ai.embedding.dimensions of that time',
    alive TINYINT NULL DEFAULT 1 COMMENT 'NULL: its vectors and stores are being removed',
    active TINYINT NULL COMMENT '1: searches use it; NULL: it is being built, or not alive',
    answered_at DATETIME(3) NOT NULL COMMENT 'when the service last used this model, about',
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY alike (collection, model, dimension, alive),
    UNIQUE KEY in_use (collection, active)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Which store has which space, and how far. place: "embedded <random>" for the folder of a machine,
-- "qdrant <address>". applied: the changes up to this number are in it. cursor_owner: NULL: it is
-- complete; -1: it is to be made anew, empty; else owners up to this one have been copied into it.
CREATE TABLE IF NOT EXISTS vector_store (
    place VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    space BIGINT NOT NULL,
    applied BIGINT NOT NULL,
    cursor_owner BIGINT NULL DEFAULT -1,
    builds BIGINT NOT NULL DEFAULT 1 COMMENT 'how often it was made anew',
    copied BIGINT NOT NULL DEFAULT 0 COMMENT 'points, since it was last made anew',
    total BIGINT NOT NULL DEFAULT 0 COMMENT 'points that there were to copy then',
    seen_at DATETIME(3) NOT NULL COMMENT 'when a node last looked after it, about',
    PRIMARY KEY (place, space),
    KEY of_space (space)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- What the points of an owner have in common. ticket: of the call that embeds it now or did so last;
-- a call whose ticket has gone stores nothing. version 0: nothing was
-- stored yet.
CREATE TABLE IF NOT EXISTS point_owner (
    collection VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    owner BIGINT NOT NULL,
    ticket BIGINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    flags INT UNSIGNED NOT NULL DEFAULT 0,
    journal INT NOT NULL DEFAULT 0,
    year INT NOT NULL DEFAULT 0,
    title TEXT NULL,
    tagged TINYINT NOT NULL DEFAULT 0 COMMENT '1: tags and title are newer than that call',
    name VARCHAR(1000) COLLATE @EXACT@ NULL COMMENT 'what owner stands for, where it is a hash: a DOI',
    PRIMARY KEY (collection, owner)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- vector: float32, little endian, one behind the other.
CREATE TABLE IF NOT EXISTS point_vector (
    space BIGINT NOT NULL COMMENT 'vector_space.number',
    owner BIGINT NOT NULL,
    part INT NOT NULL,
    version BIGINT NOT NULL COMMENT 'of the content that it was made of',
    vector MEDIUMBLOB NOT NULL,
    text MEDIUMTEXT NOT NULL COMMENT 'what was embedded',
    PRIMARY KEY (space, owner, part),
    KEY counted (space, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Owners whose points were changed, in the order of the changes: stores follow it. Rows go when all
-- stores have them.
CREATE TABLE IF NOT EXISTS point_change (
    collection VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    number BIGINT NOT NULL,
    owner BIGINT NOT NULL,
    tags_only TINYINT NOT NULL COMMENT '1: its points have other tags, the vectors are the same',
    PRIMARY KEY (collection, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
