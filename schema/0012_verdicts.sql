-- A verdict is written with its charge (BIL-7), and a row of search_result has what later versions
-- will write to it: the classes of outcomes, score, quote and criteria of a verdict in full.

-- Made aside and put into place in one step, as in 0007. The index on uid was never used.
DROP TABLE IF EXISTS search_result_old;
CREATE TABLE IF NOT EXISTS search_result_next (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    uid INT NOT NULL,
    query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    doi VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    block_key VARCHAR(300) COLLATE @EXACT@ NOT NULL COMMENT 'meta:<Journal>:<Year>',
    year SMALLINT NOT NULL DEFAULT 0 COMMENT 'of the block; 0: not known',
    load_no INT NOT NULL DEFAULT 0 COMMENT 'of the corpus that the run is frozen at; 0: not noted',
    relevant TINYINT(1) NULL COMMENT 'NULL: the AI gave no verdict',
    outcome ENUM('relevant', 'irrelevant', 'failed', 'not_judged', 'withdrawn') NOT NULL,
    score TINYINT UNSIGNED NULL COMMENT '0 to 100, of a verdict in full',
    ai_result JSON,
    quote TEXT NULL,
    criteria JSON NULL,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE KEY paper (query_id, doi),
    KEY shown (query_id, relevant, block_key, doi)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
INSERT IGNORE INTO search_result_next
    (id, uid, query_id, doi, block_key, year, relevant, outcome, ai_result, created_at)
    SELECT id, uid, query_id, doi, block_key,
        CASE WHEN SUBSTRING_INDEX(block_key, ':', -1) REGEXP '^-?[0-9]{1,4}$'
            THEN CAST(SUBSTRING_INDEX(block_key, ':', -1) AS SIGNED) ELSE 0 END,
        relevant,
        CASE WHEN relevant = 1 THEN 'relevant' WHEN relevant = 0 THEN 'irrelevant'
            WHEN JSON_EXTRACT(ai_result, '$.not_judged') IS NOT NULL THEN 'not_judged'
            ELSE 'failed' END,
        ai_result, created_at FROM search_result;
RENAME TABLE search_result TO search_result_old, search_result_next TO search_result;
DROP TABLE IF EXISTS search_result_old;

-- Counts of a run grow with the verdicts that are written, before it is archived, too.
ALTER TABLE query_log
    ADD COLUMN judged_papers INT NOT NULL DEFAULT 0 COMMENT 'with a verdict in search_result';
UPDATE query_log SET judged_papers = finished_papers - failed_papers WHERE archived = 1;
UPDATE query_log SET
    judged_papers = (SELECT COUNT(relevant) FROM search_result s
        WHERE s.query_id = query_log.query_id),
    relevant_papers = (SELECT COUNT(*) FROM search_result s
        WHERE s.query_id = query_log.query_id AND s.relevant = 1),
    total_cost = (SELECT COALESCE(SUM(IF(kind = 'charge', cents, -cents)), 0) / 100
        FROM billing_log b WHERE b.qid = query_log.query_id AND b.uid = query_log.uid
        AND b.kind IN ('charge', 'reversal'))
    WHERE archived = 0;
