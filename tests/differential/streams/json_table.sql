CREATE TABLE documents (id INT PRIMARY KEY, doc JSON, t VARCHAR(100));
INSERT INTO documents VALUES (1, '[1, 2, 3]', '{"a":[10]}'), (2, '[]', '{"a":[20,30]}'), (3, NULL, NULL), (4, '[3, 4]', '{}'), (5, '[1, 2, 3]', '{"a":5}');
SELECT * FROM JSON_TABLE('[{"a":1,"b":"x"},{"a":2},{"b":"z"},3]', '$[*]' COLUMNS (id FOR ORDINALITY, a INT PATH '$.a', b VARCHAR(10) PATH '$.b', e INT EXISTS PATH '$.b')) AS j;
SELECT * FROM JSON_TABLE('[{"a":1,"n":[1,2],"m":["x"]},{"a":2,"n":[]},{"a":3}]', '$[*]' COLUMNS (a INT PATH '$.a', NESTED PATH '$.n[*]' COLUMNS (o FOR ORDINALITY, v INT PATH '$'), NESTED PATH '$.m[*]' COLUMNS (w VARCHAR(5) PATH '$'))) j;
SELECT j.a, COUNT(*) FROM JSON_TABLE('[{"a":1},{"a":1},{"a":2}]', '$[*]' COLUMNS (a INT PATH '$.a')) j GROUP BY j.a ORDER BY 1;
SELECT * FROM JSON_TABLE('[{"a":7},{}]', '$[*]' COLUMNS (a INT PATH '$.a' DEFAULT '5' ON EMPTY NULL ON ERROR)) j;
-- lateral to the tables before
SELECT d.id, j.v FROM documents d, JSON_TABLE(d.doc, '$[*]' COLUMNS (v INT PATH '$')) j ORDER BY 1, 2;
SELECT d.id, j.v FROM documents d, JSON_TABLE(d.doc, '$[*]' COLUMNS (v INT PATH '$')) j ORDER BY 1, 2;
SELECT d.id, j.v FROM documents d LEFT JOIN JSON_TABLE(d.doc, '$[*]' COLUMNS (v INT PATH '$')) j ON TRUE ORDER BY 1, 2;
SELECT d.id, j.v FROM documents d LEFT JOIN JSON_TABLE(doc, '$[*]' COLUMNS (v INT PATH '$')) j ON j.v > 2 WHERE d.id < 5 ORDER BY 1, 2;
SELECT d.id, j.v FROM documents d JOIN JSON_TABLE(d.doc, '$[*]' COLUMNS (v INT PATH '$')) j ON j.v = d.id ORDER BY 1;
SELECT d.id, j.v FROM documents d JOIN JSON_TABLE(d.t, '$.a[*]' COLUMNS (v INT PATH '$')) j WHERE d.id < 5 ORDER BY 1, 2;
SELECT d.id, a.v, b.w FROM documents d, JSON_TABLE(d.doc, '$[*]' COLUMNS (v INT PATH '$')) a, JSON_TABLE(d.doc, '$[*]' COLUMNS (w INT PATH '$')) b WHERE a.v < b.w AND d.id = 1 ORDER BY 2, 3;
SELECT d.id, b.w FROM documents d, JSON_TABLE(d.doc, '$' COLUMNS (r JSON PATH '$')) a, JSON_TABLE(a.r, '$[*]' COLUMNS (w INT PATH '$')) b WHERE d.id IN (1, 4) ORDER BY 1, 2;
SELECT a.id, b.id FROM documents a LEFT JOIN (documents b JOIN JSON_TABLE(b.doc, '$[*]' COLUMNS (v INT PATH '$')) j) ON a.id = b.id WHERE b.id IS NULL ORDER BY 1;
WITH c AS (SELECT id, doc FROM documents WHERE id < 3) SELECT c.id, j.* FROM c, JSON_TABLE(c.doc, '$[*]' COLUMNS (o FOR ORDINALITY, v JSON PATH '$')) j ORDER BY 1, 2;
-- in statements of other kinds
SELECT id, (SELECT SUM(v) FROM JSON_TABLE('[1,2]', '$[*]' COLUMNS (v INT PATH '$')) j) FROM documents ORDER BY 1;
SELECT id FROM documents WHERE id IN (SELECT v FROM JSON_TABLE('[1,4,9]', '$[*]' COLUMNS (v INT PATH '$')) j) ORDER BY 1;
INSERT INTO documents (id, t) SELECT v + 100, 'x' FROM JSON_TABLE('[1,2]', '$[*]' COLUMNS (v INT PATH '$')) j;
UPDATE documents d JOIN JSON_TABLE('[{"i":1,"n":"one"},{"i":2,"n":"two"}]', '$[*]' COLUMNS (i INT PATH '$.i', n VARCHAR(9) PATH '$.n')) j ON j.i = d.id SET d.t = j.n;
SELECT id, t FROM documents ORDER BY id;
SET @j = '[1,7]';
SELECT j.v, d.id FROM JSON_TABLE(@j, '$[*]' COLUMNS (v INT PATH '$')) j LEFT JOIN documents d ON d.id = j.v ORDER BY 1;
SELECT * FROM JSON_TABLE(d.doc, '$[*]' COLUMNS (v INT PATH '$')) j;
DROP TABLE documents;
