-- The rest of what 0014 does about loads that were interrupted: a journal that had lost its last
-- paper, or its last paper to another journal, was still in the catalog. Both names compare byte by
-- byte.
DELETE FROM contentlist_year_number
    WHERE Name NOT IN (SELECT journal FROM corpus_block WHERE papers > 0);
