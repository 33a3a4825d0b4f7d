// mysql2 (text and prepared, one connection and a pool), mysql and mariadb: node client.js HOST PORT DATABASE.
// Prints what it saw; the test compares the transcripts of two servers.
'use strict';
const crypto = require('crypto');
const { promisify } = require('util');
const [host, port, database] = process.argv.slice(2);
const options = { host, port: Number(port), user: 'root', password: '', database, charset: 'utf8mb4', multipleStatements: true,
  supportBigNumbers: true, timezone: 'Z' };

const say = (title, value) => console.log(title + ':', JSON.stringify(value, (key, v) =>
  v && v.type === 'Buffer' ? 'x' + Buffer.from(v.data).toString('hex').slice(0, 300) : typeof v === 'bigint' ? String(v) : v));
const FAILURES = {
  duplicate: "INSERT INTO parents (id, name) VALUES (1, 'ann')", 'no table': 'SELECT * FROM nowhere',
  'no column': 'SELECT nothing FROM parents', syntax: 'SELEC 1', 'not null': 'INSERT INTO parents (name) VALUES (NULL)',
  'no parent': 'INSERT INTO children (parent_id) VALUES (4711)', 'has children': 'DELETE FROM parents WHERE id = 1',
  'too long': "INSERT INTO children (note) VALUES ('123456')", 'out of range': 'INSERT INTO everything (tiny) VALUES (1000)',
  'bad date': "INSERT INTO everything (day) VALUES ('2023-02-29')",
};
const counts = (r) => ({ affected: r.affectedRows, id: r.insertId, changed: r.changedRows, warnings: r.warningCount ?? r.warningStatus });

async function exercise(name, run) {
  console.log('== ' + name);
  const attempt = async (title, sql, values) => {
    try { const [r] = await run(sql, values); say(title, Array.isArray(r) ? r : counts(r)); }
    catch (e) { say(title, ['error', e.errno, e.sqlState, e.code]); }
  };
  for (const sql of ['SET foreign_key_checks = 0', 'TRUNCATE TABLE children', 'TRUNCATE TABLE parents', 'SET foreign_key_checks = 1',
    'DELETE FROM everything WHERE id > 5', 'DELETE FROM large', 'DELETE FROM many']) await run(sql);
  const [rows, fields] = await run('SELECT * FROM everything WHERE id <= 3 ORDER BY id');
  // JSON is a type of its own in MySQL only, and drivers parse it there.
  for (const row of rows) { row.doc = typeof row.doc === 'string' ? JSON.parse(row.doc) : row.doc; say('row', row); }
  if (fields && !name.startsWith('mariadb')) for (const f of fields) if (f.name !== 'doc')
    say('field', [f.name, f.table, f.orgTable, f.orgName, f.columnType ?? f.type, f.flags, f.decimals, f.columnLength ?? f.length]);
  await attempt('zero dates', 'SELECT CAST(day AS CHAR), CAST(moment AS CHAR), y, span FROM everything WHERE id >= 4 ORDER BY id');
  await attempt('insert', 'INSERT INTO everything (id, tiny, big_u, exact, real8, words, bytes, blobs, kind, tags, moment6, span6, y, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    [10, null, '18446744073709551615', '-0.000001', 0.1, 'it\'s "quoted" \\ \n %_ ✓', Buffer.from([0, 255, 39, 92]), Buffer.alloc(600, 0xab),
      'red', 'b,a', new Date(Date.UTC(2024, 11, 31, 23, 59, 59, 500)), '-01:02:03.000004', 1999, '{"k": 1}']);
  await attempt('inserted', 'SELECT id, tiny, big_u, exact, real8, words, bytes, LENGTH(blobs) AS n, kind, tags, moment6, span6, y FROM everything WHERE id = ?', [10]);
  await attempt('INSERT', 'INSERT INTO parents (name) VALUES (?), (?), (?)', ['ann', 'bob', 'cy']);
  await attempt('IGNORE', 'INSERT IGNORE INTO parents (name) VALUES (?), (?)', ['ann', 'dan']);
  await attempt('ON DUPLICATE', "INSERT INTO parents (name, amount) VALUES ('ann', 1), ('eve', 2) ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)");
  await attempt('UPDATE', 'UPDATE parents SET amount = ?', [1]);
  await attempt('UPDATE again', 'UPDATE parents SET amount = ?', [1]);
  await attempt('DELETE', 'DELETE FROM parents WHERE id > ?', [3]);
  await attempt('child', 'INSERT INTO children (parent_id) VALUES (?)', [1]);
  for (const [title, sql] of Object.entries(FAILURES)) await attempt(title, sql);
  for (const [id, nothing] of [[1, null], [2, 'x'], ['3', true], [2.0, 0.5]]) await attempt('mixed types', 'SELECT id, ? IS NULL AS isnull FROM parents WHERE id = ?', [nothing, id]);
  await run('START TRANSACTION'); await run("UPDATE parents SET name = 'zoe' WHERE id = 1"); await attempt('inside', 'SELECT id, name FROM parents ORDER BY id');
  await run('ROLLBACK'); await attempt('rolled back', 'SELECT id, name FROM parents ORDER BY id');
  const body = Buffer.alloc(4800000, '0123456789abcde\0');
  await attempt('large', 'INSERT INTO large VALUES (?, ?)', [1, body]);
  const [[back]] = await run('SELECT body FROM large');
  say('large', [back.body.length, crypto.createHash('md5').update(back.body).digest('hex')]);
  await attempt('many', 'INSERT INTO many VALUES ' + Array.from({ length: 5000 }, (_, n) => `(${n}, 'label ${n}')`).join(','));
  const [many] = await run('SELECT id, label FROM many');
  say('many', many.reduce((sum, row) => sum + row.id + row.label.length, 0));
}

async function mysql2() {
  const driver = require('mysql2/promise');
  const db = await driver.createConnection(options);
  await exercise('mysql2 text', (sql, values) => db.query(sql, values));
  await exercise('mysql2 prepared', (sql, values) => db.execute(sql, values));
  const [several] = await db.query("SELECT 1 AS a; UPDATE parents SET amount = 7 WHERE id = 1; SELECT name FROM parents WHERE amount = 7");
  say('several', several.map((r) => (Array.isArray(r) ? r : counts(r))));
  await db.beginTransaction(); await db.query('DELETE FROM children'); await db.rollback();
  say('rolled back', (await db.query('SELECT COUNT(*) AS n FROM children'))[0]);
  await db.changeUser({ user: 'root', password: '', database }); await db.ping();
  say('after changeUser', (await db.query('SELECT DATABASE() = ? AS same, @a AS a', [database]))[0]);
  const streamed = await new Promise((done, fail) => { let n = 0; db.connection.query('SELECT * FROM many').stream().on('data', () => n++).on('end', () => done(n)).on('error', fail); });
  say('streamed', streamed);
  await db.end();
  const pool = driver.createPool({ ...options, connectionLimit: 8 });
  await Promise.all(Array.from({ length: 200 }, (_, n) => pool.execute('UPDATE parents SET amount = amount + ? WHERE id = ?', [1, (n % 3) + 1])));
  say('pool', (await pool.query('SELECT id, amount FROM parents ORDER BY id'))[0]);
  await pool.end();
  try { await driver.createConnection({ ...options, password: 'wrong' }); } catch (e) { say('login', [e.errno, e.sqlState]); }
}

async function mysql() {
  const db = require('mysql').createConnection(options);
  const query = (sql, values) => new Promise((done, fail) => db.query(sql, values, (e, rows, fields) => (e ? fail(e) : done([rows, fields]))));
  await exercise('mysql', query);
  await promisify(db.changeUser.bind(db))({ user: 'root', password: '' }); await promisify(db.ping.bind(db))(); await promisify(db.end.bind(db))();
}

async function mariadb() {
  const db = await require('mariadb').createConnection({ ...options, charset: undefined, checkDuplicate: false, bigIntAsNumber: true, insertIdAsNumber: true });
  await exercise('mariadb', async (sql, values) => { const rows = await db.query(sql, values); return [rows, rows.meta]; });
  await exercise('mariadb prepared', async (sql, values) => { const rows = await db.execute(sql, values); return [rows, rows.meta]; });
  await db.batch('INSERT INTO parents (name, amount) VALUES (?, ?)', [['p', 1], ['q', 2], ['r', 3]]);
  say('batch', await db.query('SELECT name, amount FROM parents ORDER BY id'));
  await db.reset(); await db.ping(); await db.end();
}

(async () => { await mysql2(); await mysql(); await mariadb(); })().catch((e) => { console.log('failed', e); process.exit(1); });
