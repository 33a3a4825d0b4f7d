"""The system variables that exist: name, default, what values each takes, and who may change it.

Statements are planned with the type of a variable, so the table is here; what a session has set is the MySQL face's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dataflow.values.modes import DEFAULT_SQL_MODE
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, SqlType, Value, decimal, text

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
offline_mode=0/g check_proxy_users=0/g flush=0/g innodb_read_only=0/f sql_log_off=0 innodb_stats_persistent=1/g innodb_stats_on_metadata=0/g
log_bin_trust_function_creators=0/g log_slow_admin_statements=0/g log_queries_not_using_indexes=0/g skip_show_database=0/f
skip_external_locking=1/f large_pages=0/f new=0 innodb_deadlock_detect=1/g disconnect_on_expired_password=1/f
core_file=0/f show_compatibility_56=0/g log_replica_updates=1/f log_slave_updates=1/f require_secure_transport=0/g
innodb_adaptive_hash_index=1/g innodb_doublewrite=1/f innodb_ft_enable_stopword=1 innodb_optimize_fulltext_only=0/g
innodb_random_read_ahead=0/g innodb_rollback_on_timeout=0/f innodb_print_all_deadlocks=0/g innodb_stats_auto_recalc=1/g
innodb_undo_log_truncate=1/g innodb_use_native_aio=1/f keyring_operations=1/g mysql_native_password_proxy_users=0/g
persisted_globals_load=1/f relay_log_purge=1/g select_into_disk_sync=0 thread_pool_dedicated_listeners=0/f"""
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
innodb_log_file_size=50331648/f innodb_max_dirty_pages_pct=90/g innodb_thread_concurrency=0/g
host_cache_size=279/g innodb_stats_persistent_sample_pages=20/g innodb_stats_transient_sample_pages=8/g
key_cache_block_size=1024/g key_cache_division_limit=100/g key_cache_age_threshold=300/g max_binlog_cache_size=18446744073709547520/g
max_binlog_size=1073741824/g max_binlog_stmt_cache_size=18446744073709547520/g binlog_cache_size=32768/g
binlog_stmt_cache_size=32768/g myisam_sort_buffer_size=8388608 myisam_repair_threads=1 myisam_max_sort_file_size=9223372036853727232/g
myisam_mmap_size=18446744073709551615/f myisam_data_pointer_size=6/g large_page_size=0/f ft_query_expansion_limit=20/f back_log=151/f
range_alloc_block_size=4096 optimizer_trace_max_mem_size=1048576 optimizer_trace_limit=1 optimizer_trace_offset=-1
slow_launch_time=2/g profiling_history_size=15 max_insert_delayed_threads=20 max_delayed_threads=20
delayed_insert_limit=100/g delayed_insert_timeout=300/g delayed_queue_size=1000/g innodb_lru_scan_depth=1024/g
innodb_ft_min_token_size=3/f innodb_ft_max_token_size=84/f innodb_ft_result_cache_limit=2000000000/g
innodb_buffer_pool_instances=1/f innodb_buffer_pool_chunk_size=134217728/f innodb_log_buffer_size=16777216/g
innodb_log_files_in_group=2/f innodb_open_files=4000/g innodb_read_io_threads=4/f innodb_write_io_threads=4/f
innodb_purge_threads=4/f innodb_page_cleaners=1/f innodb_spin_wait_delay=6/g innodb_sync_spin_loops=30/g
innodb_concurrency_tickets=5000/g innodb_max_purge_lag=0/g innodb_old_blocks_pct=37/g innodb_old_blocks_time=1000/g
innodb_online_alter_log_max_size=134217728/g innodb_sort_buffer_size=1048576/f innodb_io_capacity_max=2000/g
innodb_fill_factor=100/g innodb_force_recovery=0/f innodb_parallel_read_threads=4 innodb_redo_log_capacity=104857600/g
max_relay_log_size=0/g max_write_lock_count=18446744073709551615/g
mysqlx_port=33060/f parser_max_mem_size=18446744073709551615 password_history=0/g password_reuse_interval=0/g
regexp_stack_limit=8000000/g regexp_time_limit=32/g relay_log_space_limit=0/f replica_net_timeout=60/g slave_net_timeout=60/g
set_operations_buffer_size=262144 schema_definition_cache=256/g stored_program_definition_cache=256/g
table_open_cache_instances=16/f tablespace_definition_cache=256/g temptable_max_ram=1073741824/g
temptable_max_mmap=1073741824/g connection_memory_limit=18446744073709551615 connection_memory_chunk_size=8192
global_connection_memory_limit=18446744073709551615/g generated_random_password_length=20 secondary_engine_cost_threshold=100000"""
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
delay_key_write=ON/g time_format=%H:%i:%s/f date_format=%Y-%m-%d/f datetime_format=/f debug= terminology_use_previous=NONE
relay_log=/f relay_log_index=/f relay_log_basename=/f log_bin_index=/f log_bin_basename=/f
lc_messages_dir=/f ft_stopword_file=(built-in)/f ssl_capath=/f ssl_crl=/f ssl_crlpath=/f thread_handling=one-thread-per-connection/f
myisam_stats_method=nulls_unequal optimizer_trace_features=greedy_search=on,range_optimizer=on,dynamic_range=on,repeated_subselect=on
innodb_stats_method=nulls_equal/g innodb_checksum_algorithm=crc32/g innodb_change_buffering=all/g innodb_data_home_dir=/f
innodb_data_file_path=ibdata1:12M:autoextend/f innodb_log_group_home_dir=./f innodb_temp_data_file_path=ibtmp1:12M:autoextend/f
innodb_monitor_enable=/g innodb_ft_user_stopword_table= innodb_ft_server_stopword_table=/g log_error_verbosity=2/g
log_timestamps=UTC/g replica_exec_mode=STRICT/g slave_exec_mode=STRICT/g transaction_write_set_extraction=XXHASH64
binlog_row_value_options= binlog_row_metadata=MINIMAL/g admin_tls_version=/f explain_format=TRADITIONAL protocol_compression_algorithms=zlib,zstd,uncompressed/g
default_table_encryption=OFF tls_ciphersuites=/g persist_only_admin_x509_subject=/f"""


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

INTEGERS_MAX = 1 << 63
_SECONDS = frozenset({"timestamp", "long_query_time"})
"""Have a fraction."""


def type_of(name: str) -> SqlType:
    """The type of @@name; that of an unknown one is found out when it is read."""
    variable = VARIABLES.get(name)
    if variable is None or variable.shape not in (Shape.FLAG, Shape.NUMBER):
        return text(1024)
    if name in _SECONDS:
        return decimal(16, 6)
    return BIGINT_UNSIGNED if isinstance(variable.default, int) and variable.default >= INTEGERS_MAX else BIGINT
