# DBD::mysql and DBD::MariaDB against one server: perl client.pl HOST PORT DATABASE.
# Prints what it saw; the test compares the transcripts of two servers.
use strict; use warnings; use DBI; use Digest::MD5 'md5_hex';
my ($host, $port, $database) = @ARGV;
$| = 1;

sub shown {
    my ($value) = @_;
    return 'NULL' unless defined $value;
    my $bytes = $value; utf8::encode($bytes) if utf8::is_utf8($bytes);
    return $bytes =~ /^[\x20-\x7e]*$/ ? "'$bytes'" : 'x' . unpack('H*', $bytes);
}
sub attempt {
    my ($dbh, $title, $sql, @values) = @_;
    my $count = $dbh->do($sql, undef, @values);
    print "$title: ", defined $count ? $count : 'error ' . $dbh->err . ' ' . $dbh->state, "\n";
}
sub rows {
    my ($title, $statement) = @_;
    print "$title\n";
    while (my $row = $statement->fetchrow_arrayref) { print '  ', join(' ', map { shown($_) } @$row), "\n"; }
}
sub query { my ($dbh, $sql, @values) = @_; my $s = $dbh->prepare($sql); $s->execute(@values); return $s; }

for my $driver ('mysql', 'MariaDB') {
    for my $prepared (0, 1) {
        print "== $driver, ", $prepared ? 'server' : 'client', " side prepares\n";
        my $dbh = DBI->connect("DBI:$driver:database=$database;host=$host;port=$port", 'root', '', {
            RaiseError => 0, PrintError => 0, AutoCommit => 1, "\L${driver}\E_server_prepare" => $prepared,
            $driver eq 'mysql' ? (mysql_enable_utf8mb4 => 1) : (),
        }) or die DBI->errstr;
        $dbh->do($_) for 'SET foreign_key_checks = 0', 'TRUNCATE TABLE children', 'TRUNCATE TABLE parents', 'SET foreign_key_checks = 1',
            'DELETE FROM everything WHERE id > 5', 'DELETE FROM large', 'DELETE FROM many';
        my $statement = query($dbh, 'SELECT * FROM everything ORDER BY id');
        my @names = @{ $statement->{NAME} };
        for my $i (0 .. $#names) {
            next if $names[$i] eq 'doc';  # JSON is a type of its own in MySQL only
            print "  $names[$i] type=$statement->{TYPE}[$i] precision=$statement->{PRECISION}[$i] scale=", $statement->{SCALE}[$i] // '-',
                " nullable=", $statement->{NULLABLE}[$i] ? 1 : 0, " native=", $statement->{"\L${driver}\E_type_name"}[$i], " key=", $statement->{"\L${driver}\E_is_pri_key"}[$i] ? 1 : 0, "\n";
        }
        rows('all', $statement);
        rows("by id $_", query($dbh, 'SELECT * FROM everything WHERE id = ? AND whole_u <=> ?', $_, $_ == 3 ? 4294967295 : $_ == 1 ? 8 : undef)) for 1 .. 4;
        my $insert = $dbh->prepare('INSERT INTO everything (id, tiny, big_u, exact, real8, words, bytes, blobs, kind, tags, moment6, span6, y, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
        $insert->bind_param(1, 10, DBI::SQL_INTEGER); $insert->bind_param(2, undef); $insert->bind_param(3, '18446744073709551615');
        $insert->bind_param(4, '-0.000001'); $insert->bind_param(5, 0.1, DBI::SQL_DOUBLE); $insert->bind_param(6, "it's \"quoted\" \\ \n %_ \x{2713}");
        $insert->bind_param(7, "\0\xff'\\", DBI::SQL_BINARY); $insert->bind_param(8, "\xab\0" x 300, DBI::SQL_BLOB);
        $insert->bind_param($_->[0], $_->[1]) for [9, 'red'], [10, 'b,a'], [11, '2024-12-31 23:59:59.5'], [12, '-01:02:03.000004'], [13, 1999], [14, '{"k": 1}'];
        print 'insert ', $insert->execute // $dbh->errstr, "\n";
        rows('inserted', query($dbh, 'SELECT * FROM everything WHERE id = 10'));
        attempt($dbh, 'INSERT', "INSERT INTO parents (name) VALUES (?), (?), (?)", 'ann', 'bob', 'cy');
        print 'first id ', $dbh->last_insert_id(undef, undef, 'parents', 'id'), "\n";
        attempt($dbh, 'IGNORE', "INSERT IGNORE INTO parents (name) VALUES ('ann'), ('dan')");
        attempt($dbh, 'ON DUPLICATE', "INSERT INTO parents (name, amount) VALUES ('ann', 1), ('eve', 2) ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)");
        attempt($dbh, 'UPDATE', 'UPDATE parents SET amount = 1');
        attempt($dbh, 'UPDATE again (matched rows)', 'UPDATE parents SET amount = 1');
        attempt($dbh, 'DELETE', 'DELETE FROM parents WHERE id > ?', 3);
        attempt($dbh, 'child', 'INSERT INTO children (parent_id) VALUES (?)', 1);
        attempt($dbh, @$_) for ['duplicate', "INSERT INTO parents (id, name) VALUES (1, 'ann')"], ['no table', 'SELECT * FROM nowhere'],
            ['no column', 'SELECT nothing FROM parents'], ['syntax', 'SELEC 1'], ['not null', 'INSERT INTO parents (name) VALUES (?)', undef],
            ['no parent', 'INSERT INTO children (parent_id) VALUES (?)', 4711], ['has children', 'DELETE FROM parents WHERE id = ?', 1],
            ['too long', 'INSERT INTO children (note) VALUES (?)', '123456'], ['out of range', 'INSERT INTO everything (tiny) VALUES (?)', 1000],
            ['bad date', 'INSERT INTO everything (day) VALUES (?)', '2023-02-29'];
        $dbh->begin_work; $dbh->do("UPDATE parents SET name = 'zoe' WHERE id = 1");
        rows('inside', query($dbh, 'SELECT id, name FROM parents ORDER BY id')); $dbh->rollback;
        rows('rolled back', query($dbh, 'SELECT id, name FROM parents ORDER BY id'));
        $dbh->{AutoCommit} = 0; $dbh->do("INSERT INTO parents (name) VALUES ('kept')"); $dbh->do('SAVEPOINT here');
        $dbh->do("INSERT INTO parents (name) VALUES ('lost')"); $dbh->do('ROLLBACK TO SAVEPOINT here'); $dbh->commit; $dbh->{AutoCommit} = 1;
        rows('committed', query($dbh, 'SELECT name FROM parents ORDER BY name'));
        my $body = "0123456789abcde\0" x 300_000;
        my $large = $dbh->prepare('INSERT INTO large VALUES (?, ?)');
        $large->bind_param(1, 1); $large->bind_param(2, $body, DBI::SQL_BLOB); $large->execute;
        $dbh->{LongReadLen} = 10_000_000;
        my ($back) = query($dbh, 'SELECT body FROM large')->fetchrow_array; utf8::encode($back) if utf8::is_utf8($back);
        print 'large ', length $back, ' ', md5_hex($back), "\n";
        $dbh->do('INSERT INTO many VALUES ' . join(',', map { "($_, 'label $_')" } 1 .. 5000));
        # Unbuffered reading works in this one combination only, on any server.
        my $unbuffered = $driver eq 'mysql' && !$prepared ? { mysql_use_result => 1 } : {};
        my $each = $dbh->prepare('SELECT id, label FROM many', $unbuffered); $each->execute;
        my $sum = 0; while (my ($id, $label) = $each->fetchrow_array) { $sum += $id + length $label } print "many $sum\n";
        print join(' ', map { s/`//gr } grep { /$database/ } $dbh->tables(undef, $database, '%', 'TABLE')), "\n";
        my $columns = $dbh->column_info(undef, $database, 'parents', '%');
        while (my $c = $columns->fetchrow_hashref) { print join(' ', map { $c->{$_} // '-' } qw(COLUMN_NAME DATA_TYPE NULLABLE ORDINAL_POSITION)), "\n" }
        print join(',', $dbh->primary_key(undef, $database, 'parents')), "\n";
        my $keys = $dbh->foreign_key_info(undef, $database, 'parents', undef, $database, 'children');
        while ($keys && (my $k = $keys->fetchrow_hashref)) { print join(' ', map { $k->{$_} // '-' } qw(PKTABLE_NAME PKCOLUMN_NAME FKTABLE_NAME FKCOLUMN_NAME KEY_SEQ FK_NAME)), "\n" }
        print 'ping ', $dbh->ping, "\n";
        $dbh->disconnect;
    }
}
my $refused = DBI->connect("DBI:mysql:database=$database;host=$host;port=$port", 'root', 'wrong', { PrintError => 0 });
print 'login: error ', DBI->err, "\n";
