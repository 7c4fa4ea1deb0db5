-- What a run was judged by, and how many papers have no abstract (SCR-15, SCR-18).

-- Texts that the AI was instructed with, by their SHA-256. Runs name the digest.
CREATE TABLE IF NOT EXISTS prompt_text (
    digest CHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY,
    text MEDIUMTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- One row for each way in which papers of a run were judged, written before the first verdict of
-- that way is recorded. Mostly one; more if an operator changed the AI or the prompt meanwhile.
CREATE TABLE IF NOT EXISTS query_judge (
    query_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    model VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    prompt_digest CHAR(64) COLLATE @EXACT@ NOT NULL,
    simulated TINYINT(1) NOT NULL COMMENT 'by the simulated AI',
    since DATETIME(3) NOT NULL,
    PRIMARY KEY (query_id, model, prompt_digest, simulated)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Papers without an abstract. Of the block as it is while papers and digest are those of
-- corpus_block; otherwise they are counted again by the next "millrace db init".
CREATE TABLE IF NOT EXISTS corpus_bare (
    journal VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    year SMALLINT NOT NULL,
    papers INT NOT NULL,
    digest BIGINT NOT NULL,
    bare INT NOT NULL COMMENT 'of those papers',
    PRIMARY KEY (journal, year)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- One statement, so that all of it is there or nothing; repeated, it finds its column
-- (engine/setup/schema.c).
ALTER TABLE query_log
    ADD COLUMN simulated TINYINT(1) NOT NULL DEFAULT 0 COMMENT 'some of its verdicts are';
