CREATE TABLE people (name string) WITH ('connector' = 'FakeSource', 'type' = 'source');
CREATE TABLE out WITH ('connector' = 'Console', 'type' = 'sink')
INSERT INTO out SELECT name FROM people;
