-- The audit log is filtered by who, what, whom and when, newest first, however long it is. InnoDB appends the
-- primary key to each of these, so that rows come in the order of id.
--
-- An index that is there already is none made by somebody else: CREATE INDEX can be repeated (engine/setup/schema.c).
CREATE INDEX by_admin_uid ON admin_audit (admin_uid);
CREATE INDEX by_admin_name ON admin_audit (admin_name);
CREATE INDEX by_action ON admin_audit (action);
CREATE INDEX by_target ON admin_audit (target_uid);
CREATE INDEX by_time ON admin_audit (at);
