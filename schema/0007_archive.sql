-- Results of runs, in the order they are shown and downloaded in, page by page.

-- search_result with one more index: relevant, not relevant, failed (NULL), and within each by block and
-- DOI. Made aside and put into place in one step, because MySQL knows no ADD KEY IF NOT EXISTS: each
-- of these statements can be repeated.
DROP TABLE IF EXISTS search_result_old;
CREATE TABLE IF NOT EXISTS search_result_next (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    uid INT NOT NULL,
    query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    doi VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    block_key VARCHAR(300) COLLATE @EXACT@ NOT NULL COMMENT 'meta:<Journal>:<Year>',
    relevant TINYINT(1) NULL COMMENT 'NULL: the AI gave no verdict',
    ai_result JSON,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE KEY paper (query_id, doi),
    KEY shown (query_id, relevant, block_key, doi),
    KEY idx_uid (uid)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
INSERT IGNORE INTO search_result_next
    (id, uid, query_id, doi, block_key, relevant, ai_result, created_at)
    SELECT id, uid, query_id, doi, block_key, relevant, ai_result, created_at FROM search_result;
RENAME TABLE search_result TO search_result_old, search_result_next TO search_result;
DROP TABLE IF EXISTS search_result_old;

-- Runs that are archived, and whose keys in Redis may have no time to live yet. Written with archived = 1,
-- removed once Redis has had the time to write to its disk that they have one.
CREATE TABLE IF NOT EXISTS archive_outbox (
    query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY,
    uid INT NOT NULL,
    changed_ms BIGINT NOT NULL COMMENT 'query_log.changed_at then: a run that goes on has a later one',
    told_at DATETIME(3) NOT NULL COMMENT 'when it was written, or keys were last given one'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
