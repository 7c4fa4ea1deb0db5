-- API tokens: what programs call the API with, in a user's name (OPS-8).
--
-- sha256 is of the whole token: a reader of a backup of this table cannot use any. Rows of tokens
-- that were revoked or have expired stay for a while, to tell what they were and when they were
-- last used; engine/people/api_token.c removes the oldest.
CREATE TABLE IF NOT EXISTS api_token (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    uid INT NOT NULL COMMENT 'user_info.uid',
    name VARCHAR(64) NOT NULL COMMENT 'by the user; of living tokens each has another',
    sha256 VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    prefix VARCHAR(16) COLLATE @EXACT@ NOT NULL COMMENT 'how it begins, to be recognised by',
    scopes VARCHAR(2000) COLLATE @EXACT@ NOT NULL COMMENT 'separated by blanks; engine/api/scope.h',
    created DATETIME(3) NOT NULL,
    last_used DATETIME(3) NULL COMMENT 'to the minute',
    last_address VARCHAR(45) COLLATE @EXACT@ NULL,
    expires DATETIME(3) NULL COMMENT 'NULL: never',
    revoked DATETIME(3) NULL COMMENT 'NULL: it is not',
    UNIQUE KEY sha256 (sha256),
    KEY owner (uid, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
