-- Papers that are indexed: found by words, and by meaning (EMB-5).

-- Work on the papers of a journal and year, or on a slice of them, about a thousand: a row, and its
-- job (JOB-1). The slice of a paper is owner % slices. What a unit has done is in embedding_paper,
-- paper by paper; what is told of it here is what its last work found.
CREATE TABLE IF NOT EXISTS embedding_unit (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT 'follows from the next four',
    journal VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    year SMALLINT NOT NULL,
    slice INT NOT NULL COMMENT 'from 0',
    slices INT NOT NULL,
    state VARCHAR(16) COLLATE @EXACT@ NOT NULL COMMENT 'pending, working, completed, failed',
    priority TINYINT UNSIGNED NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    error VARCHAR(1000) NULL COMMENT 'why it failed, or why the last try did',
    error_code VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word',
    waits VARCHAR(1000) NULL COMMENT 'what it waits for; tries that begin leave it',
    waits_code VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word',
    wanted BIGINT NOT NULL COMMENT 'digest of the block when it was last asked for',
    digest BIGINT NULL COMMENT 'of the block that was indexed (corpus_block); NULL: none was yet',
    space BIGINT NOT NULL DEFAULT 0 COMMENT 'that all its vectors are of; 0: there are none',
    papers INT NOT NULL COMMENT 'in it, about, before it was worked on',
    bare INT NOT NULL DEFAULT 0 COMMENT 'of those: neither title nor abstract, not indexed',
    done INT NOT NULL DEFAULT 0 COMMENT 'of those: indexed as they are',
    embedded INT NOT NULL DEFAULT 0 COMMENT 'of those: with vectors',
    refused INT NOT NULL DEFAULT 0 COMMENT 'of those: the service gave none',
    created_at DATETIME(3) NOT NULL,
    changed_at DATETIME(3) NOT NULL,
    UNIQUE KEY id (id),
    KEY of_block (journal, year),
    KEY in_order (state, number),
    KEY changes (state, changed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- A paper that is indexed: what its owner's number stands for, and what was indexed. A row is
-- written after the vectors, and goes after them. of_block: the papers of a unit.
CREATE TABLE IF NOT EXISTS embedding_paper (
    owner BIGINT NOT NULL PRIMARY KEY COMMENT '63 bits of a hash of the DOI',
    doi VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    journal VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    year SMALLINT NOT NULL,
    version BIGINT NOT NULL COMMENT 'digest of title and abstract',
    space BIGINT NOT NULL DEFAULT 0 COMMENT 'that its vectors are of; 0: it has none',
    KEY of_block (journal, year, owner)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
