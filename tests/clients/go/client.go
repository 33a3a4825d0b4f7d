// go-sql-driver/mysql through database/sql: client HOST PORT DATABASE.
// Prints what it saw; the test compares the transcripts of two servers.
package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func failure(err error) string {
	if e, ok := err.(*mysql.MySQLError); ok {
		return fmt.Sprintf("error %d", e.Number)
	}
	return fmt.Sprintf("error %v", err)
}

func rows(title string, found *sql.Rows, err error) {
	if err != nil {
		fmt.Println(title, failure(err))
		return
	}
	defer found.Close()
	for {
		names, _ := found.Columns()
		types, _ := found.ColumnTypes()
		fmt.Println(title)
		for _, t := range types {
			if strings.HasSuffix(t.Name(), "doc") { // JSON is a type of its own in MySQL only
				continue
			}
			nullable, known := t.Nullable()
			precision, scale, decimal := t.DecimalSize()
			fmt.Println("  column", t.Name(), t.DatabaseTypeName(), nullable, known, precision, scale, decimal, t.ScanType())
		}
		for found.Next() {
			values := make([]interface{}, len(names))
			targets := make([]interface{}, len(names))
			for i := range values {
				targets[i] = &values[i]
			}
			check(found.Scan(targets...))
			parts := []string{}
			for i, value := range values {
				switch v := value.(type) {
				case []byte:
					parts = append(parts, fmt.Sprintf("%s=%q", names[i], v))
				default:
					parts = append(parts, fmt.Sprintf("%s=%T:%v", names[i], v, v))
				}
			}
			fmt.Println("  ", strings.Join(parts, " "))
		}
		if err := found.Err(); err != nil {
			fmt.Println("  ", failure(err))
		}
		if !found.NextResultSet() {
			if err := found.Err(); err != nil {
				fmt.Println("  ", failure(err))
			}
			return
		}
	}
}

type runner interface {
	Exec(query string, args ...interface{}) (sql.Result, error)
}

func attempt(db runner, title, query string, values ...interface{}) {
	result, err := db.Exec(query, values...)
	if err != nil {
		fmt.Println(title, failure(err))
		return
	}
	count, _ := result.RowsAffected()
	id, _ := result.LastInsertId()
	fmt.Println(title, "rows", count, "id", id)
}

func exercise(db *sql.DB) {
	for _, each := range []string{"SET foreign_key_checks = 0", "TRUNCATE TABLE children", "TRUNCATE TABLE parents", "SET foreign_key_checks = 1",
		"DELETE FROM everything WHERE id > 5", "DELETE FROM large", "DELETE FROM many"} {
		_, err := db.Exec(each)
		check(err)
	}
	found, err := db.Query("SELECT * FROM everything ORDER BY id")
	rows("text", found, err)
	for id := 1; id <= 5; id++ {
		found, err = db.Query("SELECT * FROM everything WHERE id = ?", id)
		rows("prepared", found, err)
	}
	moment := time.Date(2024, 12, 31, 23, 59, 59, 123456000, time.UTC)
	attempt(db, "insert", "INSERT INTO everything (id, tiny, big_u, exact, real8, words, bytes, blobs, kind, tags, moment6, span6, y, doc, yes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		10, nil, uint64(18446744073709551615), "-0.000001", 0.1, "it's \"quoted\" \\ \n %_ ✓", []byte{0, 255, 39, 92}, bytes.Repeat([]byte{0xab, 0}, 300), "red", "b,a", moment, "-01:02:03.000004", int64(1999), `{"k": 1}`, true)
	found, err = db.Query("SELECT * FROM everything WHERE id = ? AND moment6 = ? AND real8 = ?", int64(10), moment, 0.1)
	rows("inserted", found, err)
	attempt(db, "INSERT", "INSERT INTO parents (name) VALUES (?), (?), (?)", "ann", "bob", "cy")
	attempt(db, "IGNORE", "INSERT IGNORE INTO parents (name) VALUES ('ann'), ('dan')")
	attempt(db, "ON DUPLICATE", "INSERT INTO parents (name, amount) VALUES ('ann', 1), ('eve', 2) ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)")
	attempt(db, "UPDATE", "UPDATE parents SET amount = ?", 1)
	attempt(db, "UPDATE again", "UPDATE parents SET amount = ?", 1)
	attempt(db, "DELETE", "DELETE FROM parents WHERE id > ?", 3)
	attempt(db, "child", "INSERT INTO children (parent_id) VALUES (?)", 1)
	for _, each := range [][2]string{{"duplicate", "INSERT INTO parents (id, name) VALUES (1, 'ann')"}, {"no table", "SELECT * FROM nowhere"},
		{"no column", "SELECT nothing FROM parents"}, {"syntax", "SELEC 1"}, {"not null", "INSERT INTO parents (name) VALUES (NULL)"},
		{"no parent", "INSERT INTO children (parent_id) VALUES (4711)"}, {"has children", "DELETE FROM parents WHERE id = 1"},
		{"too long", "INSERT INTO children (note) VALUES ('123456')"}, {"out of range", "INSERT INTO everything (tiny) VALUES (1000)"},
		{"bad date", "INSERT INTO everything (day) VALUES ('2023-02-29')"}} {
		attempt(db, each[0], each[1])
		statement, err := db.Prepare(each[1])
		if err != nil {
			fmt.Println("prepare", each[0], failure(err))
			continue
		}
		_, err = statement.Exec()
		fmt.Println("prepared", each[0], failure(err))
		statement.Close()
	}
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	check(err)
	attempt(tx, "update", "UPDATE parents SET name = 'zoe' WHERE id = 1")
	found, err = tx.Query("SELECT id, name FROM parents ORDER BY id")
	rows("inside", found, err)
	check(tx.Rollback())
	found, err = db.Query("SELECT id, name FROM parents ORDER BY id")
	rows("rolled back", found, err)
	read, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	check(err)
	attempt(read, "read only", "UPDATE parents SET name = 'zoe' WHERE id = 1")
	check(read.Commit())
	found, err = db.Query("SELECT name FROM parents WHERE id = 1; UPDATE parents SET amount = 7 WHERE id = 1; SELECT amount FROM parents WHERE amount = 7")
	rows("several", found, err)
	body := bytes.Repeat([]byte("0123456789abcde\x00"), 300000)
	attempt(db, "large", "INSERT INTO large VALUES (?, ?)", 1, body)
	var back []byte
	check(db.QueryRow("SELECT body FROM large WHERE id = ?", 1).Scan(&back))
	fmt.Printf("large %d %x\n", len(back), md5.Sum(back))
	var values strings.Builder
	for n := 0; n < 5000; n++ {
		fmt.Fprintf(&values, ",(%d, 'label %d')", n, n)
	}
	attempt(db, "many", "INSERT INTO many VALUES "+values.String()[1:])
	var count, sum sql.NullInt64
	check(db.QueryRow("SELECT COUNT(*), SUM(LENGTH(label)) FROM many").Scan(&count, &sum))
	fmt.Println("many", count, sum)
	var group sync.WaitGroup
	for n := 0; n < 100; n++ {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			_, err := db.Exec("UPDATE parents SET amount = amount + 1 WHERE id = ?", n%3+1)
			check(err)
		}(n)
	}
	group.Wait()
	found, err = db.Query("SELECT id, amount FROM parents ORDER BY id")
	rows("pool", found, err)
}

func main() {
	host, port, database := os.Args[1], os.Args[2], os.Args[3]
	for _, options := range []string{"", "&interpolateParams=true&parseTime=true", "&clientFoundRows=true&columnsWithAlias=true"} {
		fmt.Println("==", options)
		db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(%s:%s)/%s?charset=utf8mb4&multiStatements=true%s", host, port, database, options))
		check(err)
		db.SetMaxOpenConns(8)
		exercise(db)
		check(db.Close())
	}
	db, _ := sql.Open("mysql", fmt.Sprintf("root:wrong@tcp(%s:%s)/%s", host, port, database))
	fmt.Println("login", failure(db.Ping()))
}
