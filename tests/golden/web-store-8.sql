BEGIN TRANSACTION;
CREATE TABLE adjudication (
  key TEXT, instance_id TEXT, request_id TEXT, reviewer TEXT NOT NULL, label TEXT,
  reviewed_ms INTEGER NOT NULL, PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
CREATE TABLE answer (
  number INTEGER PRIMARY KEY AUTOINCREMENT, request INTEGER UNIQUE REFERENCES request ON DELETE SET NULL,
  kind TEXT NOT NULL, key TEXT NOT NULL, instance_id TEXT NOT NULL, partition INTEGER NOT NULL,
  asked_ms INTEGER NOT NULL, annotator TEXT NOT NULL, label TEXT, given TEXT, weight REAL NOT NULL,
  answered_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'doubt', 'sent', 'overtaken'))
);
INSERT INTO "answer" VALUES(1,NULL,'label','shop','i0',3,0,'ann','yes',NULL,1.0,5,0,'sent');
CREATE TABLE attribute (
  key TEXT, name TEXT, declared TEXT NOT NULL, PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE TABLE audit (number INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL);
CREATE TABLE class (
  key TEXT, name TEXT, answered_ms INTEGER, PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE TABLE clock (partition INTEGER PRIMARY KEY, event_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE crowd (key TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE day (
  annotator TEXT, day INTEGER, labels INTEGER NOT NULL, declined INTEGER NOT NULL, given INTEGER NOT NULL,
  PRIMARY KEY (annotator, day)
) WITHOUT ROWID;
CREATE TABLE dealt (
  annotator TEXT PRIMARY KEY, cards INTEGER NOT NULL, last_gold INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE declared (key TEXT PRIMARY KEY, classes TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE given (
  key TEXT, instance_id TEXT, name TEXT, given_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id, name)
) WITHOUT ROWID;
CREATE TABLE gold (
  number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, instance_id TEXT NOT NULL,
  label TEXT NOT NULL, source TEXT NOT NULL CHECK (source IN ('file', 'agreed')),
  features TEXT NOT NULL, left_out INTEGER NOT NULL DEFAULT 0, prediction TEXT, rules TEXT, shares TEXT,
  seen TEXT, UNIQUE (key, instance_id)
);
CREATE TABLE gold_shown (
  annotator TEXT, gold INTEGER REFERENCES gold ON DELETE CASCADE, times INTEGER NOT NULL,
  PRIMARY KEY (annotator, gold)
) WITHOUT ROWID;
CREATE TABLE identity (name TEXT NOT NULL);
INSERT INTO "identity" VALUES('0123456789abcdef');
CREATE TABLE lease (
  request INTEGER PRIMARY KEY REFERENCES request ON DELETE CASCADE, annotator TEXT NOT NULL,
  until_ms INTEGER NOT NULL, several INTEGER NOT NULL
);
CREATE TABLE origin (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE outcome (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE);
CREATE TABLE past_record (
  key TEXT, instance_id TEXT, request_id TEXT, record TEXT NOT NULL, kept_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
CREATE TABLE position (
  topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
INSERT INTO "position" VALUES('t.label-requests',3,17);
CREATE TABLE range (key TEXT PRIMARY KEY, ranges TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE request (
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, subject TEXT NOT NULL,
  instance_id TEXT NOT NULL, request_id TEXT NOT NULL, partition INTEGER NOT NULL, asked_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL, utility REAL, prediction TEXT, strategy TEXT NOT NULL,
  features TEXT NOT NULL, left_out INTEGER NOT NULL, wanted TEXT NOT NULL, cost REAL, rules TEXT,
  shares TEXT NOT NULL, seen TEXT NOT NULL, needed INTEGER NOT NULL, reason TEXT,
  gold TEXT, gold_for TEXT,
  UNIQUE (kind, key, subject)
);
INSERT INTO "request" VALUES(1,'label','shop','i1','i1','3-1-q',3,5,9000000000000,NULL,NULL,'ask','{"x":1}',0,'',NULL,NULL,'{}','{}',1,NULL,NULL,NULL);
CREATE TABLE review (
  key TEXT, instance_id TEXT, request_id TEXT, at_ms INTEGER NOT NULL, label TEXT, weight REAL,
  certainty REAL NOT NULL, votes TEXT NOT NULL, PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
CREATE TABLE session (
  digest BLOB PRIMARY KEY, annotator TEXT NOT NULL, until_ms INTEGER NOT NULL, proof TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE settled (
  key TEXT, instance_id TEXT, label_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id)
) WITHOUT ROWID;
CREATE TABLE skip (
  request INTEGER REFERENCES request ON DELETE CASCADE, annotator TEXT, skipped_ms INTEGER NOT NULL,
  PRIMARY KEY (request, annotator)
) WITHOUT ROWID;
CREATE TABLE tally (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "tally" VALUES('doubt',0);
INSERT INTO "tally" VALUES('overtaken',0);
INSERT INTO "tally" VALUES('request',1);
INSERT INTO "tally" VALUES('sending',0);
INSERT INTO "tally" VALUES('sent',1);
INSERT INTO "tally" VALUES('waiting',0);
CREATE TABLE vote (
  request INTEGER REFERENCES request ON DELETE CASCADE, annotator TEXT, label TEXT,
  answered_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, PRIMARY KEY (request, annotator)
) WITHOUT ROWID;
CREATE INDEX by_utility ON request (ifnull(utility, -9e999) DESC, asked_ms, number);
CREATE INDEX by_expiry ON request (partition, expires_ms);
CREATE INDEX by_instance ON request (key, instance_id);
CREATE INDEX request_by_model ON request (key, asked_ms, expires_ms);
CREATE INDEX settled_by_age ON settled (seen_ms);
CREATE INDEX given_by_age ON given (seen_ms);
CREATE INDEX lease_by_annotator ON lease (annotator);
CREATE INDEX vote_by_annotator ON vote (annotator, due_ms);
CREATE INDEX answer_by_state ON answer (state, due_ms);
CREATE INDEX answer_by_annotator ON answer (annotator, due_ms) WHERE state = 'waiting';
CREATE INDEX gold_shown_by_gold ON gold_shown (gold);
CREATE TRIGGER request_came AFTER INSERT ON request WHEN new.kind <> 'gold' BEGIN
  UPDATE tally SET n = n + 1 WHERE name = 'request'; END;
CREATE TRIGGER request_went AFTER DELETE ON request WHEN old.kind <> 'gold' BEGIN
  UPDATE tally SET n = n - 1 WHERE name = 'request'; END;
CREATE TRIGGER answer_came AFTER INSERT ON answer WHEN new.kind <> 'gold' BEGIN
  UPDATE tally SET n = n + 1 WHERE name = new.state; END;
CREATE TRIGGER answer_changed AFTER UPDATE OF state ON answer WHEN new.kind <> 'gold' BEGIN
  UPDATE tally SET n = n - 1 WHERE name = old.state;
  UPDATE tally SET n = n + 1 WHERE name = new.state; END;
CREATE TRIGGER answer_went AFTER DELETE ON answer WHEN old.kind <> 'gold' BEGIN
  UPDATE tally SET n = n - 1 WHERE name = old.state; END;
CREATE INDEX review_by_age ON review (at_ms);
CREATE INDEX review_by_certainty ON review (certainty);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('request',1);
INSERT INTO "sqlite_sequence" VALUES('answer',1);
COMMIT;
