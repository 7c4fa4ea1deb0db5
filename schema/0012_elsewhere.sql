-- This number is taken by a change that is made at the same time; the file goes when they meet.
DROP TABLE IF EXISTS elsewhere;
