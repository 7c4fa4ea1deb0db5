-- Runs, their results, and the keys of the AI service.

-- status is what was asked for and promised: it is written before the caller gets an answer, and
-- Redis is rebuilt from every row that is not final. A final row that is not archived still has
-- results in Redis only.
CREATE TABLE IF NOT EXISTS query_log (
    query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY,
    uid INT NOT NULL,
    search_params JSON COMMENT 'question, journals, years, prices as they were at submission',
    created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    start_time DATETIME(3) NULL,
    end_time DATETIME(3) NULL,
    status VARCHAR(50) COLLATE @EXACT@ NOT NULL
        COMMENT 'QUEUED, RUNNING, PAUSED, DONE, CANCELLED, FAILED',
    reason VARCHAR(255) NULL COMMENT 'why it is PAUSED or FAILED',
    changed_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'of status',
    archived TINYINT(1) NOT NULL DEFAULT 0 COMMENT 'all results are in search_result',
    is_distillation TINYINT(1) NOT NULL DEFAULT 0,
    original_query_id VARCHAR(64) COLLATE @EXACT@ NULL COMMENT 'what was distilled',
    total_papers INT NOT NULL DEFAULT 0,
    finished_papers INT NOT NULL DEFAULT 0,
    relevant_papers INT NOT NULL DEFAULT 0,
    failed_papers INT NOT NULL DEFAULT 0,
    total_cost DECIMAL(14,2) NOT NULL DEFAULT 0.00,
    KEY history (uid, created_at, query_id),
    KEY unfinished (archived, status, created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- The unique key makes archiving repeatable, and lists a run in the order of DOIs, page by page.
CREATE TABLE IF NOT EXISTS search_result (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    uid INT NOT NULL,
    query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    doi VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    block_key VARCHAR(300) COLLATE @EXACT@ NOT NULL COMMENT 'meta:<Journal>:<Year>',
    relevant TINYINT(1) NULL COMMENT 'NULL: the AI gave no verdict',
    ai_result JSON,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE KEY paper (query_id, doi),
    KEY idx_uid (uid)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS api_list (
    api_index INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    api_key VARCHAR(512) COLLATE @EXACT@ NOT NULL,
    api_name VARCHAR(255),
    rpm_limit INT NOT NULL DEFAULT 3000,
    tpm_limit BIGINT NOT NULL DEFAULT 500000,
    is_active TINYINT(1) NOT NULL DEFAULT 1,
    minute_cap BIGINT NULL COMMENT 'calls; NULL: no cap',
    day_cap BIGINT NULL,
    month_cap BIGINT NULL,
    UNIQUE KEY api_key (api_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
