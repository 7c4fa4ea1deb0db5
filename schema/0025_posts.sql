-- Posts: texts of users that are found by meaning and by words (EMB-1, EMB-2).
-- src/app/embed/post/post.h tells what the columns promise together.

-- number: the order of lists. id: random, as users see it; job: the same as text, the id of the
-- row's job. version: each change by its owner adds one; content_version: the one that changed the
-- content last, which its points carry. position: the place of its job among all (post_turn), and
-- the version of that job: whatever queues a post gives it a new one; 0: it was never queued.
-- begun, kept: the position whose work has begun, and whose vectors are stored. deleted: its job
-- removes its points, then the row.
CREATE TABLE IF NOT EXISTS tb_post (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id BIGINT NOT NULL,
    job VARCHAR(20) COLLATE @EXACT@ NOT NULL,
    uid INT NOT NULL,
    title VARCHAR(500) NOT NULL,
    content MEDIUMTEXT NOT NULL COMMENT 'Markdown',
    hide TINYINT NOT NULL DEFAULT 0 COMMENT '1: its owner and admins see it alone',
    version BIGINT NOT NULL DEFAULT 1,
    content_version BIGINT NOT NULL DEFAULT 1,
    rag_status VARCHAR(16) COLLATE @EXACT@ NOT NULL COMMENT 'pending, processing, completed, failed',
    rag_error VARCHAR(1000) NULL COMMENT 'why it failed, or waits for money or permission',
    reason VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word: EMBED_REASONS of error.h',
    waits VARCHAR(1000) NULL COMMENT 'what it waits for besides',
    waits_code VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word',
    position BIGINT NOT NULL DEFAULT 0,
    priority TINYINT UNSIGNED NOT NULL DEFAULT 5 COMMENT '0 deleted, 1 by hand, 5, 10 batch',
    queued_at DATETIME(3) NOT NULL,
    begun BIGINT NOT NULL DEFAULT 0,
    kept BIGINT NOT NULL DEFAULT 0,
    worded BIGINT NOT NULL DEFAULT 0 COMMENT 'content_version whose words are in post_words',
    tags_due TINYINT NOT NULL DEFAULT 0 COMMENT 'points and words have a former title or hide',
    tagging DATETIME(3) NULL COMMENT 'a node brings them up to date until then',
    space BIGINT NOT NULL DEFAULT 0 COMMENT 'vector_space of its vectors; 0: it has none',
    chunks INT NOT NULL DEFAULT 0 COMMENT 'that the content was cut into',
    chunks_done INT NOT NULL DEFAULT 0 COMMENT 'of them, those that have a vector',
    cents BIGINT NOT NULL DEFAULT 0 COMMENT 'of the work that was queued last',
    paid_as VARCHAR(48) COLLATE @EXACT@ NULL COMMENT 'the id of its payment',
    created_at DATETIME(3) NOT NULL,
    changed_at DATETIME(3) NOT NULL COMMENT 'by its owner',
    deleted DATETIME(3) NULL COMMENT 'NULL: it is not',
    UNIQUE KEY id (id),
    UNIQUE KEY job (job),
    KEY in_line (rag_status, position),
    KEY changes (rag_status, queued_at),
    KEY of_user (uid, deleted, number),
    KEY of_user_in_line (uid, rag_status, position),
    KEY of_user_news (uid, queued_at),
    KEY tags (tags_due, tagging),
    KEY of_space (space, rag_status)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Gives positions: later ones are larger. Old rows are removed.
CREATE TABLE IF NOT EXISTS post_turn (
    turn BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    post BIGINT NOT NULL COMMENT 'tb_post.id'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
