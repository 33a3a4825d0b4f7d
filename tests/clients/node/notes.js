// A small application on mysql or mysql2: install, login, edit, search: node notes.js DRIVER USER PASSWORD HOST PORT DATABASE.
// Prints what its users see; the test compares the transcripts of two servers.
'use strict';
const crypto = require('crypto');
const [driver, user, password, host, port, database] = process.argv.slice(2);
const pool = require(driver).createPool({ host, port: Number(port), user, password, database, charset: 'utf8mb4', timezone: 'Z', connectionLimit: 4 });
const say = (title, value) => console.log(title + ':', JSON.stringify(value));
const callback = (start) => new Promise((done, fail) => start((error, value) => (error ? fail(error) : done(value))));
const query = (sql, values, on = pool) => callback((done) => on.query(sql, values, done));
const hash = (word, salt) => crypto.scryptSync(word, salt, 32);

async function install() {
  await query(`CREATE TABLE IF NOT EXISTS users (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) NOT NULL UNIQUE,
    salt BINARY(16) NOT NULL, hash VARBINARY(64) NOT NULL, seen DATETIME(3) NULL)`);
  await query(`CREATE TABLE IF NOT EXISTS notes (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, author INT UNSIGNED NOT NULL, title VARCHAR(200) NOT NULL,
    body TEXT NOT NULL, version INT NOT NULL DEFAULT 1, tags JSON NULL, FULLTEXT KEY words (title, body), KEY (author),
    FOREIGN KEY (author) REFERENCES users (id) ON DELETE CASCADE)`);
  await query(`CREATE TABLE IF NOT EXISTS sessions (token CHAR(64) PRIMARY KEY, user INT UNSIGNED NOT NULL, data BLOB, FOREIGN KEY (user) REFERENCES users (id))`);
  for (const name of ['ann', 'bob']) {
    const salt = crypto.createHash('md5').update(name).digest();
    await query('INSERT INTO users SET ?', { name, salt, hash: hash(name + '!', salt) });
  }
}

async function login(name, word) {
  const [found] = await query('SELECT id, salt, hash FROM users WHERE name = ?', [name]);
  if (!found || !crypto.timingSafeEqual(found.hash, hash(word, found.salt))) return null;
  const token = crypto.createHash('sha256').update(name + word).digest('hex');
  await query('REPLACE INTO sessions SET ?', { token, user: found.id, data: Buffer.from([0, 1, 255]) });
  await query('UPDATE users SET seen = ? WHERE id = ?', [new Date(Date.UTC(2024, 1, 29, 12, 0, 0, 250)), found.id]);
  return token;
}

const who = async (token) => (await query('SELECT u.id, u.name, u.seen, s.data FROM sessions s JOIN users u ON u.id = s.user WHERE s.token = ?', [token]))[0];

// Two editors of one version: the second is told, and nothing of his change stays.
async function edit(token, id, version, change) {
  const editor = await who(token);
  const connection = await callback((done) => pool.getConnection(done));
  try {
    await callback((done) => connection.beginTransaction(done));
    await query('UPDATE users SET seen = NOW(3) WHERE id = ?', [editor.id], connection);
    const { changedRows, affectedRows } = await query('UPDATE notes SET ?, version = version + 1 WHERE id = ? AND version = ?', [change, id, version], connection);
    if (!affectedRows) { await callback((done) => connection.rollback(done)); return 'somebody was faster'; }
    await callback((done) => connection.commit(done));
    return { changedRows };
  } finally { connection.release(); }
}

const SEARCHES = {
  words: ["SELECT id, title FROM notes WHERE MATCH (title, body) AGAINST (? IN BOOLEAN MODE) ORDER BY id", ['+mill -wind']],
  like: ['SELECT n.id, n.title, u.name FROM notes n JOIN users u ON u.id = n.author WHERE n.title LIKE ? ORDER BY n.id', ['%100\\%%']],
  list: ['SELECT id, ?? FROM notes WHERE id IN (?) ORDER BY ?? DESC', ['title', [1, 3, 99], 'id']],
  counts: ['SELECT u.name, COUNT(n.id) AS notes, MAX(n.version) AS latest FROM users u LEFT JOIN notes n ON n.author = u.id GROUP BY u.id, u.name ORDER BY u.name', []],
  tags: ["SELECT id, JSON_UNQUOTE(JSON_EXTRACT(tags, '$[0]')) AS first FROM notes WHERE JSON_CONTAINS(tags, ?) ORDER BY id", ['"wood"']],
  page: ['SELECT SQL_CALC_FOUND_ROWS id FROM notes ORDER BY id LIMIT ?, ?', [1, 2]],
};

(async () => {
  await install();
  say('wrong', await login('ann', 'bob!'));
  const token = await login('ann', 'ann!');
  const other = await login('bob', 'bob!');
  say('who', await who(token));
  for (const [title, body, tags] of [['A mill', 'with a wheel', ['wood']], ['Wind mill', 'with sails', ['wood', 'cloth']], ["It's 100% \\ 😀", 'oak "quoted" \n', []]]) {
    const { insertId, affectedRows } = await query('INSERT INTO notes (author, title, body, tags) VALUES (?)', [[(await who(token)).id, title, body, JSON.stringify(tags)]]);
    say('wrote', { insertId, affectedRows });
  }
  for (let round = 0; round < 3; round++) for (const [name, [sql, values]] of Object.entries(SEARCHES)) say('search ' + name, await query(sql, values));
  say('edit', await edit(token, 1, 1, { title: 'A water mill', body: 'with a race' }));
  say('edit late', await edit(other, 1, 1, { title: 'lost' }));
  for (let round = 0; round < 3; round++) for (const [name, [sql, values]] of Object.entries(SEARCHES)) say('search ' + name, await query(sql, values));
  for (const [sql, values] of [['INSERT INTO users SET ?', { name: 'ann', salt: '', hash: '' }], ['INSERT INTO notes SET ?', { author: 77, title: 't', body: 'b' }], ['DELETE FROM users WHERE id = 1', []]])
    say('refused', await query(sql, values).catch((error) => [error.errno, error.sqlState]));
  await query('DELETE FROM sessions');
  say('gone', [await who(token), (await query('DELETE FROM users WHERE name = ?', ['ann'])).affectedRows, await query('SELECT COUNT(*) AS n FROM notes')]);
  await callback((done) => pool.end(done));
})().catch((error) => { console.log('failed', error); process.exit(1); });
