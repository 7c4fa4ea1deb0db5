-- Kept free for the change of search_result that is made elsewhere.
DROP TABLE IF EXISTS search_result_old;
