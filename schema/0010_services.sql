-- Keys of several AI services (SCR-11). The same key may be listed for two of them, with limits for
-- each.
--
-- One statement, so that all of it is there or nothing; repeated, it finds its column
-- (engine/setup/schema.c).
ALTER TABLE api_list
    ADD COLUMN service VARCHAR(16) COLLATE @EXACT@ NOT NULL DEFAULT 'chat' COMMENT 'or embedding',
    DROP INDEX api_key,
    ADD UNIQUE KEY api_key (api_key, service);
