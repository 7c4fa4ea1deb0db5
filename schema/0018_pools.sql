-- Pools: items that are handed out once each (POL-1..4). src/app/pool/pools.h tells what the columns
-- promise together.

-- status: 1 usable; 2 numbered, and so in the list in Redis or on its way there or out of it; 0
-- used. number: 0 while it is usable; then its place in the order of the group's list, for good;
-- 2^62: it was handed out without one. The index has the number, which changes once in an item's
-- life, and not the status, which changes twice: each change of an index costs more than all else.
-- Numbers and times are NOT NULL so that a row keeps its size when they change. Programs that add
-- items give group_id, batch_id and the text, and nothing else. To have items handed out again:
-- status 1, number 0.
CREATE TABLE IF NOT EXISTS titles (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    group_id BIGINT NOT NULL,
    batch_id BIGINT NOT NULL DEFAULT 0 COMMENT 'the newest, which is the largest, goes first',
    title VARCHAR(1000) COLLATE @EXACT@ NOT NULL,
    status TINYINT NOT NULL DEFAULT 1,
    number BIGINT NOT NULL DEFAULT 0,
    used_at BIGINT NOT NULL DEFAULT 0 COMMENT 'seconds since 1970; 0: not used',
    digest BINARY(16) NULL COMMENT 'finds duplicates; NULL: not computed yet',
    KEY in_order (group_id, number, batch_id DESC, id),
    KEY alike (group_id, digest)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS contents (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    group_id BIGINT NOT NULL,
    batch_id BIGINT NOT NULL DEFAULT 0 COMMENT 'the newest, which is the largest, goes first',
    content TEXT COLLATE @EXACT@ NOT NULL,
    status TINYINT NOT NULL DEFAULT 1,
    number BIGINT NOT NULL DEFAULT 0,
    used_at BIGINT NOT NULL DEFAULT 0 COMMENT 'seconds since 1970; 0: not used',
    digest BINARY(16) NULL COMMENT 'finds duplicates; NULL: not computed yet',
    KEY in_order (group_id, number, batch_id DESC, id),
    KEY alike (group_id, digest)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- A row for each group that was ever used. Every transaction that changes items of a group locks its
-- row first, so that two of them never wait for each other.
CREATE TABLE IF NOT EXISTS pool_group (
    type VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    group_id BIGINT NOT NULL,
    numbered BIGINT NOT NULL DEFAULT 0 COMMENT 'the last number that an item got',
    marked BIGINT NOT NULL DEFAULT 0 COMMENT 'no number up to this one is of status 2',
    handed BIGINT NOT NULL DEFAULT 0 COMMENT 'items handed out and marked',
    unseen BIGINT NOT NULL DEFAULT 0 COMMENT 'items that count as handed out since Redis forgot',
    since_at BIGINT NOT NULL DEFAULT 0 COMMENT 'the pace is counted from here on; seconds since 1970',
    since_handed BIGINT NOT NULL DEFAULT 0 COMMENT 'handed, at that time',
    next_at BIGINT NOT NULL DEFAULT 0 COMMENT 'and will be from here on',
    next_handed BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (type, group_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- How far the list in Redis may hand out. A table of its own: raising the limit must not wait for a
-- transaction over thousands of items.
CREATE TABLE IF NOT EXISTS pool_list (
    type VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    group_id BIGINT NOT NULL,
    list CHAR(16) COLLATE @EXACT@ NOT NULL DEFAULT '' COMMENT 'names the list in Redis that counts',
    handed_limit BIGINT NOT NULL DEFAULT 0 COMMENT 'no larger number was handed out',
    PRIMARY KEY (type, group_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Requests that MySQL answered, by the id that the client gave them; for ten minutes.
CREATE TABLE IF NOT EXISTS pool_request (
    type VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    group_id BIGINT NOT NULL,
    uid INT NOT NULL,
    request_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    ids VARCHAR(2100) COLLATE @EXACT@ NOT NULL COMMENT 'of the items, with spaces between',
    at BIGINT NOT NULL COMMENT 'seconds since 1970',
    PRIMARY KEY (type, group_id, uid, request_id),
    KEY age (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
