#!/usr/bin/env ruby
# Stands for bin/rails: `db:migrate` and `runner FILE` over ActiveRecord alone, with the files of a Rails application.
require 'active_record'
require 'yaml'

ActiveRecord::Base.establish_connection(YAML.load_file('config/database.yml').fetch('development'))
Dir['app/models/*.rb'].sort.each { |file| require File.expand_path(file) }
case ARGV.shift
when 'db:migrate'
  ActiveRecord::MigrationContext.new('db/migrate', ActiveRecord::SchemaMigration).migrate
when 'runner'
  load File.expand_path(ARGV.shift)
end
