BEGIN TRANSACTION;
CREATE TABLE answer (
  key TEXT, instance_id TEXT, request_id TEXT, annotator TEXT, id TEXT, label TEXT, at_ms INTEGER NOT NULL,
  seconds REAL, gold TEXT, compared INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (key, instance_id, request_id, annotator, id)
) WITHOUT ROWID;
CREATE TABLE day (
  annotator TEXT, day INTEGER, answers INTEGER NOT NULL DEFAULT 0, declined INTEGER NOT NULL DEFAULT 0,
  undone INTEGER NOT NULL DEFAULT 0, compared INTEGER NOT NULL DEFAULT 0, agreed INTEGER NOT NULL DEFAULT 0,
  gold INTEGER NOT NULL DEFAULT 0, gold_right INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (annotator, day)
) WITHOUT ROWID;
CREATE TABLE entry (id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE origin (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "origin" VALUES('cluster','c');
INSERT INTO "origin" VALUES('prefix','t.');
CREATE TABLE pace (
  annotator TEXT, day INTEGER, tenths INTEGER, n INTEGER NOT NULL, PRIMARY KEY (annotator, day, tenths)
) WITHOUT ROWID;
CREATE TABLE pair (
  key TEXT, first TEXT, second TEXT, label TEXT, other TEXT, n INTEGER NOT NULL,
  PRIMARY KEY (key, first, second, label, other)
) WITHOUT ROWID;
CREATE TABLE pattern (key TEXT, answers TEXT, n INTEGER NOT NULL, PRIMARY KEY (key, answers)) WITHOUT ROWID;
CREATE TABLE pause (
  annotator TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, id TEXT NOT NULL, is_paused INTEGER NOT NULL,
  user TEXT NOT NULL, reason TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE position (
  topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
INSERT INTO "position" VALUES('t.audit',3,17);
CREATE INDEX entry_by_age ON entry (at_ms);
CREATE INDEX answer_by_age ON answer (at_ms);
CREATE INDEX compared_answers ON answer (annotator, at_ms) WHERE compared > 0;
CREATE INDEX gold_answers ON answer (annotator, at_ms) WHERE gold IS NOT NULL;
CREATE INDEX day_by_day ON day (day);
CREATE INDEX pace_by_day ON pace (day);
COMMIT;
