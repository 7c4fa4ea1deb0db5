-- Which request made a post, and how many posts there are to find (EMB-1, EMB-4).

-- A create whose answer was lost can be sent again. The key searched counts posts by how they can be
-- found, without their contents. One statement, so that all of it is there or nothing; repeated, it
-- finds its columns (src/engine/setup/schema.c).
ALTER TABLE tb_post
    ADD COLUMN request_id VARCHAR(64) COLLATE @EXACT@ NULL
        COMMENT 'idempotency key of the client; NULL: none was sent, or the post is deleted',
    ADD COLUMN asked VARCHAR(64) COLLATE @EXACT@ NULL
        COMMENT 'digest of what that request said',
    ADD UNIQUE KEY request (uid, request_id),
    ADD KEY searched (deleted, hide, rag_status, worded, space);
