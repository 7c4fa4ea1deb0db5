-- Plans: made by the AI from a template, day by day (PLN-2, PLN-3). src/app/plan/plans.h tells what
-- the columns promise together.

-- What a user has: which plan of each kind is active, and a number that counts the changes of all of
-- the user's plans. untold: Redis has not been told of the last one (an outbox). Every transaction
-- that changes a plan locks this row first.
CREATE TABLE IF NOT EXISTS plan_user (
    uid INT NOT NULL PRIMARY KEY COMMENT 'user_info.uid',
    version BIGINT NOT NULL DEFAULT 0,
    training VARCHAR(64) COLLATE @EXACT@ NULL COMMENT 'training_plan.id; NULL: none is active',
    nutrition VARCHAR(64) COLLATE @EXACT@ NULL COMMENT 'nutrition_plan.id',
    untold TINYINT NOT NULL DEFAULT 0,
    KEY outbox (untold)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- number: of the task that made it, so it is unique over both kinds, and later ones are larger.
-- deleted: its rows and what Redis has of it are removed in the background.
CREATE TABLE IF NOT EXISTS training_plan (
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY COMMENT '<uid>-<random>',
    uid INT NOT NULL,
    number BIGINT NOT NULL,
    name VARCHAR(255) NOT NULL,
    start_date DATE NOT NULL,
    end_date DATE NOT NULL,
    total_weeks INT NOT NULL,
    difficulty VARCHAR(32) NOT NULL,
    template_id BIGINT NOT NULL COMMENT 'prompt_template.id',
    template_version BIGINT NOT NULL,
    variables MEDIUMTEXT NOT NULL COMMENT 'JSON: what the template was filled with',
    simulated TINYINT NOT NULL DEFAULT 0 COMMENT 'it was made by the simulated AI',
    version BIGINT NOT NULL DEFAULT 1,
    created_at DATETIME(3) NOT NULL,
    changed_at DATETIME(3) NOT NULL,
    deleted DATETIME(3) NULL COMMENT 'NULL: it is not',
    KEY of_user (uid, number),
    KEY leaves (deleted)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS nutrition_plan (
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL PRIMARY KEY COMMENT '<uid>-<random>',
    uid INT NOT NULL,
    number BIGINT NOT NULL,
    name VARCHAR(255) NOT NULL,
    start_date DATE NOT NULL,
    end_date DATE NOT NULL,
    total_weeks INT NOT NULL,
    daily_calories INT NOT NULL,
    macro_ratio VARCHAR(255) NOT NULL COMMENT 'JSON {"protein", "carbs", "fat"}',
    template_id BIGINT NOT NULL COMMENT 'prompt_template.id',
    template_version BIGINT NOT NULL,
    variables MEDIUMTEXT NOT NULL COMMENT 'JSON: what the template was filled with',
    simulated TINYINT NOT NULL DEFAULT 0 COMMENT 'it was made by the simulated AI',
    version BIGINT NOT NULL DEFAULT 1,
    created_at DATETIME(3) NOT NULL,
    changed_at DATETIME(3) NOT NULL,
    deleted DATETIME(3) NULL COMMENT 'NULL: it is not',
    KEY of_user (uid, number),
    KEY leaves (deleted)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- day: JSON as src/app/plan/shape.h has it.
CREATE TABLE IF NOT EXISTS training_day (
    plan_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    date DATE NOT NULL,
    day MEDIUMTEXT NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    PRIMARY KEY (plan_id, date)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

CREATE TABLE IF NOT EXISTS nutrition_day (
    plan_id VARCHAR(64) COLLATE @EXACT@ NOT NULL,
    date DATE NOT NULL,
    day MEDIUMTEXT NOT NULL,
    version BIGINT NOT NULL DEFAULT 1,
    PRIMARY KEY (plan_id, date)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;

-- The making of a plan: a job (JOB-1), whose row is the promise. Prompt, template and variables are
-- frozen when it is submitted. result: the checked reply, kept before it is paid. paying: a payment
-- may have been made, so it cannot be cancelled any more; a random number of the try that pays.
CREATE TABLE IF NOT EXISTS generation_task (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT '<uid>-<random>',
    uid INT NOT NULL,
    kind VARCHAR(16) COLLATE @EXACT@ NOT NULL COMMENT 'training, nutrition',
    state VARCHAR(16) COLLATE @EXACT@ NOT NULL COMMENT 'pending, working, completed, failed, cancelled',
    version BIGINT NOT NULL DEFAULT 1,
    error VARCHAR(1000) NULL COMMENT 'why it failed, or waits for money or permission',
    error_code VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word: PLAN_REASONS of plans.h',
    waits VARCHAR(1000) NULL COMMENT 'what it waits for besides',
    waits_code VARCHAR(32) COLLATE @EXACT@ NULL COMMENT 'the same by a word',
    request_id VARCHAR(64) COLLATE @EXACT@ NULL,
    asked VARCHAR(64) COLLATE @EXACT@ NOT NULL COMMENT 'digest of what was asked for',
    template_id BIGINT NOT NULL,
    template_version BIGINT NOT NULL,
    variables MEDIUMTEXT NOT NULL COMMENT 'JSON',
    prompt MEDIUMTEXT NOT NULL,
    model VARCHAR(200) NOT NULL,
    start_date DATE NOT NULL,
    weeks INT NOT NULL,
    cents BIGINT NOT NULL,
    asks INT NOT NULL DEFAULT 0 COMMENT 'replies of the AI that were read',
    complaint VARCHAR(1000) NULL COMMENT 'about the last of them',
    result MEDIUMTEXT NULL,
    simulated TINYINT NOT NULL DEFAULT 0,
    paying BIGINT NOT NULL DEFAULT 0,
    plan_id VARCHAR(64) COLLATE @EXACT@ NULL COMMENT 'once it is completed',
    created_at DATETIME(3) NOT NULL,
    changed_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    swept TINYINT NOT NULL DEFAULT 0 COMMENT 'Redis has been told how it ended',
    UNIQUE KEY id (id),
    UNIQUE KEY request (uid, request_id),
    KEY in_line (state, number),
    KEY changes (state, changed_at),
    KEY of_user (uid, state, number),
    KEY outbox (swept, state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=@TEXT@;
