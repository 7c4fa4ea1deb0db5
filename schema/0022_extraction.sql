-- Extraction: a task asks for the fields of a template, document by document (EXT-1 to EXT-4).
-- src/app/extract/extract.h tells what the columns promise together.

-- What a user submitted. Template, price and model are frozen here. Jobs never write this table:
-- progress is counted from extraction_result. closed: how often it was closed (a retry opens it
-- again); the delivery of the webhook is numbered by it.
CREATE TABLE IF NOT EXISTS extraction_task (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT '<uid>-<random>',
    uid INT NOT NULL,
    project_id VARCHAR(64) COLLATE @EXACT@ NULL COMMENT 'project.id',
    name VARCHAR(255) NOT NULL DEFAULT '',
    template_id VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT 'extraction_template.id, or a ready one',
    template_version BIGINT NOT NULL,
    template_name VARCHAR(255) NOT NULL,
    fields MEDIUMTEXT NOT NULL COMMENT 'JSON: the fields of that version',
    query_id VARCHAR(64) COLLATE @EXACT@ NULL COMMENT 'the run whose papers these are; NULL: documents',
    total_count INT NOT NULL,
    status VARCHAR(16) COLLATE @EXACT@ NOT NULL COMMENT 'processing, completed, cancelled',
    closed INT NOT NULL DEFAULT 0,
    cents BIGINT NOT NULL COMMENT 'of one document',
    model VARCHAR(200) NOT NULL,
    request_id VARCHAR(64) COLLATE @EXACT@ NULL,
    asked VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT 'digest of what was asked for',
    webhook VARCHAR(2000) NULL,
    webhook_secret VARCHAR(64) COLLATE @EXACT@ NULL,
    created_at DATETIME(3) NOT NULL,
    completed_at DATETIME(3) NULL,
    UNIQUE KEY id (id),
    UNIQUE KEY request (uid, request_id),
    KEY of_user (uid, number),
    KEY open_tasks (status, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- One document of a task, and its job (JOB-1). number: extraction_task.number * 16384 + place, so
-- the rows of a task are one range of the primary key. result: the checked values, kept before they
-- are paid (of a long document also after each of its parts: parts_done of them); edits by hand
-- change it. text: of a paper, as the AI was asked about it: the places of
-- the quotes stay right when the corpus changes. missing to edited: a bit for each field;
-- sort_keys: a line for each (src/app/extract/task/flags.h). of_task: rows are counted, by state and
-- by flag, from this index alone.
CREATE TABLE IF NOT EXISTS extraction_result (
    number BIGINT NOT NULL PRIMARY KEY,
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT '<extraction_task.id>.<place>',
    task BIGINT NOT NULL COMMENT 'extraction_task.number',
    place INT NOT NULL COMMENT 'from 1',
    uid INT NOT NULL,
    document_id VARCHAR(64) COLLATE @EXACT@ NULL COMMENT 'NULL: it is a paper',
    doi VARCHAR(255) COLLATE @EXACT@ NULL,
    block_key VARCHAR(300) COLLATE @EXACT@ NULL COMMENT 'where the paper is',
    title VARCHAR(1000) NULL COMMENT 'of a paper: once it was read',
    state VARCHAR(16) COLLATE @EXACT@ NOT NULL COMMENT 'pending, extracting, completed, error, cancelled',
    priority TINYINT UNSIGNED NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    error VARCHAR(1000) NULL COMMENT 'why it failed, or waits for money or permission',
    error_code VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word: EXTRACT_REASONS of extract.h',
    waits VARCHAR(1000) NULL COMMENT 'what it waits for besides',
    waits_code VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word',
    asks INT NOT NULL DEFAULT 0 COMMENT 'replies of the AI that were read',
    complaint VARCHAR(1000) NULL COMMENT 'about the last of them',
    result MEDIUMTEXT NULL COMMENT 'JSON',
    parts INT NOT NULL DEFAULT 0 COMMENT 'that the text was cut into; 0: it was not read yet',
    parts_done INT NOT NULL DEFAULT 0 COMMENT 'whose values are in result',
    text MEDIUMTEXT NULL,
    missing BIGINT NOT NULL DEFAULT 0,
    unverified BIGINT NOT NULL DEFAULT 0,
    differs BIGINT NOT NULL DEFAULT 0,
    edited BIGINT NOT NULL DEFAULT 0,
    sort_keys TEXT NULL,
    cents BIGINT NOT NULL,
    paying BIGINT NOT NULL DEFAULT 0 COMMENT 'a payment may have been made: of the try that pays',
    simulated TINYINT NOT NULL DEFAULT 0,
    tokens BIGINT NOT NULL DEFAULT 0,
    created_at DATETIME(3) NOT NULL,
    changed_at DATETIME(3) NOT NULL,
    UNIQUE KEY id (id),
    KEY of_task (task, state, simulated, missing, unverified, differs, edited),
    KEY in_line (state, number),
    KEY changes (state, changed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- What was changed by hand. Rows are only ever added. was, became: JSON, values as in result.
CREATE TABLE IF NOT EXISTS extraction_edit (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    result BIGINT NOT NULL COMMENT 'extraction_result.number',
    uid INT NOT NULL,
    by_name VARCHAR(255) NOT NULL,
    field VARCHAR(255) COLLATE @EXACT@ NOT NULL,
    was MEDIUMTEXT NOT NULL,
    became MEDIUMTEXT NOT NULL,
    version BIGINT NOT NULL COMMENT 'of the row, after the edit',
    at DATETIME(3) NOT NULL,
    KEY of_result (result, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Calls to webhooks that users named (OPS-9): an outbox, written with the change that is told of.
-- src/engine/people/hooks.h.
CREATE TABLE IF NOT EXISTS webhook_delivery (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id VARCHAR(80) COLLATE @EXACT@ NOT NULL COMMENT 'the same at each try',
    uid INT NOT NULL,
    url VARCHAR(2000) NOT NULL,
    secret VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    body MEDIUMTEXT NOT NULL,
    state VARCHAR(16) COLLATE @EXACT@ NOT NULL COMMENT 'pending, delivered, failed',
    tries INT NOT NULL DEFAULT 0,
    error VARCHAR(500) NULL COMMENT 'of the last try',
    due_at DATETIME(3) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    UNIQUE KEY id (id),
    KEY due (state, due_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- What a user's jobs will cost is added up at every submission, and a task has thousands of them:
-- from the index alone.
CREATE INDEX of_user_cents ON job_reserve (uid, cents);
