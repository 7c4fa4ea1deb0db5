-- Where in a group its usable items are, and which items have which numbers. No index of the items
-- changes any more when they are numbered or marked: each change of one costs more than all else
-- that becomes of an item.

-- The index is that of where an item is, not of what became of it. One statement: repeated, it makes
-- the same index again.
ALTER TABLE titles
    DROP INDEX in_order,
    ADD INDEX in_order (group_id, batch_id, id);
ALTER TABLE contents
    DROP INDEX in_order,
    ADD INDEX in_order (group_id, batch_id, id);

-- Batches that items were taken from. A batch without a row has given none. Items that become usable
-- below next_id otherwise than by millrace are found when nothing else is left in the group; at
-- once, if the rows of the group are deleted here.
CREATE TABLE IF NOT EXISTS pool_batch (
    type VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    group_id BIGINT NOT NULL,
    batch_id BIGINT NOT NULL,
    next_id BIGINT NOT NULL COMMENT 'no item with a smaller id is usable',
    fresh_id BIGINT NOT NULL COMMENT 'from this id on nothing was ever taken',
    PRIMARY KEY (type, group_id, batch_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- Items whose numbers follow each other, until they are marked. Their ids do, too, from the first on,
-- unless they are listed. A number that is in no row here is looked for among all items of its
-- group.
CREATE TABLE IF NOT EXISTS pool_run (
    type VARCHAR(32) COLLATE @EXACT@ NOT NULL,
    group_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    id BIGINT NOT NULL,
    items BIGINT NOT NULL,
    ids MEDIUMTEXT COLLATE @EXACT@ NULL COMMENT 'JSON; NULL: they follow each other',
    PRIMARY KEY (type, group_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
