// MariaDB Connector/J, client and server side prepares: java Client HOST PORT DATABASE.
// Prints what it saw; the test compares the transcripts of two servers.
import java.math.BigDecimal;
import java.security.MessageDigest;
import java.sql.*;
import java.util.*;

public class Client {
    static Connection db;

    static String shown(Object value) {
        if (value == null) return "NULL";
        if (value instanceof byte[]) {
            StringBuilder hex = new StringBuilder("x");
            for (byte b : (byte[]) value) if (hex.length() < 200) hex.append(String.format("%02x", b));
            return hex.toString();
        }
        return value.getClass().getSimpleName() + ":" + value;
    }

    static void rows(String title, ResultSet found) throws SQLException {
        System.out.println(title);
        int width = found.getMetaData().getColumnCount();
        while (found.next()) {
            StringBuilder line = new StringBuilder(" ");
            for (int i = 1; i <= width; i++) {
                String name = found.getMetaData().getColumnLabel(i);
                String cell;
                // JSON is a type of its own in MySQL only.
                try { cell = shown(name.equals("doc") ? found.getString(i) : found.getObject(i)); } catch (SQLException e) { cell = "unreadable"; }
                line.append(" ").append(name).append("=").append(cell);
            }
            System.out.println(line);
        }
    }

    static void columns(ResultSetMetaData meta) throws SQLException {
        for (int i = 1; i <= meta.getColumnCount(); i++)
            if (!meta.getColumnName(i).equals("doc"))
                System.out.println("  " + meta.getTableName(i) + "." + meta.getColumnName(i) + " " + (text(meta, i) ? "text" : meta.getColumnTypeName(i)) + " " + meta.getColumnClassName(i)
                    + " " + (text(meta, i) ? "" : meta.getPrecision(i) + "," + meta.getScale(i)) + " nullable=" + meta.isNullable(i) + " signed=" + meta.isSigned(i)
                    + " auto=" + meta.isAutoIncrement(i) + (text(meta, i) ? "" : " size=" + meta.getColumnDisplaySize(i)));
    }

    // The driver does not know how many bytes a character of MySQL 8's default collation may have.
    static boolean text(ResultSetMetaData meta, int i) throws SQLException {
        return meta.getColumnClassName(i).equals("java.lang.String");
    }

    static void attempt(String title, String sql, Object... values) {
        try (PreparedStatement statement = db.prepareStatement(sql, Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 0; i < values.length; i++) statement.setObject(i + 1, values[i]);
            boolean has = statement.execute();
            if (has) { rows(title, statement.getResultSet()); return; }
            StringBuilder keys = new StringBuilder();
            try (ResultSet generated = statement.getGeneratedKeys()) { while (generated.next()) keys.append(" ").append(generated.getLong(1)); }
            System.out.println(title + ": rows " + statement.getUpdateCount() + " keys" + keys);
        } catch (SQLException e) { System.out.println(title + ": error " + e.getErrorCode() + " " + e.getSQLState() + " " + e.getClass().getSimpleName()); }
    }

    static void exercise() throws Exception {
        try (Statement s = db.createStatement()) {
            for (String sql : List.of("SET foreign_key_checks = 0", "TRUNCATE TABLE children", "TRUNCATE TABLE parents", "SET foreign_key_checks = 1",
                "DELETE FROM everything WHERE id > 5", "DELETE FROM large", "DELETE FROM many")) s.execute(sql);
            try (ResultSet all = s.executeQuery("SELECT * FROM everything WHERE id <= 4 ORDER BY id")) { columns(all.getMetaData()); rows("all", all); }
        }
        attempt("by id", "SELECT * FROM everything WHERE id = ? OR words = ? ORDER BY id", 1, "nothing");
        attempt("by id", "SELECT * FROM everything WHERE id = ? OR words = ? ORDER BY id", 3L, null);
        attempt("insert", "INSERT INTO everything (id, tiny, big_u, exact, real8, words, bytes, blobs, kind, tags, moment6, span6, y, doc, yes, day, real4) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            10, null, new BigDecimal("18446744073709551615"), new BigDecimal("-0.000001"), 0.1, "it's \"quoted\" \\ \n %_ ✓", new byte[] {0, -1, 39, 92}, new byte[600],
            "red", "b,a", Timestamp.valueOf("2024-12-31 23:59:59.5"), "-01:02:03.000004", (short) 1999, "{\"k\": 1}", true, java.sql.Date.valueOf("2024-02-29"), 1.5f);
        attempt("inserted", "SELECT * FROM everything WHERE id = ?", 10);
        attempt("INSERT", "INSERT INTO parents (name) VALUES (?), (?), (?)", "ann", "bob", "cy");
        attempt("IGNORE", "INSERT IGNORE INTO parents (name) VALUES (?), (?)", "ann", "dan");
        attempt("ON DUPLICATE", "INSERT INTO parents (name, amount) VALUES ('ann', 1), ('eve', 2) ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)");
        attempt("UPDATE", "UPDATE parents SET amount = ?", 1);
        attempt("UPDATE again", "UPDATE parents SET amount = ?", 1);
        attempt("DELETE", "DELETE FROM parents WHERE id > ?", 3);
        attempt("child", "INSERT INTO children (parent_id) VALUES (?)", 1);
        String[][] failures = {{"duplicate", "INSERT INTO parents (id, name) VALUES (1, 'ann')"}, {"no table", "SELECT * FROM nowhere"},
            {"no column", "SELECT nothing FROM parents"}, {"syntax", "SELEC 1"}, {"not null", "INSERT INTO parents (name) VALUES (NULL)"},
            {"no parent", "INSERT INTO children (parent_id) VALUES (4711)"}, {"has children", "DELETE FROM parents WHERE id = 1"},
            {"too long", "INSERT INTO children (note) VALUES ('123456')"}, {"out of range", "INSERT INTO everything (tiny) VALUES (1000)"},
            {"bad date", "INSERT INTO everything (day) VALUES ('2023-02-29')"}};
        for (String[] each : failures) attempt(each[0], each[1]);
        db.setAutoCommit(false);
        attempt("update", "UPDATE parents SET name = 'zoe' WHERE id = 1");
        Savepoint here = db.setSavepoint();
        attempt("insert", "INSERT INTO parents (name) VALUES ('lost')");
        db.rollback(here);
        attempt("inside", "SELECT id, name FROM parents ORDER BY id");
        db.rollback();
        attempt("rolled back", "SELECT id, name FROM parents ORDER BY id");
        db.commit();
        db.setAutoCommit(true);
        try (PreparedStatement batch = db.prepareStatement("INSERT INTO parents (name, amount) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int n = 0; n < 5; n++) { batch.setString(1, "batch" + n); batch.setInt(2, n); batch.addBatch(); }
            System.out.println("batch of " + batch.executeBatch().length);
        }
        attempt("batched", "SELECT name, amount FROM parents ORDER BY id");
        try (Statement several = db.createStatement()) {
            boolean has = several.execute("SELECT id AS a FROM parents WHERE id = 3; UPDATE parents SET amount = 7 WHERE id = 1; SELECT name FROM parents WHERE amount = 7");
            while (true) {
                if (has) rows("result", several.getResultSet());
                else if (several.getUpdateCount() < 0) break;
                else System.out.println("count " + several.getUpdateCount());
                has = several.getMoreResults();
            }
        }
        byte[] body = new byte[4_800_000];
        for (int i = 0; i < body.length; i++) body[i] = (byte) (i * 31);
        attempt("large", "INSERT INTO large VALUES (?, ?)", 1, body);
        try (Statement s = db.createStatement(); ResultSet back = s.executeQuery("SELECT body FROM large")) {
            back.next();
            System.out.println("large " + back.getBytes(1).length + " " + shown(MessageDigest.getInstance("MD5").digest(back.getBytes(1))));
        }
        StringJoiner values = new StringJoiner(",");
        for (int n = 0; n < 5000; n++) values.add("(" + n + ", 'label " + n + "')");
        attempt("many", "INSERT INTO many VALUES " + values);
        try (Statement s = db.createStatement()) {
            s.setFetchSize(100);
            long sum = 0;
            try (ResultSet each = s.executeQuery("SELECT id, label FROM many")) { while (each.next()) sum += each.getInt(1) + each.getString(2).length(); }
            System.out.println("streamed " + sum);
            s.setFetchSize(0);
            s.setMaxRows(7);
            int count = 0;
            try (ResultSet each = s.executeQuery("SELECT id FROM many")) { while (each.next()) count++; }
            System.out.println("max rows " + count);
        }
        try (Statement s = db.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_UPDATABLE);
             ResultSet updatable = s.executeQuery("SELECT id, name, amount FROM parents WHERE id = 2")) {
            updatable.next(); updatable.updateInt("amount", 99); updatable.updateRow();
        }
        attempt("updated", "SELECT name, amount FROM parents WHERE id = 2");
    }

    static void schema(String database) throws SQLException {
        DatabaseMetaData meta = db.getMetaData();
        // Of what the two servers name alike.
        for (Object[] part : new Object[][] {{"tables", meta.getTables(database, null, "%", new String[] {"TABLE"}), List.of("TABLE_NAME")},
            {"columns", meta.getColumns(database, null, "%", "%"), List.of("TABLE_NAME", "COLUMN_NAME", "NULLABLE", "ORDINAL_POSITION", "IS_AUTOINCREMENT")},
            {"keys", meta.getPrimaryKeys(database, null, "parents"), List.of("TABLE_NAME", "COLUMN_NAME", "KEY_SEQ", "PK_NAME")},
            {"indexes", meta.getIndexInfo(database, null, "parents", false, true), List.of("INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE", "ORDINAL_POSITION")},
            {"imported", meta.getImportedKeys(database, null, "children"), List.of("PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE", "FK_NAME")},
            {"exported", meta.getExportedKeys(database, null, "parents"), List.of("FKTABLE_NAME", "FKCOLUMN_NAME")}}) {
            ResultSet found = (ResultSet) part[1];
            while (found.next()) {
                StringBuilder line = new StringBuilder((String) part[0]);
                for (Object name : (List<?>) part[2]) line.append(" ").append(found.getString((String) name));
                System.out.println(line);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:mariadb://" + arguments[0] + ":" + arguments[1] + "/" + arguments[2] + "?user=root&allowMultiQueries=true";
        for (String options : List.of("", "&useServerPrepStmts=true", "&useServerPrepStmts=true&useCompression=true", "&rewriteBatchedStatements=true&useAffectedRows=true")) {
            System.out.println("== " + options);
            db = DriverManager.getConnection(url + options);
            exercise();
            schema(arguments[2]);
            System.out.println("valid " + db.isValid(5) + " read only " + db.isReadOnly() + " catalog " + db.getCatalog().equals(arguments[2]));
            db.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            System.out.println("isolation " + db.getTransactionIsolation());
            db.close();
        }
        try { DriverManager.getConnection(url + "&password=wrong"); } catch (SQLException e) { System.out.println("login: error " + e.getErrorCode() + " " + e.getSQLState()); }
    }
}
