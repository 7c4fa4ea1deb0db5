-- What jobs that are not finished will cost (JOB-2): part of what a user's balance is promised to.
CREATE TABLE IF NOT EXISTS job_reserve (
    queue VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT 'of the job',
    uid INT NOT NULL,
    cents BIGINT NOT NULL,
    PRIMARY KEY (queue, id),
    KEY of_user (uid)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- A job is paid by a deduction, so there may be many of one user: they are found by number, as the
-- ledger is read. CREATE INDEX can be repeated (engine/setup/schema.c).
CREATE INDEX in_order ON ledger_request (uid, kind, number);
