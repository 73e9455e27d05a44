BEGIN TRANSACTION;
CREATE TABLE event (
  number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, topic TEXT NOT NULL, offset INTEGER NOT NULL,
  kind TEXT NOT NULL, place TEXT NOT NULL, time_ms INTEGER NOT NULL, body BLOB NOT NULL,
  UNIQUE (key, topic, offset, kind, place)
);
CREATE TABLE model (
  key TEXT PRIMARY KEY, partition INTEGER NOT NULL, learner TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT '', records INTEGER NOT NULL DEFAULT 0, labels INTEGER NOT NULL DEFAULT 0,
  accuracy REAL, unbiased REAL, low REAL, high REAL,
  splits INTEGER NOT NULL DEFAULT 0, drifts INTEGER NOT NULL DEFAULT 0,
  last_ms INTEGER NOT NULL, drift_ms INTEGER NOT NULL DEFAULT 0, begun_ms INTEGER NOT NULL DEFAULT 0,
  points INTEGER NOT NULL DEFAULT 0, events INTEGER NOT NULL DEFAULT 0,
  stride INTEGER NOT NULL DEFAULT 1, skipped INTEGER NOT NULL DEFAULT 0, evaluation BLOB
) WITHOUT ROWID;
CREATE TABLE origin (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "origin" VALUES('cluster','c');
INSERT INTO "origin" VALUES('prefix','t.');
CREATE TABLE point (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE position (
  topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
INSERT INTO "position" VALUES('t.audit',3,17);
CREATE TABLE split (
  key TEXT, node INTEGER, body BLOB NOT NULL, PRIMARY KEY (key, node)
) WITHOUT ROWID;
CREATE INDEX model_by_records ON model (records);
CREATE INDEX model_by_last ON model (last_ms);
CREATE INDEX point_by_key ON point (key, number);
CREATE INDEX event_by_key ON event (key, number);
DELETE FROM "sqlite_sequence";
COMMIT;
