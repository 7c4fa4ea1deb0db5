-- Documents and templates, of which extraction makes its tasks (EXT-1): src/app/extract/document.h and
-- template_store.h tell what the columns promise together.

-- A user's folder of work. The first one is made when it is needed, and has no name of its own: pages
-- say it in the reader's language.
CREATE TABLE IF NOT EXISTS project (
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY COMMENT '<uid>-<random>',
    uid INT NOT NULL COMMENT 'user_info.uid',
    name VARCHAR(200) NOT NULL DEFAULT '',
    created_at DATETIME(3) NOT NULL,
    changed_at DATETIME(3) NOT NULL,
    UNIQUE KEY of_user (uid, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- A user's own template, as it is now. The row of a deleted one stays, without its versions: tasks
-- name it, and have what they need frozen in their own rows.
CREATE TABLE IF NOT EXISTS extraction_template (
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY COMMENT '<uid>-<random>',
    uid INT NOT NULL,
    name VARCHAR(200) NOT NULL,
    field_count INT NOT NULL,
    version BIGINT NOT NULL DEFAULT 1 COMMENT 'of the newest row in extraction_template_version',
    created_at DATETIME(3) NOT NULL,
    changed_at DATETIME(3) NOT NULL,
    deleted DATETIME(3) NULL COMMENT 'NULL: it is not',
    KEY of_user (uid, deleted, changed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS extraction_template_version (
    template_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    version BIGINT NOT NULL,
    name VARCHAR(200) NOT NULL,
    fields MEDIUMTEXT NOT NULL COMMENT 'JSON array, as src/app/extract/fields/template.h reads it',
    changed_at DATETIME(3) NOT NULL,
    PRIMARY KEY (template_id, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- An uploaded file and its text, both in document_piece. digest: NULL while it is uploaded, and once
-- it is deleted; so the same bytes are one document of a user. text_from: which pieces have the text:
-- 'file' where the file is UTF-8 itself, 'text' where it was converted or taken out of a PDF; NULL:
-- not known yet, or there is none, and text_error says why.
CREATE TABLE IF NOT EXISTS document (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT '<uid>-<random>',
    uid INT NOT NULL,
    name VARCHAR(255) NOT NULL,
    media VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT 'text/plain, text/markdown, application/pdf',
    bytes BIGINT NOT NULL DEFAULT 0 COMMENT 'of the file; while it is uploaded, what it may have at most',
    digest BINARY(32) NULL COMMENT 'SHA-256 of the file',
    text_from VARCHAR(8) COLLATE @EXACT@ NULL,
    text_bytes BIGINT NOT NULL DEFAULT 0,
    text_error VARCHAR(1000) NULL COMMENT 'why the file has no text: its own fault, for good',
    text_code VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word: PDF_REASONS of pdf.h',
    pages BIGINT NOT NULL DEFAULT 0 COMMENT 'of a PDF whose text is known',
    used TINYINT NOT NULL DEFAULT 0 COMMENT 'a task has it: its text stays when it is deleted',
    created_at DATETIME(3) NOT NULL,
    stored_at DATETIME(3) NULL COMMENT 'NULL: the upload has not ended',
    deleted DATETIME(3) NULL COMMENT 'NULL: it is not',
    swept TINYINT NOT NULL DEFAULT 0 COMMENT 'deleted, and all pieces that may go are gone',
    UNIQUE KEY id (id),
    UNIQUE KEY alike (uid, digest),
    KEY of_user (uid, deleted, number),
    KEY room (uid, deleted, stored_at, bytes),
    KEY unfinished (stored_at, created_at),
    KEY leaves (swept, deleted)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS document_piece (
    document BIGINT NOT NULL COMMENT 'document.number',
    kind VARCHAR(8) COLLATE @EXACT@ NOT NULL COMMENT 'file, text',
    place INT NOT NULL COMMENT 'from 0',
    bytes MEDIUMBLOB NOT NULL COMMENT 'at most 1 MB',
    PRIMARY KEY (document, kind, place)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
