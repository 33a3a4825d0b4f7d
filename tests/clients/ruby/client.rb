# ActiveRecord over mysql2, and mysql2 itself: ruby client.rb HOST PORT DATABASE.
# Migrations, models, associations, transactions, the schema dump; prints what it saw.
require 'active_record'
require 'bigdecimal'
require 'stringio'
host, port, database = ARGV
$stdout.sync = true
options = { adapter: 'mysql2', host: host, port: port.to_i, username: 'root', database: database, encoding: 'utf8mb4', pool: 4 }
ActiveRecord::Base.establish_connection(options)
ActiveRecord::Base.default_timezone = :utc
ActiveRecord::Migration.verbose = false

def attempt(title)
  puts "#{title}: #{yield.inspect}"
rescue ActiveRecord::ActiveRecordError, Mysql2::Error, ActiveModel::RangeError => e
  cause = e.is_a?(Mysql2::Error) ? e : e.cause
  puts "#{title}: #{e.class}#{" #{cause.error_number} #{cause.sql_state}" if cause.is_a?(Mysql2::Error)}"
end

class CreateShop < ActiveRecord::Migration[6.1]
  def change
    create_table :authors, charset: 'utf8mb4', collation: 'utf8mb4_general_ci' do |t|
      t.string :name, null: false, limit: 80
      t.date :born
      t.timestamps precision: 6
      t.index :name, unique: true
    end
    create_table :books, charset: 'utf8mb4', collation: 'utf8mb4_general_ci', comment: 'what is sold' do |t|
      t.references :author, foreign_key: { on_delete: :cascade }
      t.string :title, null: false, default: ''
      t.decimal :price, precision: 10, scale: 2, default: '9.99'
      t.integer :stock, limit: 4, default: 0, null: false, unsigned: true
      t.bigint :views
      t.float :rating
      t.boolean :active, default: true
      t.text :summary
      t.binary :cover
      t.datetime :published_at, precision: 6
      t.time :opens
      t.timestamps precision: 6
      t.index %i[title price]
    end
    create_join_table :books, :tags
    create_table(:tags, charset: 'utf8mb4', collation: 'utf8mb4_general_ci') { |t| t.string :word }
  end
end

class ChangeShop < ActiveRecord::Migration[6.1]
  def change
    add_column :books, :isbn, :string, limit: 13, after: :title
    add_index :books, :isbn, unique: true, length: 10
    rename_column :books, :views, :seen
    change_column_null :books, :rating, false, 0
    change_column_default :books, :rating, from: nil, to: 1.5
    change_column_comment :books, :isbn, from: nil, to: 'thirteen digits'
    rename_index :books, 'index_books_on_isbn', 'isbn_index'
    add_check_constraint :books, 'price >= 0', name: 'price_positive'
    rename_table :tags, :labels
    reversible do |way|
      way.up { change_column :authors, :name, :string, limit: 120 }
      way.down { change_column :authors, :name, :string, limit: 80 }
    end
  end
end

class Author < ActiveRecord::Base
  has_many :books, dependent: :destroy
  validates :name, presence: true, uniqueness: { case_sensitive: false }
end
class Label < ActiveRecord::Base; end
class Book < ActiveRecord::Base
  belongs_to :author, optional: true
  has_and_belongs_to_many :labels, join_table: 'books_tags', association_foreign_key: 'tag_id'
  scope :cheap, -> { where(price: ...5) }
end

migrations = { 1 => CreateShop, 2 => ChangeShop }
migrations.each_value { |m| m.migrate(:up) }
connection = ActiveRecord::Base.connection
puts connection.tables.sort.inspect
connection.tables.sort.each do |table|
  next if %w[everything parents children large many].include?(table)
  connection.columns(table).each { |c| p [table, c.name, c.type, c.limit, c.precision, c.scale, c.null, c.comment, c.collation] + [c.default.to_s.delete("'")] }
  connection.indexes(table).each { |i| p [table, i.name, i.columns, i.unique, i.lengths] }
  connection.foreign_keys(table).each { |k| p [table, k.to_table, k.column, k.on_delete, k.on_update] }
  p [table, connection.primary_key(table), connection.table_comment(table)]
end
p connection.check_constraints('books').map { |c| [c.name, c.expression.delete('`()')] }

ann = Author.create!(name: 'Ann', born: Date.new(1970, 1, 2))
book = ann.books.create!(title: "One 'quoted' \\ 日本 😀", price: '1.505', views: 1, stock: 4_294_967_295) rescue p($!.class)
book = ann.books.create!(title: "One 'quoted' \\ 日本 😀", price: '1.50', stock: 4_294_967_295, cover: "\x00\xff'".b, published_at: Time.utc(2024, 2, 29, 12, 34, 56.789012r), opens: Time.utc(2000, 1, 1, 8, 30), rating: 0.1, seen: 2**62)
ann.books.create!([{ title: 'Two', price: 7 }, { title: 'Three', active: false, isbn: '978' }])
p Book.find(book.id).attributes.except('created_at', 'updated_at', 'id', 'author_id').transform_values { |v| v.is_a?(Time) ? v.iso8601(6) : v.is_a?(String) ? v.b : v.to_s }
p book.reload.changed?, book.created_at.usec == book.created_at.usec, Book.count, Book.cheap.pluck(:title), Book.order(:title).pluck(:title, :price).map { |t, v| [t, v.to_s] }
p Author.includes(:books).map { |a| [a.name, a.books.map(&:title).sort] }, Author.joins(:books).where(books: { active: false }).pluck(:name)
p Author.left_joins(:books).group('authors.name').sum('books.price').transform_values(&:to_s), Book.group(:active).count.sort_by(&:to_s), Book.average(:price).to_s, Book.maximum(:stock)
p Book.where('title LIKE ?', 'T%').or(Book.where(isbn: nil)).order(id: :desc).limit(2).offset(1).pluck(:title), Book.exists?(title: 'Two'), Book.where(title: %w[Two Three]).ids.size
p Book.find_by(title: 'Nothing'), Book.where(title: 'Two').update_all('stock = stock + 5'), Book.find_by(title: 'Two').stock, Book.in_batches(of: 2).map(&:size), Book.find_each(batch_size: 2).map(&:title).sort
book.labels << Label.new(word: 'a') << Label.create!(word: 'b')
p book.labels.order(:word).pluck(:word), Label.where(id: book.labels.select(:id)).count
p Label.insert_all([{ word: 'c' }, { word: 'd' }]).rows.size, Label.upsert_all([{ id: 1, word: 'A' }, { id: 50, word: 'e' }]).rows.size, Label.order(:id).pluck(:word)
p Book.find_or_create_by!(title: 'Four') { |b| b.price = 4 }.price.to_s, Book.create_with(price: 1).find_or_initialize_by(title: 'Five').new_record?
attempt('invalid') { Author.create!(name: 'ann') }
attempt('duplicate') { Author.new(name: 'Ann').save!(validate: false) }
attempt('too long') { Author.new(name: 'x' * 121).save!(validate: false) }
attempt('null') { connection.execute('INSERT INTO authors (name, created_at, updated_at) VALUES (NULL, NOW(), NOW())') }
attempt('no parent') { Book.create!(title: 'x', author_id: 4711) }
attempt('no table') { connection.execute('SELECT * FROM nowhere') }
attempt('no column') { Book.where(nothing: 1).to_a }
attempt('syntax') { connection.execute('SELEC 1') }
attempt('range') { Book.create!(title: 'x', stock: 2**32) }
attempt('rollback') { Book.transaction { Book.create!(title: 'lost'); raise ActiveRecord::Rollback } }
attempt('nested') do
  Book.transaction do
    Book.create!(title: 'kept')
    Book.transaction(requires_new: true) { Book.create!(title: 'lost'); raise ActiveRecord::Rollback }
    begin
      Book.transaction(requires_new: true) { Author.new(name: 'Ann').save!(validate: false) }
    rescue ActiveRecord::RecordNotUnique
      Book.create!(title: 'kept as well')
    end
  end
  Book.where(title: %w[lost kept] + ['kept as well']).order(:title).pluck(:title)
end
attempt('lock') { Book.transaction { Book.lock.find(book.id).update!(stock: 3); Book.lock('LOCK IN SHARE MODE').find(book.id).stock } }
attempt('isolation') { Book.transaction(isolation: :read_committed) { Book.count } }
attempt('counters') { Book.increment_counter(:seen, book.id); Book.find(book.id).seen }
attempt('touch') { book.touch; book.updated_at >= book.created_at }
attempt('explain') { Book.where(id: 1).explain.lines.size > 3 }
threads = 4.times.map { |n| Thread.new { 10.times { ActiveRecord::Base.connection_pool.with_connection { Book.where(title: 'Two').update_all('stock = stock + 1') } } } }
threads.each(&:join)
p Book.find_by(title: 'Two').stock
attempt('advisory lock') { [connection.get_advisory_lock('x'), connection.release_advisory_lock('x')] }
attempt('referential integrity') { connection.disable_referential_integrity { connection.delete('DELETE FROM authors') }; Author.count }
attempt('destroy') { Author.create!(name: 'Zoe').tap { |z| z.books.create!(title: 'gone') }.destroy; Book.where(title: 'gone').count }
attempt('truncate') { connection.truncate_tables('labels'); Label.count }
dump = StringIO.new
ActiveRecord::SchemaDumper.dump(connection, dump)
# MySQL has no widths of integers and JSON is a type of its own there.
puts dump.string.lines.reject { |l| l.start_with?('#') || l =~ /everything|"doc"/ }.join.gsub(/, options: "[^"]*"/, '').gsub(/t\.check_constraint.*\n/, '')
migrations.to_a.reverse_each { |_, m| m.migrate(:down) }
puts connection.tables.sort.inspect
attempt('current') { [connection.current_database == database, connection.charset, connection.mariadb?.nil?, connection.supports_foreign_keys?] }

client = Mysql2::Client.new(host: host, port: port.to_i, username: 'root', database: database, encoding: 'utf8mb4', flags: Mysql2::Client::MULTI_STATEMENTS, database_timezone: :utc)
client.query('SELECT * FROM everything WHERE id <= 4 ORDER BY id').each { |row| p row.except('doc').transform_values { |v| v.is_a?(String) ? v.b : v.is_a?(Time) ? v.utc.iso8601(6) : v.is_a?(BigDecimal) ? v.to_s : v } }
statement = client.prepare('SELECT id, tiny, big, big_u, exact, real4, real8, bits, words, bytes, day, moment6, stamp3, kind, tags, y FROM everything WHERE id = ? OR words = ?')
[[1, "x"], [3, nil], [2, "nothing"]].each do |values|
  found = statement.execute(*values)
  found.each { |row| p row.except("doc").transform_values { |v| v.is_a?(String) ? v.b : v.is_a?(Time) ? v.utc.iso8601(6) : v.is_a?(BigDecimal) ? v.to_s : v } }
  found.free
end
client.query("INSERT INTO parents (name) VALUES ('ann'), ('bob')")
p client.affected_rows, client.last_id, client.query_info
client.query('SELECT name FROM parents ORDER BY id; UPDATE parents SET amount = 1; SELECT amount FROM parents').each { |row| p row }
while client.next_result
  (client.store_result || []).each { |row| p row }
end
attempt('duplicate') { client.query("INSERT INTO parents (name) VALUES ('ann')") }
p client.ping, client.query('SELECT * FROM parents', stream: true, cache_rows: false, as: :array).map(&:size)
