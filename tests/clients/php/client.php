<?php
// PDO (native and emulated prepares) and mysqli against one server: php client.php HOST PORT DATABASE.
// Prints what it saw; the test compares the transcripts of two servers.
[, $host, $port, $database] = $argv;
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);

function shown($value): string {
    if ($value === null) return 'NULL';
    if (is_string($value)) return preg_match('/^[\x20-\x7e]*$/', $value) ? "'$value'" : 'x' . bin2hex($value);
    return gettype($value) . ':' . var_export($value, true);
}
function rows(string $title, iterable $rows): void {
    echo "$title\n";
    foreach ($rows as $row) {
        foreach ($row as $name => $value) echo "  $name=" . shown($value);
        echo "\n";
    }
}
function attempt(string $title, callable $action): void {
    try { echo "$title: ", json_encode($action()), "\n"; }
    catch (PDOException $e) { echo "$title: error {$e->errorInfo[1]} {$e->errorInfo[0]}\n"; }
    catch (mysqli_sql_exception $e) { echo "$title: error {$e->getCode()} {$e->getSqlState()}\n"; }
}
const FAILURES = [
    'duplicate' => "INSERT INTO parents (id, name) VALUES (1, 'ann')",
    'no table' => 'SELECT * FROM nowhere',
    'no column' => 'SELECT nothing FROM parents',
    'syntax' => 'SELEC 1',
    'not null' => 'INSERT INTO parents (name) VALUES (NULL)',
    'no parent' => 'INSERT INTO children (parent_id) VALUES (4711)',
    'has children' => 'DELETE FROM parents WHERE id = 1',
    'too long' => "INSERT INTO children (note) VALUES ('123456')",
    'out of range' => 'INSERT INTO everything (tiny) VALUES (1000)',
    'bad date' => "INSERT INTO everything (day) VALUES ('2023-02-29')",
];

foreach ([false, true] as $emulate) {
    echo '== PDO, ', $emulate ? 'emulated' : 'native', " prepares\n";
    $pdo = new PDO("mysql:host=$host;port=$port;dbname=$database;charset=utf8mb4", 'root', '', [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => $emulate,
        PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC, PDO::MYSQL_ATTR_MULTI_STATEMENTS => true,
    ]);
    $pdo->exec('SET foreign_key_checks = 0; TRUNCATE TABLE children; TRUNCATE TABLE parents; SET foreign_key_checks = 1');
    $pdo->exec('DELETE FROM everything WHERE id > 5');
    rows('text', $pdo->query('SELECT * FROM everything ORDER BY id'));
    $statement = $pdo->prepare('SELECT * FROM everything WHERE id = ?');
    foreach ([1, 2, 3, 4, 5] as $id) { $statement->execute([$id]); rows("prepared $id", $statement); }
    $statement->execute([1]);
    for ($i = 0; $i < $statement->columnCount(); $i++) {
        $meta = $statement->getColumnMeta($i);
        if ($meta['name'] === 'doc') continue;  // JSON is a type of its own in MySQL only
        echo "  {$meta['table']}.{$meta['name']} {$meta['native_type']} ", implode(',', $meta['flags']), " {$meta['len']} {$meta['precision']}\n";
    }
    $insert = $pdo->prepare('INSERT INTO everything (id, tiny, big_u, exact, real8, bits, words, bytes, blobs, kind, tags, moment6, span6, y, doc) VALUES (:id, :tiny, :big_u, :exact, :real8, :bits, :words, :bytes, :blobs, :kind, :tags, :moment6, :span6, :y, :doc)');
    $insert->bindValue('id', 10, PDO::PARAM_INT); $insert->bindValue('tiny', null, PDO::PARAM_NULL);
    $insert->bindValue('big_u', '18446744073709551615'); $insert->bindValue('exact', '-0.000001');
    $insert->bindValue('real8', 0.1); $insert->bindValue('bits', 5, PDO::PARAM_INT);
    $insert->bindValue('words', "it's \"quoted\" \\ \n %_ ✓"); $insert->bindValue('bytes', "\0\xff'\\", PDO::PARAM_LOB);
    $insert->bindValue('blobs', str_repeat("\xab\0", 300), PDO::PARAM_LOB);
    $insert->bindValue('kind', 'red'); $insert->bindValue('tags', 'b,a'); $insert->bindValue('moment6', '2024-12-31 23:59:59.5');
    $insert->bindValue('span6', '-01:02:03.000004'); $insert->bindValue('y', 1999, PDO::PARAM_INT); $insert->bindValue('doc', '{"k": 1}');
    attempt('insert', fn() => $insert->execute());
    rows('inserted', $pdo->query('SELECT id, tiny, big_u, exact, real8, bits, words, bytes, blobs, kind, tags, moment6, span6, y, JSON_EXTRACT(doc, "$.k") AS k FROM everything WHERE id = 10'));
    attempt('rows of INSERT', fn() => $pdo->exec("INSERT INTO parents (name) VALUES ('ann'), ('bob'), ('cy')"));
    attempt('first id', fn() => $pdo->lastInsertId());
    attempt('rows of IGNORE', fn() => $pdo->exec("INSERT IGNORE INTO parents (name) VALUES ('ann'), ('dan')"));
    attempt('rows of ON DUPLICATE', fn() => $pdo->exec("INSERT INTO parents (name, amount) VALUES ('ann', 1), ('eve', 2) ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)"));
    attempt('rows of REPLACE', fn() => $pdo->exec("REPLACE INTO parents (id, name) VALUES (2, 'bob'), (9, 'ivy')"));
    attempt('rows of UPDATE', fn() => $pdo->exec('UPDATE parents SET amount = 1'));
    attempt('rows unchanged', fn() => $pdo->exec('UPDATE parents SET amount = 1'));
    attempt('rows of DELETE', fn() => $pdo->exec('DELETE FROM parents WHERE id > 3'));
    attempt('child', fn() => $pdo->exec('INSERT INTO children (parent_id) VALUES (1)'));
    foreach (FAILURES as $title => $sql) attempt($title, fn() => $pdo->exec($sql));
    foreach (FAILURES as $title => $sql) attempt("prepared $title", function () use ($pdo, $sql) { $s = $pdo->prepare($sql); $s->execute(); return $s->rowCount(); });
    $pdo->beginTransaction();
    $pdo->exec("UPDATE parents SET name = 'zoe' WHERE id = 1");
    rows('inside', $pdo->query('SELECT id, name FROM parents ORDER BY id'));
    attempt('inTransaction', fn() => $pdo->inTransaction());
    $pdo->rollBack();
    rows('rolled back', $pdo->query('SELECT id, name FROM parents ORDER BY id'));
    $pdo->beginTransaction();
    $pdo->exec("INSERT INTO parents (name) VALUES ('kept')");
    $pdo->exec('SAVEPOINT here');
    $pdo->exec("INSERT INTO parents (name) VALUES ('lost')");
    $pdo->exec('ROLLBACK TO SAVEPOINT here');
    $pdo->commit();
    rows('committed', $pdo->query('SELECT name FROM parents ORDER BY name'));
    if ($emulate) {
        $several = $pdo->query("SELECT 1 AS a; UPDATE parents SET amount = 7 WHERE id = 1; SELECT name FROM parents WHERE amount = 7");
        do { rows('result of ' . $several->rowCount(), $several->columnCount() ? $several->fetchAll() : []); } while ($several->nextRowset());
    }
    $pdo->exec('DELETE FROM large');
    $big = $pdo->prepare('INSERT INTO large VALUES (?, ?)');
    $body = str_repeat("0123456789abcde\0", 300000);
    $big->bindValue(1, 1, PDO::PARAM_INT); $big->bindValue(2, $body, PDO::PARAM_LOB); $big->execute();
    $back = $pdo->query('SELECT body, LENGTH(body) AS n FROM large')->fetch();
    echo 'large ', strlen($back['body']), ' ', md5($back['body']), ' ', shown($back['n']), "\n";
    $pdo->exec('DELETE FROM many');
    $pdo->exec('INSERT INTO many VALUES ' . implode(',', array_map(fn($n) => "($n, 'label $n')", range(1, 5000))));
    $pdo->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false);
    $sum = 0; foreach ($pdo->query('SELECT id, label FROM many') as $row) $sum += strlen($row['label']) + $row['id'];
    echo "unbuffered $sum\n";
    $pdo->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, true);
}

echo "== mysqli\n";
$db = new mysqli($host, 'root', '', $database, (int) $port);
$db->set_charset('utf8mb4');
$result = $db->query('SELECT * FROM everything ORDER BY id');
foreach ($result->fetch_fields() as $f) {
    if ($f->name !== 'doc') echo "  $f->table.$f->name org=$f->orgtable.$f->orgname type=$f->type flags=$f->flags length=$f->length decimals=$f->decimals charset=", $f->charsetnr == 63 ? 'binary' : 'text', "\n";
}
rows('query', $result);
$statement = $db->prepare('SELECT * FROM everything WHERE id = ? OR words = ?');
$id = 3; $words = 'nothing'; $statement->bind_param('is', $id, $words);
$statement->execute(); rows('prepared', $statement->get_result());
$id = 1; $statement->execute(); rows('again', $statement->get_result());
attempt('affected', function () use ($db) { $db->query('UPDATE parents SET amount = amount + 1'); return [$db->affected_rows, $db->info, $db->warning_count]; });
attempt('unchanged', function () use ($db) { $db->query('UPDATE parents SET amount = amount'); return [$db->affected_rows, $db->info]; });
attempt('insert id', function () use ($db) { $db->query("INSERT INTO parents (name) VALUES ('x1'), ('x2')"); return [$db->affected_rows, $db->info]; });
attempt('warning', function () use ($db) { $db->query("INSERT IGNORE INTO parents (name) VALUES ('x1')"); return [$db->affected_rows, $db->warning_count, $db->query('SHOW WARNINGS')->fetch_row()[1]]; });
foreach (FAILURES as $title => $sql) attempt($title, fn() => $db->query($sql));
$db->begin_transaction(); $db->query('DELETE FROM children'); $db->query('DELETE FROM parents'); $db->rollback();
rows('rolled back', $db->query('SELECT name, amount FROM parents ORDER BY name'));
$db->multi_query("SELECT 1, 'two'; SET @a = 3; SELECT @a + 1 AS b; SELECT * FROM nowhere; SELECT 5");
try { do { if ($r = $db->store_result()) rows('multi', $r); else echo "multi without rows\n"; } while ($db->more_results() && $db->next_result()); }
catch (mysqli_sql_exception $e) { echo "multi: error {$e->getCode()} {$e->getSqlState()}\n"; }
$db->change_user('root', '', $database);
rows('after change_user', $db->query('SELECT @a AS a, DATABASE() = ' . "'$database' AS same"));
attempt('ping', fn() => $db->ping());
attempt('select_db', fn() => $db->select_db('nowhere'));
try { new mysqli($host, 'root', 'wrong', $database, (int) $port); } catch (mysqli_sql_exception $e) { echo "login: error {$e->getCode()}\n"; }
