-- Runs over the relevant papers of other runs.

-- What a distillation judges, as it was when it was submitted: the run that it distils may find more papers
-- relevant later. number: 0 and up, in the order of blocks; a chunk is a hundred of them.
CREATE TABLE IF NOT EXISTS distill_paper (
    query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    number INT NOT NULL,
    doi VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    block_key VARCHAR(300) COLLATE @EXACT@ NOT NULL COMMENT 'meta:<Journal>:<Year>',
    PRIMARY KEY (query_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Which runs distil a run: query_log.original_query_id the other way round.
CREATE TABLE IF NOT EXISTS distillation (
    original_query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    PRIMARY KEY (original_query_id, query_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
