-- What makes a movement of money happen once, and what tells Redis of changes it did not see.

-- A request that moves money, by the id its sender gave it. number: of its row in billing_log; NULL
-- while a deduction is on its way through Redis.
CREATE TABLE IF NOT EXISTS ledger_request (
    uid INT NOT NULL,
    request_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    kind ENUM('recharge', 'deduction') NOT NULL,
    cents BIGINT NOT NULL,
    number BIGINT NULL,
    PRIMARY KEY (uid, request_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Users with moves that Redis may not have yet. Written with the move, removed once Redis has it.
CREATE TABLE IF NOT EXISTS ledger_outbox (
    uid INT NOT NULL PRIMARY KEY,
    move_no BIGINT NOT NULL COMMENT 'the last of them'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Users whose rows or sessions were changed, and of whom Redis may hold something older.
CREATE TABLE IF NOT EXISTS cache_stale (
    uid INT NOT NULL,
    kind ENUM('user', 'admin') NOT NULL,
    mark BIGINT NOT NULL COMMENT 'counts the changes: one that came later is not unmarked by an earlier one',
    PRIMARY KEY (uid, kind)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
