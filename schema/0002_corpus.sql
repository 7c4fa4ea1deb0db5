-- Journals, tags and papers: loaded by operators, read by everybody.
--
-- Names of journals and tags are also names of Redis keys, where bytes decide; so they do here.

CREATE TABLE IF NOT EXISTS contentlist (
    Name VARCHAR(255) COLLATE @EXACT@ NOT NULL PRIMARY KEY,
    FullName TEXT,
    DataRange TEXT,
    UpdateDate TEXT,
    Price INT NOT NULL DEFAULT 1 COMMENT 'points for each paper; one point is 1.00',
    CONSTRAINT contentlist_price_not_negative CHECK (Price >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS contentlist_year_number (
    Name VARCHAR(255) COLLATE @EXACT@ NOT NULL PRIMARY KEY,
    YearNumberJson JSON NOT NULL COMMENT '{"2023": 100, "2024": 50}'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- journal and year take no room in the row: they are read out of the JSON, and only their index is
-- stored, so that one block can be fetched without a scan. JSON_UNQUOTE(JSON_EXTRACT()) is what
-- MySQL and MariaDB have in common; a year that is no number refuses the row.
CREATE TABLE IF NOT EXISTS paperinfo (
    DOI VARCHAR(255) COLLATE @EXACT@ NOT NULL PRIMARY KEY COMMENT 'in lower case',
    Bib JSON NOT NULL COMMENT '{"bib": the raw entry, "journal": "NATURE", "year": 2024}',
    journal VARCHAR(255) COLLATE @EXACT@
        GENERATED ALWAYS AS (JSON_UNQUOTE(JSON_EXTRACT(Bib, '$.journal'))) VIRTUAL,
    year SMALLINT GENERATED ALWAYS AS (JSON_UNQUOTE(JSON_EXTRACT(Bib, '$.year'))) VIRTUAL,
    KEY block (journal, year)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS info_tag (
    Tag VARCHAR(255) COLLATE @EXACT@ NOT NULL PRIMARY KEY,
    TagType VARCHAR(255) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS info_paper_with_tag (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    Name VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    Tag VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    UNIQUE KEY uniq_name_tag (Name, Tag),
    KEY idx_tag (Tag)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Dictionaries that papers in Redis are compressed with. Old ones stay: something may still need
-- them.
CREATE TABLE IF NOT EXISTS zstd_dictionary (
    id INT UNSIGNED NOT NULL PRIMARY KEY COMMENT 'the number that zstd writes into each frame',
    dictionary MEDIUMBLOB NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
