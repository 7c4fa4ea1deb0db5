-- Transactions that must not overlap on two nodes of a Galera cluster write the same row
-- (src/engine/store/cluster.h). Elsewhere it stays empty.
CREATE TABLE IF NOT EXISTS cluster_turn (
    slot SMALLINT UNSIGNED NOT NULL PRIMARY KEY COMMENT 'a hash of what is taken turns for',
    taken BIGINT NOT NULL COMMENT 'how often'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
