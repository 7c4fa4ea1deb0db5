-- Charges that were given back: Redis came back without the results they paid for. number is that of
-- the charge (source redis), move_no that of its reversal in billing_log (source mysql). The primary
-- key is what makes a repair that is repeated, or done by two nodes, give each back once.
CREATE TABLE IF NOT EXISTS ledger_reversal (
    uid INT NOT NULL,
    number BIGINT NOT NULL,
    move_no BIGINT NOT NULL,
    PRIMARY KEY (uid, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
