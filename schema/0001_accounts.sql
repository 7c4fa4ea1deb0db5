-- Users, admins, sessions, and every movement of money.
--
-- Rules for all files of this folder:
--   * A released file never changes, comments included: its checksum is kept in each database.
--     What is to be different becomes the next number.
--   * Every statement can be repeated, because the server commits each one by itself and may be
--     interrupted after any of them.
--   * @TEXT@ is the collation of what people read (accents and case do not matter), @EXACT@ that
--     of names and ids (bytes decide, trailing spaces too). MySQL and MariaDB call them differently.
--   * DATETIME is UTC.
--   * No foreign keys. Parents are never deleted (there is no "delete" of users, runs or
--     journals), so they would protect nothing; but each insert would lock the user's row, which
--     the billing syncer updates all the time, and loading a corpus would have to be in order.
--   * Balances and costs are DECIMAL, as other programs know them. 14 digits, because a
--     DECIMAL(10,2) ends below 100 million. millrace itself counts in whole cents.

CREATE TABLE IF NOT EXISTS user_info (
    uid INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    username VARCHAR(255) NOT NULL,
    username_folded VARCHAR(255) COLLATE @EXACT@ NOT NULL
        COMMENT 'NFKC and case folding of username: what must be unique',
    password VARCHAR(255) COLLATE @EXACT@ NOT NULL COMMENT 'bcrypt',
    balance DECIMAL(14,2) NOT NULL DEFAULT 0.00,
    permission INT NOT NULL DEFAULT 0 COMMENT 'workers at the same time, over all runs',
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    banned TINYINT(1) NOT NULL DEFAULT 0,
    version BIGINT NOT NULL DEFAULT 0 COMMENT 'counts changes, so that a slow reader is noticed',
    billed_seq BIGINT NOT NULL DEFAULT 0 COMMENT 'last record of Redis that is in balance',
    move_no BIGINT NOT NULL DEFAULT 0 COMMENT 'last move made here',
    UNIQUE KEY username_folded (username_folded),
    KEY username (username),
    CONSTRAINT user_balance_not_negative CHECK (balance >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS admin_info (
    uid INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    username VARCHAR(255) NOT NULL,
    username_folded VARCHAR(255) COLLATE @EXACT@ NOT NULL COMMENT 'as in user_info',
    password VARCHAR(255) COLLATE @EXACT@ NOT NULL COMMENT 'bcrypt',
    role VARCHAR(50) COLLATE @EXACT@ NOT NULL DEFAULT 'admin' COMMENT 'super or admin',
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    version BIGINT NOT NULL DEFAULT 0,
    UNIQUE KEY username_folded (username_folded),
    CONSTRAINT admin_role CHECK (role IN ('super', 'admin'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Sessions survive the loss of Redis. sid is a digest of the token: whoever reads a backup of this
-- table cannot log in with it.
CREATE TABLE IF NOT EXISTS session (
    sid VARCHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY,
    kind ENUM('user', 'admin') NOT NULL COMMENT 'whose uid it is',
    uid INT NOT NULL,
    login_time DATETIME(3) NOT NULL,
    last_activity DATETIME(3) NOT NULL,
    ip_address VARCHAR(45) COLLATE @EXACT@ NOT NULL,
    user_agent VARCHAR(512) NOT NULL,
    KEY owner (kind, uid),
    KEY last_activity (last_activity)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Every charge, recharge, deduction and reversal, for ever. The two sources count by themselves
-- (user_info.billed_seq and move_no), so that their numbers cannot collide, and the primary key
-- makes applying a batch again harmless. cents is never negative: the kind says which way.
CREATE TABLE IF NOT EXISTS billing_log (
    uid INT NOT NULL,
    source ENUM('redis', 'mysql') NOT NULL,
    number BIGINT NOT NULL,
    kind ENUM('opening', 'charge', 'recharge', 'deduction', 'reversal') NOT NULL,
    qid VARCHAR(64) COLLATE @EXACT@ NULL COMMENT 'of charges and reversals',
    doi VARCHAR(255) COLLATE @EXACT@ NULL,
    cents BIGINT NOT NULL,
    at DATETIME(3) NOT NULL,
    PRIMARY KEY (uid, source, number),
    KEY run (qid),
    CONSTRAINT billing_cents_not_negative CHECK (cents >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- What admins did. Rows are only ever added. A request_id sent twice is refused by the unique key
-- in the transaction that moves the money, so that it moves once.
CREATE TABLE IF NOT EXISTS admin_audit (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(3) NOT NULL,
    admin_uid INT NOT NULL,
    admin_name VARCHAR(255) NOT NULL COMMENT 'as it was: admins can be removed',
    action VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    target_uid INT NULL,
    request_id VARCHAR(64) COLLATE @EXACT@ NULL,
    details JSON NULL,
    ip_address VARCHAR(45) COLLATE @EXACT@ NOT NULL,
    UNIQUE KEY request (target_uid, action, request_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Switches that survive restarts, such as whether anybody may register.
CREATE TABLE IF NOT EXISTS setting (
    name VARCHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY,
    value JSON NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    changed_at DATETIME(3) NOT NULL,
    changed_by INT NULL COMMENT 'admin_info.uid; NULL: the system'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
