-- What a run may cost at most, and which request submitted it (SCR-1).

-- One statement, so that all of it is there or nothing; repeated, it finds its columns
-- (engine/setup/schema.c). The key of_user finds the unfinished runs of a user, each time that
-- what the user may still spend is computed.
ALTER TABLE query_log
    ADD COLUMN ceiling BIGINT NULL
        COMMENT 'cents that it may cost at most; NULL: submitted before, see search_params',
    ADD COLUMN request_id VARCHAR(64) COLLATE @EXACT@ NULL
        COMMENT 'idempotency key of the client; NULL: none was sent',
    ADD UNIQUE KEY request (uid, request_id),
    ADD KEY of_user (uid, archived, status);
