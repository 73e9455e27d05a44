BEGIN TRANSACTION;
CREATE TABLE adjudication (
  key TEXT, instance_id TEXT, request_id TEXT, reviewer TEXT NOT NULL, label TEXT,
  reviewed_ms INTEGER NOT NULL, PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
INSERT INTO "adjudication" VALUES('k','corrected','corrected','rev','b',1000400);
CREATE TABLE answer (
  number INTEGER PRIMARY KEY AUTOINCREMENT, request INTEGER UNIQUE REFERENCES request ON DELETE SET NULL,
  kind TEXT NOT NULL, key TEXT NOT NULL, instance_id TEXT NOT NULL, partition INTEGER NOT NULL,
  asked_ms INTEGER NOT NULL, annotator TEXT NOT NULL, label TEXT, given TEXT, weight REAL NOT NULL,
  answered_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'doubt', 'sent', 'overtaken'))
);
INSERT INTO "answer" VALUES(1,NULL,'label','k','same-0',0,1000000,'ann+bob+cy','a',NULL,1.0,1000000,1000100,'sent');
INSERT INTO "answer" VALUES(2,NULL,'label','k','same-1',0,1000000,'ann+bob+cy','a',NULL,1.0,1000000,1000100,'sent');
INSERT INTO "answer" VALUES(3,NULL,'label','k','same-2',0,1000000,'ann+bob+cy','a',NULL,1.0,1000000,1000100,'sent');
INSERT INTO "answer" VALUES(4,NULL,'label','k','same-3',0,1000000,'ann+bob+cy','a',NULL,1.0,1000000,1000100,'sent');
INSERT INTO "answer" VALUES(5,NULL,'label','k','corrected',0,1000000,'ann+bob+cy','a',NULL,1.0,1000200,1000300,'sent');
INSERT INTO "answer" VALUES(6,NULL,'correction','k','corrected',0,1000000,'rev','b',NULL,1.0,1000400,1000400,'sent');
INSERT INTO "answer" VALUES(7,NULL,'label','k','disputed',0,1000000,'ann+bob+cy','a',NULL,1.0,1000600,1000700,'sent');
INSERT INTO "answer" VALUES(8,7,'label','k','on its way',0,1000000,'ann+bob+cy','a',NULL,1.0,1000750,1000860,'sending');
CREATE TABLE attribute (
  key TEXT, name TEXT, declared TEXT NOT NULL, PRIMARY KEY (key, name)
) WITHOUT ROWID;
INSERT INTO "attribute" VALUES('k','age','{"key":"k","name":"age","kind":"numeric","values":[],"open":false,"low":null,"high":null}');
CREATE TABLE audit (number INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL);
INSERT INTO "audit" VALUES(27,'{"id":"","user":"ann","action":"label","at_ms":1000750,"key":"k","instance_id":"on its way","request_id":"on its way","detail":"a","label":"a","seconds":null,"gold":null,"votes":null,"prior":null,"weight":null,"posterior":null,"annotator":null,"reason":null,"comment":null}');
INSERT INTO "audit" VALUES(28,'{"id":"","user":"bob","action":"label","at_ms":1000750,"key":"k","instance_id":"on its way","request_id":"on its way","detail":"a","label":"a","seconds":null,"gold":null,"votes":null,"prior":null,"weight":null,"posterior":null,"annotator":null,"reason":null,"comment":null}');
INSERT INTO "audit" VALUES(29,'{"id":"","user":"cy","action":"label","at_ms":1000750,"key":"k","instance_id":"on its way","request_id":"on its way","detail":"a","label":"a","seconds":null,"gold":null,"votes":null,"prior":null,"weight":null,"posterior":null,"annotator":null,"reason":null,"comment":null}');
INSERT INTO "audit" VALUES(30,'{"id":"","user":"agreement","action":"outcome","at_ms":1000860,"key":"k","instance_id":"on its way","request_id":"on its way","detail":"a with weight 1 (ann: a, bob: a, cy: a)","label":"a","seconds":null,"gold":null,"votes":{"ann":"a","bob":"a","cy":"a"},"prior":{"a":1.0},"weight":1.0,"posterior":0.9848030970886374,"annotator":null,"reason":null,"comment":null}');
INSERT INTO "audit" VALUES(31,'{"id":"","user":"ann","action":"label","at_ms":1000900,"key":"k","instance_id":"in its undo window","request_id":"in its undo window","detail":"a","label":"a","seconds":null,"gold":null,"votes":null,"prior":null,"weight":null,"posterior":null,"annotator":null,"reason":null,"comment":null}');
INSERT INTO "audit" VALUES(32,'{"id":"","user":"bob","action":"label","at_ms":1000900,"key":"k","instance_id":"in its undo window","request_id":"in its undo window","detail":"a","label":"a","seconds":null,"gold":null,"votes":null,"prior":null,"weight":null,"posterior":null,"annotator":null,"reason":null,"comment":null}');
INSERT INTO "audit" VALUES(33,'{"id":"","user":"cy","action":"label","at_ms":1000900,"key":"k","instance_id":"in its undo window","request_id":"in its undo window","detail":"a","label":"a","seconds":null,"gold":null,"votes":null,"prior":null,"weight":null,"posterior":null,"annotator":null,"reason":null,"comment":null}');
INSERT INTO "audit" VALUES(34,'{"id":"","user":"ann","action":"label","at_ms":1000900,"key":"k","instance_id":"half","request_id":"half","detail":"b","label":"b","seconds":null,"gold":null,"votes":null,"prior":null,"weight":null,"posterior":null,"annotator":null,"reason":null,"comment":null}');
INSERT INTO "audit" VALUES(35,'{"id":"","user":"dan","action":"skip","at_ms":1000950,"key":"k","instance_id":"half","request_id":"half","detail":null,"label":null,"seconds":null,"gold":null,"votes":null,"prior":null,"weight":null,"posterior":null,"annotator":null,"reason":null,"comment":null}');
CREATE TABLE class (
  key TEXT, name TEXT, answered_ms INTEGER, PRIMARY KEY (key, name)
) WITHOUT ROWID;
INSERT INTO "class" VALUES('k','a',1000000);
INSERT INTO "class" VALUES('k','b',NULL);
INSERT INTO "class" VALUES('k','c',NULL);
CREATE TABLE clock (partition INTEGER PRIMARY KEY, event_ms INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "clock" VALUES(0,1000000);
CREATE TABLE crowd (key TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "crowd" VALUES('k','{"classes":["a","b"],"counts":[["ann",[[5.701889948860333,0.0],[1.2981100511396666,0.0]]],["bob",[[3.942827629124619,1.759062319735714],[0.0571723708753807,1.240937680264286]]],["cy",[[5.701889948860333,0.0],[1.2981100511396666,0.0]]]],"prevalence":[5.701889948860333,0.2981100511396669],"tree":[5.751893082177423,6],"recent":[[{"ann":0,"bob":0,"cy":0},[1.0,0.0],[0.9861193244756382,0.013880675524361836]],[{"ann":0,"bob":0,"cy":0},[1.0,0.0],[0.9858497102868193,0.01415028971318061]],[{"ann":0,"bob":0,"cy":0},[1.0,0.0],[0.9855721786444417,0.014427821355558396]],[{"ann":0,"bob":0,"cy":0},[1.0,0.0],[0.9852864157177201,0.014713584282279854]],[{"ann":0,"bob":1,"cy":0},[1.0,0.0],[0.8846943514244823,0.11530564857551777]],[{"ann":0,"bob":1,"cy":0},[1.0,0.0],[0.8743679683112316,0.12563203168876835]]],"place":0}');
CREATE TABLE day (
  annotator TEXT, day INTEGER, labels INTEGER NOT NULL, declined INTEGER NOT NULL, given INTEGER NOT NULL,
  PRIMARY KEY (annotator, day)
) WITHOUT ROWID;
INSERT INTO "day" VALUES('ann',0,9,0,0);
INSERT INTO "day" VALUES('bob',0,8,0,0);
INSERT INTO "day" VALUES('cy',0,8,0,0);
CREATE TABLE dealt (
  annotator TEXT PRIMARY KEY, cards INTEGER NOT NULL, last_gold INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "dealt" VALUES('ann',9,0);
INSERT INTO "dealt" VALUES('bob',8,0);
INSERT INTO "dealt" VALUES('cy',8,0);
INSERT INTO "dealt" VALUES('dan',1,0);
INSERT INTO "dealt" VALUES('eve',1,0);
CREATE TABLE declared (key TEXT PRIMARY KEY, classes TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "declared" VALUES('k','[true,["a","b"],999991,null]');
CREATE TABLE given (
  key TEXT, instance_id TEXT, name TEXT, given_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id, name)
) WITHOUT ROWID;
INSERT INTO "given" VALUES('k','known','age',1000000,1000700);
CREATE TABLE gold (
  number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, instance_id TEXT NOT NULL,
  label TEXT NOT NULL, source TEXT NOT NULL CHECK (source IN ('file', 'agreed')),
  features TEXT NOT NULL, left_out INTEGER NOT NULL DEFAULT 0, prediction TEXT, rules TEXT, shares TEXT,
  seen TEXT, UNIQUE (key, instance_id)
);
INSERT INTO "gold" VALUES(1,'k','gold-0','a','file','{"x":0.0}',0,NULL,NULL,'{}',NULL);
INSERT INTO "gold" VALUES(2,'k','gold-1','b','file','{"x":1.0}',0,NULL,NULL,'{}',NULL);
INSERT INTO "gold" VALUES(3,'k','gold-2','a','file','{"x":2.0}',0,NULL,NULL,'{}',NULL);
INSERT INTO "gold" VALUES(4,'k','same-0','a','agreed','{"x":1.0,"colour":"<b>"}',0,'a',NULL,'{}','{}');
INSERT INTO "gold" VALUES(5,'k','same-1','a','agreed','{"x":1.0,"colour":"<b>"}',0,'a',NULL,'{}','{}');
INSERT INTO "gold" VALUES(6,'k','same-2','a','agreed','{"x":1.0,"colour":"<b>"}',0,'a',NULL,'{}','{}');
INSERT INTO "gold" VALUES(7,'k','same-3','a','agreed','{"x":1.0,"colour":"<b>"}',0,'a',NULL,'{}','{}');
INSERT INTO "gold" VALUES(8,'k','on its way','a','agreed','{"x":1.0,"colour":"<b>"}',0,'a',NULL,'{}','{}');
CREATE TABLE gold_shown (
  annotator TEXT, gold INTEGER REFERENCES gold ON DELETE CASCADE, times INTEGER NOT NULL,
  PRIMARY KEY (annotator, gold)
) WITHOUT ROWID;
INSERT INTO "gold_shown" VALUES('ann',4,1073741824);
INSERT INTO "gold_shown" VALUES('ann',5,1073741824);
INSERT INTO "gold_shown" VALUES('ann',6,1073741824);
INSERT INTO "gold_shown" VALUES('ann',7,1073741824);
INSERT INTO "gold_shown" VALUES('ann',8,1073741824);
INSERT INTO "gold_shown" VALUES('bob',4,1073741824);
INSERT INTO "gold_shown" VALUES('bob',5,1073741824);
INSERT INTO "gold_shown" VALUES('bob',6,1073741824);
INSERT INTO "gold_shown" VALUES('bob',7,1073741824);
INSERT INTO "gold_shown" VALUES('bob',8,1073741824);
INSERT INTO "gold_shown" VALUES('cy',4,1073741824);
INSERT INTO "gold_shown" VALUES('cy',5,1073741824);
INSERT INTO "gold_shown" VALUES('cy',6,1073741824);
INSERT INTO "gold_shown" VALUES('cy',7,1073741824);
INSERT INTO "gold_shown" VALUES('cy',8,1073741824);
CREATE TABLE identity (name TEXT NOT NULL);
INSERT INTO "identity" VALUES('004a4615ae16362c');
CREATE TABLE lease (
  request INTEGER PRIMARY KEY REFERENCES request ON DELETE CASCADE, annotator TEXT NOT NULL,
  until_ms INTEGER NOT NULL, several INTEGER NOT NULL
);
INSERT INTO "lease" VALUES(9,'eve',1002000,0);
CREATE TABLE origin (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "origin" VALUES('cluster','c');
INSERT INTO "origin" VALUES('t.label-requests','id');
CREATE TABLE outcome (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE);
INSERT INTO "outcome" VALUES(1,'004a4615ae16362c-13');
INSERT INTO "outcome" VALUES(2,'004a4615ae16362c-14');
INSERT INTO "outcome" VALUES(3,'004a4615ae16362c-15');
INSERT INTO "outcome" VALUES(4,'004a4615ae16362c-16');
INSERT INTO "outcome" VALUES(5,'004a4615ae16362c-20');
INSERT INTO "outcome" VALUES(6,'004a4615ae16362c-22');
INSERT INTO "outcome" VALUES(7,'004a4615ae16362c-26');
CREATE TABLE past_record (
  key TEXT, instance_id TEXT, request_id TEXT, record TEXT NOT NULL, kept_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
INSERT INTO "past_record" VALUES('k','corrected','corrected','[0,1000000,-1,"a","s","{\"x\":1.0,\"colour\":\"<b>\"}",0,null,"{}","{}",null]',1000300);
INSERT INTO "past_record" VALUES('k','disputed','disputed','[0,1000000,-1,"a","s","{\"x\":1.0,\"colour\":\"<b>\"}",0,null,"{}","{}",null]',1000700);
CREATE TABLE position (
  topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
INSERT INTO "position" VALUES('requests',0,1);
CREATE TABLE range (key TEXT PRIMARY KEY, ranges TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "range" VALUES('k','{"x":[1.0,1.0,11]}');
CREATE TABLE request (
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, subject TEXT NOT NULL,
  instance_id TEXT NOT NULL, request_id TEXT NOT NULL, partition INTEGER NOT NULL, asked_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL, utility REAL, prediction TEXT, strategy TEXT NOT NULL,
  features TEXT NOT NULL, left_out INTEGER NOT NULL, wanted TEXT NOT NULL, cost REAL, rules TEXT,
  shares TEXT NOT NULL, seen TEXT NOT NULL, needed INTEGER NOT NULL, reason TEXT,
  gold TEXT, gold_for TEXT,
  UNIQUE (kind, key, subject)
);
INSERT INTO "request" VALUES(7,'label','k','on its way','on its way','on its way',0,1000000,-1,NULL,'a','s','{"x":1.0,"colour":"<b>"}',0,'[]',NULL,NULL,'{}','{}',3,NULL,NULL,NULL);
INSERT INTO "request" VALUES(8,'label','k','in its undo window','in its undo window','in its undo window',0,1000000,-1,NULL,'a','s','{"x":1.0,"colour":"<b>"}',0,'[]',NULL,NULL,'{}','{}',3,NULL,NULL,NULL);
INSERT INTO "request" VALUES(9,'label','k','half','half','half',0,1000000,-1,NULL,'a','s','{"x":1.0,"colour":"<b>"}',0,'[]',NULL,NULL,'{}','{}',3,NULL,NULL,NULL);
INSERT INTO "request" VALUES(10,'features','k','q1','loan','q1',0,1000000,-1,NULL,'a','s','{"x":1.0,"colour":"<b>"}',0,'["age","colour"]',2.0,NULL,'{}','{}',1,NULL,NULL,NULL);
INSERT INTO "request" VALUES(11,'label','k','skipped','skipped','skipped',0,1000000,-1,NULL,'a','s','{"x":1.0,"colour":"<b>"}',0,'[]',NULL,NULL,'{}','{}',3,NULL,NULL,NULL);
CREATE TABLE review (
  key TEXT, instance_id TEXT, request_id TEXT, at_ms INTEGER NOT NULL, label TEXT, weight REAL,
  certainty REAL NOT NULL, votes TEXT NOT NULL, PRIMARY KEY (key, instance_id, request_id)
) WITHOUT ROWID;
INSERT INTO "review" VALUES('k','corrected','corrected',1000300,'a',1.0,9.39933259176863211692e-01,'{"ann":"a","bob":"b","cy":"a"}');
INSERT INTO "review" VALUES('k','disputed','disputed',1000700,'a',1.0,8.55624993643592124392e-01,'{"ann":"a","bob":"b","cy":"a"}');
CREATE TABLE session (
  digest BLOB PRIMARY KEY, annotator TEXT NOT NULL, until_ms INTEGER NOT NULL, proof TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "session" VALUES(X'9F9F5111F7B27A781F1F1DDDE5EBC2DD2B796BFC7365C9C28B548E564176929F','ann',1002000,'proof');
CREATE TABLE settled (
  key TEXT, instance_id TEXT, label_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  PRIMARY KEY (key, instance_id)
) WITHOUT ROWID;
INSERT INTO "settled" VALUES('k','corrected',1000400,1000500);
INSERT INTO "settled" VALUES('k','disputed',1000600,1000700);
INSERT INTO "settled" VALUES('k','elsewhere',1000000,1000700);
INSERT INTO "settled" VALUES('k','same-0',1000000,1000100);
INSERT INTO "settled" VALUES('k','same-1',1000000,1000100);
INSERT INTO "settled" VALUES('k','same-2',1000000,1000100);
INSERT INTO "settled" VALUES('k','same-3',1000000,1000100);
CREATE TABLE skip (
  request INTEGER REFERENCES request ON DELETE CASCADE, annotator TEXT, skipped_ms INTEGER NOT NULL,
  PRIMARY KEY (request, annotator)
) WITHOUT ROWID;
INSERT INTO "skip" VALUES(9,'dan',1000950);
CREATE TABLE tally (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "tally" VALUES('doubt',0);
INSERT INTO "tally" VALUES('overtaken',0);
INSERT INTO "tally" VALUES('request',5);
INSERT INTO "tally" VALUES('sending',1);
INSERT INTO "tally" VALUES('sent',7);
INSERT INTO "tally" VALUES('waiting',0);
CREATE TABLE vote (
  request INTEGER REFERENCES request ON DELETE CASCADE, annotator TEXT, label TEXT,
  answered_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, PRIMARY KEY (request, annotator)
) WITHOUT ROWID;
INSERT INTO "vote" VALUES(7,'ann','a',1000750,1000850);
INSERT INTO "vote" VALUES(7,'bob','a',1000750,1000850);
INSERT INTO "vote" VALUES(7,'cy','a',1000750,1000850);
INSERT INTO "vote" VALUES(8,'ann','a',1000900,1001000);
INSERT INTO "vote" VALUES(8,'bob','a',1000900,1001000);
INSERT INTO "vote" VALUES(8,'cy','a',1000900,1001000);
INSERT INTO "vote" VALUES(9,'ann','b',1000900,1001000);
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
INSERT INTO "sqlite_sequence" VALUES('gold',8);
INSERT INTO "sqlite_sequence" VALUES('request',11);
INSERT INTO "sqlite_sequence" VALUES('audit',35);
INSERT INTO "sqlite_sequence" VALUES('answer',8);
INSERT INTO "sqlite_sequence" VALUES('outcome',7);
COMMIT;
