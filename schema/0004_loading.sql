-- What was loaded from where, and what each block should hold. The corpus does not remember when it
-- was loaded: the same folder gives the same rows.

-- Files of Data/ that are in the database whole. A file that looks as it did is not read again.
CREATE TABLE IF NOT EXISTS corpus_file (
    journal VARCHAR(255) COLLATE @EXACT@ NOT NULL COMMENT 'the folder',
    file VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    bytes BIGINT NOT NULL,
    changed_ns BIGINT NOT NULL COMMENT 'when the file was changed, since 1970',
    digest BIGINT NOT NULL COMMENT 'of its bytes',
    PRIMARY KEY (journal, file)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- One row for each journal and year that has papers, changed together with them. A block in Redis
-- carries the same two numbers: where they differ it is out of date.
CREATE TABLE IF NOT EXISTS corpus_block (
    journal VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    year SMALLINT NOT NULL,
    papers INT NOT NULL,
    digest BIGINT NOT NULL COMMENT 'of all its papers, in any order: XOR of 63 bits',
    PRIMARY KEY (journal, year)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Made anew: no program has ever filled the first one, and it knew the time but not the order.
DROP TABLE IF EXISTS zstd_dictionary;
CREATE TABLE IF NOT EXISTS zstd_dictionary (
    id INT UNSIGNED NOT NULL PRIMARY KEY COMMENT 'the number that zstd writes into each frame',
    sequence INT NOT NULL COMMENT 'the highest is the one in use',
    papers BIGINT NOT NULL COMMENT 'in the corpus when it was trained',
    dictionary MEDIUMBLOB NOT NULL,
    UNIQUE KEY sequence (sequence)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
