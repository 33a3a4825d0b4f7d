"""System variables: what exists, its default, who may change it, and a session's own values.

Most of them change nothing here; clients read them to decide what to send. Those that do
matter are read by name in `session`. A session starts with the values of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache

from controller.sql.settings import Settings
from dataflow.collation.names import canonical
from dataflow.errors import Condition, InvalidStatement
from dataflow.modes import DEFAULT_SQL_MODE, Modes
from dataflow.types import DEFAULT_COLLATION, Value
from mysql_adapter.charsets import charset_of, collation_of

VERSION = "8.0.36-millrace"


class Shape(Enum):
    """What values a variable takes."""

    FLAG = "flag"
    NUMBER = "number"
    TEXT = "text"
    CHARSET = "charset"
    COLLATION = "collation"
    SQL_MODE = "sql_mode"
    ISOLATION = "isolation"
    TIME_ZONE = "time_zone"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class Variable:
    """`scope` is both, session or global; `fixed` ones cannot be set."""

    name: str
    default: Value
    shape: Shape
    scope: str = "both"
    fixed: bool = False
    choices: tuple[str, ...] = ()


ISOLATION_LEVELS = ("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")

SQL_MODES = (
    "REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ANSI", "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL", "HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH", "TIME_TRUNCATE_FRACTIONAL",
)  # fmt: skip
"""In the order in which MySQL lists them."""
IGNORED_SQL_MODES = frozenset(
    {
        "NO_AUTO_CREATE_USER", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "MYSQL323", "MYSQL40",
        "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB",
    }
)  # fmt: skip
"""Of older versions and MariaDB; dumps name them."""
_ANSI = ("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ONLY_FULL_GROUP_BY")
_TRADITIONAL = (
    "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_ENGINE_SUBSTITUTION",
)  # fmt: skip

_FLAGS = """autocommit=1 foreign_key_checks=1 unique_checks=1 sql_notes=1 sql_warnings=0 sql_auto_is_null=0
sql_big_selects=1 sql_safe_updates=0 sql_log_bin=1 sql_quote_show_create=1 big_tables=0 low_priority_updates=0
updatable_views_with_check=0 explicit_defaults_for_timestamp=1 innodb_strict_mode=1 innodb_table_locks=1
keep_files_on_create=0 old_alter_table=0 session_track_schema=1 session_track_state_change=0
show_old_temporals=0 end_markers_in_json=0 sql_buffer_result=0 transaction_read_only=0 tx_read_only=0
windowing_use_high_precision=1 sql_require_primary_key=0 show_create_table_verbosity=0
sql_generate_invisible_primary_key=0 print_identified_with_as_hex=0
show_gipk_in_create_table_and_information_schema=1 query_cache_wlock_invalidate=0 profiling=0
innodb_file_per_table=1/g lower_case_file_system=0/f performance_schema=0/f read_only=0/g super_read_only=0/g
skip_networking=0/f log_bin=0/f local_infile=0/g general_log=0/g slow_query_log=0/g large_files_support=1/f
skip_name_resolve=0/f automatic_sp_privileges=1/g activate_all_roles_on_login=0/g partial_revokes=0/g
offline_mode=0/g check_proxy_users=0/g flush=0/g innodb_read_only=0/f"""
_NUMBERS = """auto_increment_increment=1 auto_increment_offset=1 bulk_insert_buffer_size=8388608 connect_timeout=10/g
cte_max_recursion_depth=1000 default_week_format=0 div_precision_increment=4 eq_range_index_dive_limit=200
group_concat_max_len=1024 histogram_generation_max_mem_size=20000000 innodb_lock_wait_timeout=50
innodb_buffer_pool_size=134217728/g innodb_flush_log_at_trx_commit=1/g innodb_page_size=16384/f
interactive_timeout=28800 join_buffer_size=262144 key_buffer_size=8388608/g lock_wait_timeout=31536000
long_query_time=10 lower_case_table_names=0/f max_connections=151/g max_connect_errors=100/g
max_error_count=1024 max_execution_time=0 max_heap_table_size=16777216 max_join_size=18446744073709551615
max_length_for_sort_data=4096 max_points_in_geometry=65536 max_prepared_stmt_count=16382/g
max_seeks_for_key=18446744073709551615 max_sort_length=1024 max_sp_recursion_depth=0 max_user_connections=0
min_examined_row_limit=0 net_buffer_length=16384 net_read_timeout=30 net_retry_count=10 net_write_timeout=60
open_files_limit=1048576/f optimizer_prune_level=1 optimizer_search_depth=62 port=3306/f
preload_buffer_size=32768 protocol_version=10/f query_alloc_block_size=8192 query_prealloc_size=8192
range_optimizer_max_mem_size=8388608 read_buffer_size=131072 read_rnd_buffer_size=262144 server_id=1/g
sort_buffer_size=262144 sql_select_limit=18446744073709551615 stored_program_cache=256/g
table_definition_cache=2000/g table_open_cache=4000/g thread_cache_size=9/g thread_stack=1048576/f
tmp_table_size=16777216 transaction_alloc_block_size=8192 transaction_prealloc_size=4096 wait_timeout=28800
max_allowed_packet=67108864 statement_memory=536870912 timestamp=0/s insert_id=0/s last_insert_id=0/s identity=0/s pseudo_thread_id=0/s
rand_seed1=0/s rand_seed2=0/s warning_count=0/sf error_count=0/sf information_schema_stats_expiry=86400
connection_control_failed_connections_threshold=3/g connection_control_min_connection_delay=1000/g
connection_control_max_connection_delay=8000/g default_password_lifetime=0/g expire_logs_days=0/g binlog_expire_logs_seconds=2592000/g
net_compression_level=6 query_cache_size=0/g query_cache_limit=1048576/g flush_time=0/g
gtid_executed_compression_period=0/g sync_binlog=1/g innodb_autoinc_lock_mode=2/f innodb_io_capacity=200/g
innodb_log_file_size=50331648/f innodb_max_dirty_pages_pct=90/g innodb_thread_concurrency=0/g"""
_TEXTS = f"""version={VERSION}/f version_comment=millrace/f version_compile_machine=x86_64/f version_compile_os=Linux/f
license=GPL/f hostname=localhost/f basedir=/f datadir=/f tmpdir=/tmp/f socket=/f pid_file=/f plugin_dir=/f
character_sets_dir=/f init_connect=/g init_file=/f have_ssl=YES/f have_openssl=YES/f have_compress=YES/f
have_query_cache=NO/f have_dynamic_loading=NO/f have_geometry=NO/f have_symlink=DISABLED/f have_profiling=NO/f
default_storage_engine=InnoDB default_tmp_storage_engine=InnoDB storage_engine=InnoDB internal_tmp_mem_storage_engine=TempTable
system_time_zone=UTC/f default_authentication_plugin=caching_sha2_password/f lc_messages=en_US lc_time_names=en_US
ft_boolean_syntax=/f ft_min_word_len=4/f ft_max_word_len=84/f log_error=stderr/f general_log_file=/g slow_query_log_file=/g
log_output=FILE/g optimizer_switch= optimizer_trace= tls_version=TLSv1.2,TLSv1.3/f ssl_ca=/f ssl_cert=/f ssl_key=/f ssl_cipher=/f
gtid_mode=OFF/g gtid_executed=/g gtid_purged=/g gtid_next=AUTOMATIC/s gtid_owned=/f enforce_gtid_consistency=OFF/g
binlog_format=ROW binlog_row_image=FULL binlog_checksum=CRC32/g server_uuid=00000000-0000-0000-0000-000000000000/f
session_track_system_variables=time_zone,autocommit,character_set_client,character_set_results,character_set_connection
session_track_transaction_info=OFF session_track_gtids=OFF block_encryption_mode=aes-128-ecb proxy_user=/sf external_user=/sf
secure_file_priv=/f event_scheduler=OFF/g innodb_version=8.0.36/f innodb_file_format=Barracuda/g innodb_large_prefix=ON/g
innodb_default_row_format=dynamic/g innodb_flush_method=fsync/f default_collation_for_utf8mb4=utf8mb4_0900_ai_ci
use_secondary_engine=ON completion_type=NO_CHAIN concurrent_insert=AUTO/g bind_address=127.0.0.1/f query_cache_type=OFF
authentication_policy=*,,/g myisam_recover_options=OFF/f resultset_metadata=FULL/s xa_detach_on_prepare=ON rbr_exec_mode=STRICT/s
delay_key_write=ON/g time_format=%H:%i:%s/f date_format=%Y-%m-%d/f datetime_format=/f debug= terminology_use_previous=NONE"""


# In the tables above: name=default, then /g for global only, /s for session only, /f for fixed.


def _declared() -> dict[str, Variable]:
    found: dict[str, Variable] = {}

    def declare(line: str, shape: Shape) -> None:
        name, _, rest = line.partition("=")
        value, marks = rest, ""
        if "/" in rest and rest.rpartition("/")[2] in ("f", "g", "s", "sf"):
            value, _, marks = rest.rpartition("/")
        scope = "global" if "g" in marks or marks == "f" else "session" if "s" in marks else "both"
        default: Value = value
        if shape is not Shape.TEXT:
            default = int(value)
        found[name] = Variable(name, default, shape, scope, "f" in marks)

    for line in _FLAGS.split():
        declare(line, Shape.FLAG)
    for line in _NUMBERS.split():
        declare(line, Shape.NUMBER)
    for line in _TEXTS.split():
        declare(line, Shape.TEXT)
    for side in ("client", "connection", "results", "server", "database"):
        found[f"character_set_{side}"] = Variable(f"character_set_{side}", "utf8mb4", Shape.CHARSET)
    found["character_set_system"] = Variable("character_set_system", "utf8mb3", Shape.CHARSET, "global", True)
    found["character_set_filesystem"] = Variable("character_set_filesystem", "binary", Shape.CHARSET)
    for side in ("connection", "server", "database"):
        found[f"collation_{side}"] = Variable(f"collation_{side}", "utf8mb4_0900_ai_ci", Shape.COLLATION)
    found["sql_mode"] = Variable("sql_mode", DEFAULT_SQL_MODE, Shape.SQL_MODE)
    for name in ("transaction_isolation", "tx_isolation"):
        found[name] = Variable(name, "READ-COMMITTED", Shape.ISOLATION)
    found["time_zone"] = Variable("time_zone", "SYSTEM", Shape.TIME_ZONE)
    return found


VARIABLES = _declared()
_SYNONYMS = {"tx_isolation": "transaction_isolation", "tx_read_only": "transaction_read_only",
             "identity": "last_insert_id", "storage_engine": "default_storage_engine"}  # fmt: skip


def find(name: str) -> Variable:
    variable = VARIABLES.get(name.lower())
    if variable is None:
        raise InvalidStatement(Condition.UNKNOWN_SYSTEM_VARIABLE, name)
    return variable


class Variables:
    """The values of one session, or of the process (`parent` None)."""

    def __init__(self, parent: Variables | None = None) -> None:
        self._parent = parent
        self._values: dict[str, Value] = {}
        if parent is not None:
            self._values.update(parent._values)

    def get(self, name: str) -> Value:
        lowered = name.lower()
        lowered = _SYNONYMS.get(lowered, lowered)
        if lowered in self._values:
            return self._values[lowered]
        variable = find(name)
        if variable.scope == "global" and self._parent is not None:
            return self._parent.get(lowered)
        return variable.default

    def put(self, name: str, value: Value) -> None:
        """Set without questions."""
        lowered = name.lower()
        self._values[_SYNONYMS.get(lowered, lowered)] = value

    def forget(self, name: str) -> None:
        lowered = name.lower()
        self._values.pop(_SYNONYMS.get(lowered, lowered), None)

    def items(self) -> Iterator[tuple[str, str]]:
        """Names and values as SHOW VARIABLES shows them."""
        for name in sorted(VARIABLES):
            yield name, shown(VARIABLES[name], self.get(name))


def shown(variable: Variable, value: Value) -> str:
    if variable.shape is Shape.FLAG:
        return "ON" if value else "OFF"
    if value is None:
        return ""
    if variable.name == "long_query_time":
        return f"{value!s}.000000"
    return str(value)


def checked(variable: Variable, value: Value) -> Value:
    """`value` as the variable holds it, or error 1231."""
    match variable.shape:
        case Shape.FLAG:
            return _flag(variable, value)
        case Shape.NUMBER:
            return _number(variable, value)
        case Shape.CHARSET:
            return _charset(variable, value)
        case Shape.COLLATION:
            found = collation_of(str(value))
            if found is None:
                raise InvalidStatement(Condition.UNKNOWN_COLLATION, value)
            return found.name
        case Shape.SQL_MODE:
            return sql_mode(value)
        case Shape.ISOLATION:
            level = str(value).upper().replace(" ", "-")
            if isinstance(value, int) and 0 <= value < len(ISOLATION_LEVELS):
                level = ISOLATION_LEVELS[value]
            if level not in ISOLATION_LEVELS:
                raise _wrong(variable, value)
            return level
        case Shape.TIME_ZONE | Shape.TEXT | Shape.CHOICE:
            if value is None:
                raise _wrong(variable, "NULL")
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _wrong(variable: Variable, value: object) -> InvalidStatement:
    return InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, variable.name, value)


def _flag(variable: Variable, value: Value) -> int:
    if isinstance(value, str):
        lowered = value.lower()
        if lowered in ("on", "true", "1"):
            return 1
        if lowered in ("off", "false", "0"):
            return 0
    elif value in (0, 1):
        return int(value)
    raise _wrong(variable, "NULL" if value is None else value)


def _number(variable: Variable, value: Value) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, float | Decimal) and variable.name in ("timestamp", "long_query_time"):
        return int(value)
    raise InvalidStatement(Condition.WRONG_TYPE_FOR_VARIABLE, variable.name)


def _charset(variable: Variable, value: Value) -> Value:
    if value is None:
        if variable.name == "character_set_results":
            return None
        raise _wrong(variable, "NULL")
    found = charset_of(str(value))
    if found is None:
        raise InvalidStatement(Condition.UNKNOWN_CHARACTER_SET, value)
    return found.name


def sql_mode(value: Value) -> str:
    """A sql_mode in MySQL's order with combination modes opened up."""
    if isinstance(value, int):
        if value == 0:
            return ""
        raise InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, "sql_mode", value)
    names: dict[str, None] = {}
    for part in ("" if value is None else str(value)).upper().split(","):
        name = part.strip()
        if not name or name in IGNORED_SQL_MODES:
            continue
        if name not in SQL_MODES:
            raise InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, "sql_mode", part.strip())
        if name == "ANSI":
            names.update(dict.fromkeys(_ANSI))
        if name == "TRADITIONAL":
            names.update(dict.fromkeys(_TRADITIONAL))
        names[name] = None
    return ",".join(name for name in SQL_MODES if name in names)


@lru_cache(maxsize=256)
def settings_of(
    sql_mode: str, collation: str, foreign_key_checks: bool, time_zone: str, recursion_depth_max: int
) -> tuple[Settings, Modes]:
    """What statements are planned and run with."""
    try:
        collation = canonical(collation)
    except InvalidStatement:
        # A character set that only the connection knows: compare by the default.
        collation = DEFAULT_COLLATION
    names = frozenset(name for name in sql_mode.split(",") if name)
    settings = Settings(names, collation, foreign_key_checks, time_zone, recursion_depth_max=recursion_depth_max)
    return settings, Modes.parse(sql_mode, time_zone)
