-- Texts that are found by their words, and journals by number. src/engine/search/words.h, journal.h.

-- words: as src/corpus/prose/words.h makes them, in ASCII, which no collation changes: the one of
-- small and capital letters spreads them over the parts of the index, that of bytes would not.
CREATE TABLE IF NOT EXISTS post_words (
    owner BIGINT NOT NULL PRIMARY KEY COMMENT 'tb_post.id',
    flags INT UNSIGNED NOT NULL,
    journal SMALLINT UNSIGNED NOT NULL COMMENT 'journal_number.number; 0: none',
    year SMALLINT UNSIGNED NOT NULL,
    words MEDIUMTEXT NOT NULL,
    FULLTEXT KEY words (words)
) ENGINE=InnoDB DEFAULT CHARSET=ascii COLLATE=ascii_general_ci;

CREATE TABLE IF NOT EXISTS paper_words (
    owner BIGINT NOT NULL PRIMARY KEY COMMENT 'a hash of the DOI: collection_paper_owner',
    flags INT UNSIGNED NOT NULL,
    journal SMALLINT UNSIGNED NOT NULL COMMENT 'journal_number.number; 0: none',
    year SMALLINT UNSIGNED NOT NULL,
    words MEDIUMTEXT NOT NULL,
    FULLTEXT KEY words (words)
) ENGINE=InnoDB DEFAULT CHARSET=ascii COLLATE=ascii_general_ci;

-- Numbers that journals were given, for good: points and words are tagged with them.
CREATE TABLE IF NOT EXISTS journal_number (
    number SMALLINT UNSIGNED NOT NULL PRIMARY KEY,
    name VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
