-- Loads are numbered, and which papers a block had at the end of each can be told (SCR-1).

-- One row for each "millrace db init", from 1 on. What was loaded before this table was made is load
-- 0, and has no row.
CREATE TABLE IF NOT EXISTS corpus_load (
    load_no INT NOT NULL PRIMARY KEY,
    begun_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL COMMENT 'written with contentlist_year_number; NULL: not ended',
    added INT NOT NULL DEFAULT 0,
    changed INT NOT NULL DEFAULT 0,
    withdrawn INT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Papers that came to a block, or left it, after the load that made the block. A block as it was at
-- the end of load L: a paper with rows above L was in it if the kind of the first of them is
-- 'withdrawn'; a paper without such rows was in it if it is now.
CREATE TABLE IF NOT EXISTS corpus_change (
    journal VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    year SMALLINT NOT NULL,
    load_no INT NOT NULL,
    doi VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    kind ENUM('added', 'withdrawn') NOT NULL COMMENT 'what happened to it first in that load',
    net TINYINT NOT NULL COMMENT 'how the papers of the block became more by it: -1, 0, 1',
    PRIMARY KEY (journal, year, load_no, doi)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- A row stays when its last paper leaves, with papers 0: what was in it can be told of rows only.
ALTER TABLE corpus_block
    ADD COLUMN load_no INT NOT NULL DEFAULT 0 COMMENT 'the last that changed which papers it has',
    ADD COLUMN since INT NOT NULL DEFAULT 0 COMMENT 'the load that made it';

ALTER TABLE corpus_file
    ADD COLUMN left_papers INT NULL
        COMMENT 'in the corpus, but not in the file any more; NULL: not known';

-- A load that was interrupted has left blocks with more papers than the catalog says. What runs are
-- told they cost and what they will find must be the same.
REPLACE INTO contentlist_year_number (Name, YearNumberJson)
    SELECT journal, JSON_OBJECTAGG(CAST(year AS CHAR), papers) FROM corpus_block
    WHERE papers > 0 GROUP BY journal;
